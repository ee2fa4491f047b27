"""Modules that predict further tokens: what they add to a step, on one stage, on the last of several, and in a search."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.catalog.counts import flop_counts, parameter_counts
from costmodel.equations.parallelism.traffic import Traffic
from costmodel.runtime import call
from costmodel.search.candidates import Candidates
from costmodel.search.evaluate import evaluate
from costmodel.search.grid import search
from costmodel.search.recomputation import RECOMPUTE
from costmodel.search.splits import best_split
from costmodel.search.workload import Workload, scalar_inputs
from costmodel.studies.estimate import COMMUNICATION, MEMORY_ITEMS, TIME_ITEMS
from costmodel.studies.traffic import traffic_inputs
from costmodel.symbolic import compile_math
from tests.equations.training.drawn import CATALOG, cases, decoder, machine, mixture, on
from tests.simulators import pipeline

few = settings(max_examples=settings.default.max_examples // 2)
traffic = compile_math(Traffic.system)
SILENT = {"send_exposed_share": 0}
modules = st.integers(1, 4)
DEEPSEEK = "tp=2 ep=64 pp=16 zero=1 first=4 last=1"


def trained(case, number):
    return case.on(multi_token_modules=number)


def deepseek(layout=DEEPSEEK):
    return on("deepseek-v3", "h800-cluster:2048", layout, 4096, 15360)


@few
@given(cases(most_cp=4))
def test_none_is_what_it_is_without_a_word(case):
    assert trained(case, 0)() == case()


@few
@given(cases(most_cp=4), modules)
def test_items_add_up_and_hidden_traffic_is_no_less_than_what_shows(case, number):
    found = trained(case, number)()
    items = [found[f"time_{item}"] for item in TIME_ITEMS]
    assert min(items) >= 0
    assert sum(items) == pytest.approx(found["step_time"], rel=1e-12)
    assert sum(found[f"memory_{item}"] for item in MEMORY_ITEMS) == pytest.approx(found["allocated"], rel=1e-12)
    for axis in COMMUNICATION:
        assert found[f"total_{axis}"] >= found[f"time_{axis}"] * (1 - 1e-12)


@few
@given(cases(most_cp=4, most_pp=1), modules)
def test_on_one_stage_time_and_memory_grow_by_as_much_with_each(case, number):
    """All but the reduction of gradients, whose collectives are not linear in their payload."""
    plain = case.laid(zero=min(case.layout.zero, 1))
    less, more, most = (trained(plain, n)() for n in (1, 1 + number, 1 + 2 * number))
    for found in (less, more, most):
        found["own_time"] = found["step_time"] - found["time_dp"]
    for quantity in ("own_time", "head_stage_time", "model_flops"):
        assert most[quantity] - more[quantity] == pytest.approx(more[quantity] - less[quantity], rel=1e-6), quantity
        assert more[quantity] > less[quantity]
    for quantity in ("stage_weights", "stage_gradients", "stage_optimizer"):
        low, middle, high = (found[quantity][0] for found in (less, more, most))
        assert high - middle == pytest.approx(middle - low, rel=1e-9)
    for phase in range(4):
        low, middle, high = (found["memory_use"][0][phase] for found in (less, more, most))
        assert high - middle == pytest.approx(middle - low, rel=1e-6)


@few
@given(cases(most_cp=2, least_pp=2), modules)
def test_the_last_stage_alone_grows_and_the_step_at_least_by_its_work_once_it_is_slowest(case, number):
    less, more = trained(case, number)(**SILENT), trained(case, number + 1)(**SILENT)
    for name in ("stage_weights", "stage_gradients"):
        assert more[name][:2] == less[name][:2]
        assert more[name][2] > less[name][2]
    assert more["step_time"] >= less["step_time"] * (1 - 1e-9)
    one = more["head_stage_time"] - less["head_stage_time"]
    assert one >= less["layer_time"] + less["loss_compute"] + less["joining_products"]
    if less["head_stage_time"] >= less["full_stage_time"]:
        grown = more["pipeline_busy"] - less["pipeline_busy"]
        assert grown == pytest.approx(less["micro_batches"] * one, rel=1e-9)
        assert more["pipeline_total"] - less["pipeline_total"] >= grown * (1 - 1e-9)


@few
@given(cases(least_pp=2), modules)
def test_1f1b_with_the_heavy_last_stage_takes_what_the_simulator_says(case, number):
    """Stages without FSDP's traffic, whose split between forward and backward the equations do not tell apart."""
    case = trained(case.laid(schedule="1f1b", virtual_stages=1, zero=min(case.layout.zero, 1)), number)
    case = case.of(layers=case.layout.pp * 2)
    found = case(**SILENT)
    layers = [2.0] * case.layout.pp
    forward = [n * found["layer_forward"] for n in layers]
    backward = [n * found["layer_backward"] for n in layers]
    forward[-1] += number * found["layer_forward"] + found["losses_and_modules_forward"]
    backward[-1] += number * found["layer_backward"] + found["losses_and_modules"] - found["losses_and_modules_forward"]
    program = pipeline.one_forward_one_backward(case.layout.pp, int(found["micro_batches"]))
    executed = pipeline.run(program, forward, backward).makespan
    assert found["pipeline_busy"] + found["pipeline_bubble"] == pytest.approx(executed, rel=1e-9)


