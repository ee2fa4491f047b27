"""The whole step: its pipeline against the simulator with the stages it really has, its rates, and a model in round numbers."""

import pytest
from hypothesis import given, settings

from costmodel.catalog.counts import flop_counts
from tests.equations.training.drawn import CATALOG, cases, decoder, on
from tests.simulators import pipeline

few = settings(max_examples=settings.default.max_examples // 2)
SILENT = {"send_exposed_share": 0}


def stage_times(case, found):
    """Forward and backward of each chunk in the order of the pipeline, from the times of a layer, of head and loss."""
    layout = case.layout
    chunks = layout.pp * layout.virtual_stages
    ends = found["spare_slots"] / 2
    layers = [(case.workload.model.layers + found["spare_slots"]) / chunks] * chunks
    layers[0] -= ends
    layers[-1] -= ends
    forward = found["layer_forward"] + found["sharded_exposed_forward"]
    backward = found["layer_backward"] + found["sharded_exposed_backward"]
    forwards, backwards = [n * forward for n in layers], [n * backward for n in layers]
    forwards[-1] += found["last_work"] / 3
    backwards[-1] += found["last_work"] * 2 / 3
    return forwards, backwards


@few
@given(cases(least_pp=2))
def test_compute_and_bubble_are_those_of_the_stages_executed(case):
    """Without messages: exact for 1F1B, but for what FSDP shows, and where no end is light; else within what is known."""
    found = case(**SILENT)
    forwards, backwards = stage_times(case, found)
    p, m, v = case.layout.pp, int(found["micro_batches"]), case.layout.virtual_stages
    order = pipeline.one_forward_one_backward(p, m) if v == 1 else pipeline.interleaved(p, m, v)
    executed = pipeline.run(order, forwards, backwards).makespan
    formed = found["pipeline_busy"] + found["pipeline_bubble"]
    if not found["spare_slots"] or (v == 1 and case.layout.zero < 3):
        assert formed == pytest.approx(executed, rel=1e-9)
    else:
        assert formed == pytest.approx(executed, rel=0.25)


@few
@given(cases())
def test_rates_follow_from_the_step(case):
    found, workload = case(), case.workload
    tokens = workload.global_batch * workload.sequence_length
    assert found["step_tokens"] == tokens
    assert found["tokens_per_second"] == pytest.approx(tokens / found["step_time"], rel=1e-12)
    work = flop_counts(workload.model, workload.sequence_length)
    per_chip = found["step_time"] * workload.machine.chips * found["peak"]
    assert found["mfu"] == pytest.approx(tokens * work["training_flops"] / per_chip, rel=1e-12)
    assert found["mfu_causal"] == pytest.approx(tokens * work["training_flops_causal"] / per_chip, rel=1e-12)


@few
@given(cases())
def test_full_recomputation_adds_a_forward_pass_without_the_head(case):
    none, full = (case.laid(recompute=mode)()["hardware_flops"] for mode in ("none", "full"))
    work = flop_counts(case.workload.model, case.workload.sequence_length)
    rerun = work["forward_flops_causal"] - work["head_flops"]
    assert full - none == pytest.approx(rerun * case()["step_tokens"], rel=1e-9)


@few
@given(cases())
def test_recomputing_attention_adds_its_forward_pass_and_light_no_product(case):
    none, light, attention = (case.laid(recompute=mode)() for mode in ("none", "light", "attention"))
    work = flop_counts(case.workload.model, case.workload.sequence_length)
    assert light["hardware_flops"] == none["hardware_flops"]
    again = attention["hardware_flops"] - none["hardware_flops"]
    assert again == pytest.approx(work["attention_flops_causal"] * none["step_tokens"], rel=1e-6)


def test_one_layer_in_round_numbers():
    """One chip of 1e15 FLOP/s that attains all of it, infinite memory bandwidth, no launch: 6 FLOP a weight and token.

    Weights 4 x 1024 x 1024 + 3 x 1024 x 4096 of the layer and 1024 x 31744 of the head; 8192 tokens in two micro-batches.
    """
    case = on(decoder(layers=1, vocabulary=31744), "dgx-h100:1", "mbs=1", 4096, 2)
    chip = {"peak": 1e15, "half_peak": 1e15, "matmul_share": 1, "half_share": 1, "memory_bandwidth": float("inf")}
    ideal = chip | {"launch_gap": 0, "step_overhead": 0, "launch_time": 0, "attention_block": 1}
    found = case(**ideal, attention_share=1, exponential_rate=float("inf"), attention_backward_factor=1)
    weights = 4 * 1024 * 1024 + 3 * 1024 * 4096
    assert found["time_matmul"] == pytest.approx(6 * weights * 8192 / 1e15, rel=1e-9)
    assert found["time_loss"] == pytest.approx(6 * 1024 * 31744 * 8192 / 1e15, rel=1e-9)
    # 16 heads of 64: 4 FLOP a pair and feature forward, 10 backward, half of 4096 keys
    assert found["time_attention"] == pytest.approx(14 * 1024 * 2048 * 8192 / 1e15, rel=1e-9)
    assert found["step_time"] == pytest.approx(found["time_matmul"] + found["time_loss"] + found["time_attention"])


def test_a_step_of_nothing_but_overhead():
    case = on(decoder(), "dgx-h100:1", "mbs=1", 1024, 1)
    fast = {name: float("inf") for name in ("peak", "half_peak", "memory_bandwidth", "exponential_rate")}
    assert (
        case(**fast, launch_gap=0, launch_time=0)["step_time"] == CATALOG.assumptions("training")["step_overhead"].value
    )


def test_slow_network_shows_where_it_is_used():
    """A tenth of the bandwidth between nodes: the gradients of dp take ten times as long, tp inside a node as long as before."""
    case = on("llama-3-8b", "dgx-h100:64", "tp=8 zero=1", 4096, 64)
    given = case.inputs
    slow, fast = case(nic_bandwidth=given["nic_bandwidth"] / 10, nic_latency=0), case(nic_latency=0)
    assert slow["total_tp"] == fast["total_tp"]
    assert slow["total_dp"] == pytest.approx(10 * fast["total_dp"], rel=0.05)
    assert slow["time_dp"] > fast["time_dp"]


ONE_NODE = {"domain_latency": 0, "launch_latency": 0, "nvls_share": 0, "library": 0}
"""Inside one NVLink domain: rings of bandwidth alone, as the links allow."""


def ring(found, size):
    """An all-gather or a reduce-scatter of so many bytes over eight ranks of one domain."""
    return size * 7 / 8 / (found["domain_bandwidth"] * found["domain_share"])


def test_bytes_of_tensor_parallelism():
    """The hidden states of a micro-batch: 2 gathers and 2 scatters forward, 4 and 2 backward; all-reduces of twice a pass."""
    on_case = on("llama-3-8b", "dgx-h100:8", "tp=8 sp=1", 4096, 4)
    found = on_case(**ONE_NODE)
    passes = 4 * 32
    hidden = 4096 * 4096 * 2
    assert found["total_tp"] == pytest.approx(passes * 10 * ring(found, hidden), rel=1e-9)
    off = on_case.laid(sequence_parallel=False)(**ONE_NODE)
    assert off["total_tp"] == pytest.approx(passes * 4 * 2 * ring(found, hidden), rel=1e-9)


def test_bytes_of_data_parallelism():
    """Gradients in fp32, weights in bf16: all-reduce, or a scatter and a gather, and the scatter for every micro-batch."""
    case = on("llama-3-8b", "dgx-h100:8", "zero=0", 4096, 32)
    plain = {**ONE_NODE, "dp_wire_factor": 1}
    totals = [case.laid(zero=zero)(**plain)["total_dp"] for zero in range(4)]
    found = case(**plain)
    gradients, weights = (ring(found, size * found["stage_parameters"][0]) for size in (4, 2))
    expected = [2 * gradients, gradients + weights, 4 * gradients + weights, 0]
    assert totals == pytest.approx(expected, rel=1e-9)


def test_bytes_of_fsdp():
    """Each micro-batch: two gathers of every layer's weights in bf16 and one of the tables', a scatter of all gradients in fp32."""
    found = on("llama-3-8b", "dgx-h100:8", "zero=3", 4096, 32)(**ONE_NODE, fsdp_wire_factor=1)
    layers, tables = 32 * found["layer_parameters"], found["embedding_on_rank"] + found["head_on_rank"]
    assert found["total_fsdp"] == pytest.approx(4 * ring(found, (2 * 2 + 4) * layers + (2 + 4) * tables), rel=1e-9)


@pytest.mark.parametrize(
    ("layout", "split", "chunks"), [("tp=2 pp=4 sp=0 schedule=gpipe", 1, 1), ("tp=2 pp=4 sp=1 v=8", 2, 8)]
)
def test_bytes_of_pipelining(layout, split, chunks):
    """A message each way for each chunk and micro-batch: the hidden states, shared by the ranks of sequence parallelism."""
    found = on("llama-3-8b", "dgx-h100:8", layout, 4096, 4)(domain_latency=0, launch_latency=0, library=0)
    message = 4096 * 4096 * 2 / split / (found["domain_bandwidth"] * found["domain_share"])
    assert found["total_pp"] == pytest.approx(2 * 4 * chunks * message, rel=1e-9)


@few
@given(cases())
def test_what_shows_of_a_traffic_is_some_or_all_of_it(case):
    found = case()
    for kind in ("tp", "cp", "fsdp", "dp", "pp"):
        assert 0 <= found[f"time_{kind}"] <= found[f"total_{kind}"] * (1 + 1e-9)


def test_messages_that_wait_for_other_stages_are_counted():
    """1F1B of one micro-batch: four stages wait for three messages each way, of which one stage sends two."""
    found = on("llama-3-8b", "dgx-h100:8", "tp=2 pp=4 sp=0", 4096, 1)(domain_latency=0, launch_latency=0, library=0)
    message = 4096 * 4096 * 2 / (found["domain_bandwidth"] * found["domain_share"])
    assert found["time_pp"] == found["total_pp"] == pytest.approx(6 * message, rel=1e-9)


@few
@given(cases())
def test_recomputing_a_layer_repeats_its_forward_exchange(case):
    none, full = (case.laid(recompute=mode, zero=0)() for mode in ("none", "full"))
    for what, forward in (("total_tp", "tensor_forward"), ("time_tp", "tensor_exposed_forward")):
        once, again = (found[what] / found["layer_passes"] for found in (none, full))
        assert again - once == pytest.approx(full[forward], rel=1e-9, abs=1e-15)


@few
@given(cases(most_cp=4))
def test_recomputing_attention_repeats_its_exchange_over_context_parallel_ranks_alone(case):
    none, attention, light = (case.laid(recompute=mode, zero=0)() for mode in ("none", "attention", "light"))
    for what, forward in (("total_cp", "context_forward"), ("time_cp", "context_exposed_forward")):
        once, again = (found[what] / found["layer_passes"] for found in (none, attention))
        assert again - once == pytest.approx(attention[forward], rel=1e-9, abs=1e-15)
    assert light["total_cp"] == none["total_cp"]
    assert attention["total_tp"] == light["total_tp"] == none["total_tp"]


@few
@given(cases(least_dp=2))
def test_traffic_of_gradients_and_weights_hides_behind_the_passes_of_a_stage(case):
    """One stage's share of the layers, while other axes leave the links free; of several chunks all but one have those of a whole
    group of micro-batches."""
    found = case(dp_hidden_share=1)
    layers, p, v = found["layers"] / found["pp"], case.layout.pp, case.layout.virtual_stages
    if case.layout.zero == 3:
        assert found["total_dp"] == found["time_dp"] == 0
        return

    def hides(traffic, compute, chunks):
        return min(traffic, p * compute) * (1 - 1 / chunks) + min(traffic, compute) / chunks

    scattered = case.layout.zero == 2
    hidden = found["sync_scatters"] * hides(
        found["sync_one_reduction"], layers * found["free_backward"], 1 if scattered else v
    )
    hidden += hides(found["sync_weight"], layers * found["free_forward"], v)
    assert found["total_dp"] - found["time_dp"] == pytest.approx(hidden, rel=1e-9, abs=1e-12 * found["total_dp"])


def test_the_optimizer_moves_its_bytes():
    """36 bytes a weight that a rank owns, 6 more where it keeps a copy for compute."""
    for zero, owned, copied in ((0, 1, 1), (1, 1 / 8, 1), (2, 1 / 8, 1), (3, 1 / 8, 0)):
        found = on("llama-3-8b", "dgx-h100:8", f"zero={zero}", 4096, 8)()
        moved = (36 * owned + 6 * copied) * found["stage_parameters"][0]
        rate = found["memory_share"] * found["memory_bandwidth"]
        assert found["time_optimizer"] == pytest.approx(moved / rate, rel=1e-9)


def test_selective_recomputation_runs_key_output_and_up_again():
    """Two FLOP a weight and token of those three products."""
    case = on("llama-3-8b", "dgx-h100:8", "recompute=selective", 4096, 8)
    plain = case.laid(recompute="none")
    weights = 32 * 4096 * (1024 + 4096 + 14336)
    again = case()["hardware_flops"] - plain()["hardware_flops"]
    assert again == pytest.approx(2 * weights * 8 * 4096, rel=1e-9)