@few
@given(cases(most_cp=2), modules, st.sampled_from(RECOMPUTE))
def test_one_rank_without_neighbours_sends_nothing_for_them(case, number, recompute):
    case = trained(case.laid(recompute=recompute), number)
    if case.layout.tp == 1:
        assert case()["joining_traffic"] == 0
    else:
        assert case()["joining_traffic"] > 0


@few
@given(cases(), modules)
def test_flops_and_utilisation_count_them(case, number):
    found = trained(case, number)()
    work = flop_counts(case.workload.model, case.workload.sequence_length)
    tokens = case.workload.global_batch * case.workload.sequence_length
    expected = tokens * (work["training_flops"] + 3 * number * work["module_flops"])
    assert found["model_flops"] == pytest.approx(expected, rel=1e-12)
    per_chip = found["step_time"] * case.workload.machine.chips * found["peak"]
    assert found["mfu"] == pytest.approx(expected / per_chip, rel=1e-12)
    assert found["megatron_flops"] > found["model_flops"] <= found["hardware_flops"] * 2
    counts = parameter_counts(case.workload.model)
    assert found["trained_parameters"] == counts["parameters"] + number * counts["multi_token_parameters"]


@few
@given(cases(most_cp=4), modules)
def test_all_that_a_module_does_before_its_head_is_run_again_with_its_layer(case, number):
    model = case.workload.model
    none, full = (trained(case.laid(recompute=mode), number)() for mode in ("none", "full"))
    layer = (full["forward_flops_causal"] - full["head_flops"]) / model.layers
    joining = 2 * 2 * model.hidden_size**2
    again = (model.layers + number) * layer + number * joining
    assert full["hardware_flops"] - none["hardware_flops"] == pytest.approx(full["step_tokens"] * again, rel=1e-9)


def test_experts_of_a_module_are_shared_by_expert_parallel_ranks():
    """What tensor-parallel ranks split they hold by halves; norms and router, and their part of the embedding, each has."""
    none, one = (trained(deepseek(), n)() for n in (0, 1))
    counts = parameter_counts(deepseek().workload.model)
    tp, ep = 2, 64
    experts = 256 * counts["expert_parameters"]
    assert one["stage_experts"][2] - none["stage_experts"][2] == experts / ep
    whole = none["mixture_whole_parameters"] + counts["joining_norms"]
    split = counts["multi_token_parameters"] - experts - whole
    added = one["stage_parameters"][2] - none["stage_parameters"][2]
    assert added == split / tp + whole + none["embedding_on_rank"]
    assert one["stage_parameters"][:2] == none["stage_parameters"][:2]


@pytest.mark.parametrize(
    ("layout", "copies"),
    [("tp=2 pp=4", 1), ("tp=2 pp=4 schedule=zb-v", 0), ("tp=2 pp=4 schedule=dualpipe", 0), ("tp=2 pp=1", 0)],
)
def test_the_embedding_is_copied_where_the_ends_of_the_pipeline_are_apart(layout, copies):
    case = trained(on(decoder(layers=16), "dgx-h100:8", layout, 2048, 64), 1)
    found = case()
    assert found["copied_embedding"] == copies * found["embedding_on_rank"]
    tied = case.of(tied_embeddings=True)()
    assert tied["copied_embedding"] == 0


def test_logits_of_further_tokens_wait_beside_those_of_the_next_unless_they_come_in_pieces():
    case = on(decoder(layers=4, vocabulary=100_000), "dgx-h100:8", "tp=2 pp=1", 2048, 64)
    none, one = (trained(case, n)() for n in (0, 1))
    logits = none["tokens"] * none["vocabulary_on_rank"]
    kept = CATALOG.assumptions("memory-gpu")["kept_loss_bytes"].value
    norm = 2 * none["tokens"] * none["hidden_size"] * none["element_size"] / none["sequence_split"]
    assert one["stage_logits"][0][1] - none["stage_logits"][0][1] == pytest.approx(kept * logits + norm)
    pieces = [trained(case, n).on(loss_chunks=8)()["stage_logits"][0][1] for n in (0, 1)]
    assert pieces[1] - pieces[0] == pytest.approx(norm)


@pytest.mark.parametrize("model", [decoder(layers=12), mixture(8, 2, 1024, layers=12)], ids=["dense", "experts"])
def test_a_search_finds_what_one_answer_says(model):
    workload = replace(Workload(machine("dgx-h100:16"), model, 2048, 64), multi_token_modules=2)
    tried = Candidates(micro_batches=(1, 2), schedules=(("1f1b", 1), ("interleaved", 3)))
    grid = search(workload, CATALOG, tried)
    positions = grid.best(grid.legal, grid.step_time, 40)
    assert len(positions) == 40
    for index in positions[::5]:
        found = evaluate(workload, grid.settled(index), CATALOG)
        assert grid.step_time[index] == pytest.approx(found["step_time"], rel=1e-12)
        assert grid.device_used[index] == pytest.approx(found["device_used"], rel=1e-12)


def test_the_best_split_lightens_the_last_stage():
    plain = on(decoder(layers=32, vocabulary=128_000), "dgx-h100:8", "tp=2 pp=4", 4096, 64)
    given_, with_two = plain.workload, trained(plain, 2).workload
    last = [best_split(w, plain.layout, scalar_inputs(w, CATALOG)).last for w in (given_, with_two)]
    assert 0 < last[1] < (last[0] or 8)


@few
@given(cases(most_pp=1, least_tp=2), modules)
def test_tensor_parallel_ranks_send_a_layer_and_a_projection_for_each(case, number):
    """The projection: one gather forward and two all-reduces backward, or three gathers forward and five collectives backward."""
    none, some = (call(traffic, traffic_inputs(case.inputs, trained(case, n)())) for n in (0, number))
    found = case()
    layer = (1 + found["repeated_tp"]) * none["tp_forward"] + none["tp_backward"]
    forward, backward = (3, 5) if case.layout.sequence_parallel else (1, 4)
    projection = ((1 + found["repeated_layer"]) * forward + backward) * none["tp_shards"]
    passes = number * found["micro_batches"]
    assert some["sent_tp"] - none["sent_tp"] == pytest.approx(passes * (layer + projection), rel=1e-9)
