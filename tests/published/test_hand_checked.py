"""Numbers worked out by hand for collectives, parallelism, pipelines, activations and FLOPs; papers and guides print many of them.

Those of gradient buckets, offload, context parallelism, overlays and traffic stand beside the tests of their equations: test_buckets,
test_offload, test_context, test_overlay, test_traffic.
"""

from dataclasses import replace
from fractions import Fraction

import pytest

from costmodel.catalog.counts import flop_counts
from costmodel.catalog.resolve import resolve_model
from costmodel.equations.axes import STAGE
from costmodel.equations.collectives.all_to_all import RoutedTokens
from costmodel.equations.collectives.book import BookLine, BookTorus
from costmodel.equations.parallelism.data import GradientSync
from costmodel.equations.parallelism.in_flight import InFlight
from costmodel.symbolic import compile_math
from tests.equations.collectives.drawn import evaluate
from tests.equations.parallelism.test_context import RING, shared
from tests.equations.parallelism.test_pipeline import equal_form, form, sizes
from tests.equations.training.drawn import CATALOG, on

GIB = 2**30
FIRST, FORWARD, LOSS = 0, 0, 1
torus, line = compile_math(BookTorus.system), compile_math(BookLine.system)
sync = compile_math(GradientSync.system)
in_flight = compile_math(InFlight.system, ["in_flight", "weight_versions"], [STAGE])
routed = compile_math(RoutedTokens.system)


# -- collectives ------------------------------------------------------------------------------------


def test_an_array_of_32_mib_on_an_axis_of_v5e():
    """45 GB/s a link and way: 373 us round a ring, 93.2 to exchange, 746 along a line, whatever the length but for (n - 1)/n."""
    array = 2048 * 8192 * 2
    ring = torus(V=array, W=90e9, axes=1, hops=8, longest=16, n=16, hop_latency=0)
    assert ring["all_gather"] == pytest.approx(373e-6, rel=2e-3)
    assert ring["all_to_all"] == pytest.approx(93.2e-6, rel=2e-3)
    assert line(V=array, X=10**6, W=45e9)["all_gather"] == pytest.approx(746e-6, rel=2e-3)


def test_a_ring_of_16_is_bound_by_its_hops_below_0_72_megabytes():
    found = torus(V=0.72e6, W=90e9, axes=1, hops=8, longest=16, n=16, hop_latency=1e-6)
    assert found["all_gather_bandwidth"] == pytest.approx(found["all_gather_latency"])


def test_tokens_of_a_v5p_pod_that_hide_data_parallelism_over_its_network():
    """459 TFLOP/s over 6.25 GB/s, as a chip has a quarter of its host's 25: 73,440 tokens."""
    weights, tokens = 1e9, 73_440
    assert exposed(weights, tokens, rate=459e12, bandwidth=6.25e9) == pytest.approx(0, abs=1e-9)
    assert exposed(weights, tokens - 1, rate=459e12, bandwidth=6.25e9) > 0


def test_a_gigabyte_on_two_nodes_level_by_level():
    """2.36 ms to scatter at 370 GB/s, 2.60 between nodes at 48, 2.36 to gather: 7.3 in turn, the largest where they overlap."""
    levels = {"G": 8, "M": 2, "S": 10**9, "alpha_in": 0, "alpha_out": 0, "W_in": 370 * 10**9, "W_out": 48 * 10**9}
    scatter = evaluate("ring", {"n": 8, "S": 10**9, "alpha": 0, "W": 370 * 10**9})["reduce_scatter"]
    assert float(scatter) == pytest.approx(2.36e-3, abs=5e-6)
    assert float(
        evaluate("ring", {"n": 2, "S": 10**9 / 8, "alpha": 0, "W": 48 * 10**9})["all_reduce"]
    ) == pytest.approx(2.6e-3, rel=2e-3)
    assert float(evaluate("hierarchical", levels)["all_reduce"]) == pytest.approx(7.3e-3, rel=5e-3)
    assert evaluate("hierarchical-pipelined", levels)["all_reduce"] == 2 * scatter


@pytest.mark.parametrize("nodes", [2, 4, 16])
def test_an_exchange_over_nodes_has_one_nic_a_rank(nodes):
    """Payload over time is M/(M - 1) of a NIC."""
    groups = {"G": 8, "M": nodes, "S": 10**9, "alpha_in": 0, "alpha_out": 0, "W_in": 10**15, "W_out": 48 * 10**9}
    time = evaluate("rail-exchange", groups)["all_to_all"]
    assert float(10**9 / time) == pytest.approx(nodes / (nodes - 1) * 48e9, rel=1e-3)


def test_tokens_of_experts_on_64_ranks():
    """4096 tokens of 7168 features to 8 experts: 231.2 MB in 8 bits, 462.4 back in 16; 117.4 MB to four nodes."""
    common = {"tokens": 4096, "experts": 64, "chosen": 8, "ranks": 64, "nodes": 8, "node_limit": 8}
    assert routed(token_bytes=7168, **common)["per_expert"] == pytest.approx(231.2e6, rel=1e-3)
    assert routed(token_bytes=2 * 7168, **common)["per_expert"] == pytest.approx(462.4e6, rel=1e-3)
    limited = routed(token_bytes=7168, **common | {"node_limit": 4})
    to_four_nodes = 4096 * 4 * 7168
    assert to_four_nodes == pytest.approx(117.4e6, rel=1e-3)
    assert limited["per_node_off_node"] <= to_four_nodes


# -- data and context parallelism -------------------------------------------------------------------


def exposed(weights, tokens, *, rate, bandwidth):
    """What shows of the all-reduce of bf16 gradients behind one backward pass of so many tokens, among very many ranks."""
    all_reduce = 2 * 2 * weights / bandwidth
    found = sync(
        dp=10**9,
        pp=1,
        virtual_stages=1,
        micro_batches=1,
        optimizer_sharded=0,
        gradients_sharded=0,
        weights_sharded=0,
        all_reduce=all_reduce,
        reduce_scatter=all_reduce / 2,
        all_gather=all_reduce / 2,
        forward_compute=2 * weights * tokens / rate,
        backward_compute=4 * weights * tokens / rate,
        last_backward_compute=4 * weights * tokens / rate,
        across=0,
        wire_factor=1,
        hidden_share=1,
    )
    return found["exposed_gradient"]


@pytest.mark.parametrize(
    ("rate", "bandwidth", "tokens"), [(600e12, 370e9, 1620), (600e12, 50e9, 12_000), (459e12, 180e9, 2550)]
)
def test_tokens_of_a_rank_that_hide_its_gradients(rate, bandwidth, tokens):
    """Rate over bandwidth: of eight rails or NVLink, of one NIC, of one wrapped axis of v5p."""
    assert exposed(1e9, 1.005 * tokens, rate=rate, bandwidth=bandwidth) == pytest.approx(0, abs=1e-9)
    assert exposed(1e9, 0.995 * tokens, rate=rate, bandwidth=bandwidth) > 0


@pytest.mark.parametrize(
    ("layout", "chips", "gigabytes", "tolerance"),
    [
        ("zero=0", 8, 128.5, 1e-3),
        ("zero=1", 8, 44.2, 1e-3),
        ("zero=2", 8, 30.1, 1e-3),
        ("zero=3", 8, 16.1, 3e-3),
        ("zero=0", 64, 128.5, 1e-3),
        ("zero=1", 64, 33.6, 2e-3),
        ("zero=2", 64, 17.8, 2e-3),
        ("zero=3", 64, 2.0, 5e-3),
    ],
)
def test_states_of_8_billion_weights(layout, chips, gigabytes, tolerance):
    """16, 4 + 12/N, 2 + 14/N and 16/N bytes a weight."""
    found = on("llama-3-8b", f"dgx-h100:{chips}", layout, 8192, chips)(
        weight_bytes=2, gradient_bytes=2, optimizer_bytes=12
    )
    states = sum(found[f"stage_{state}"][FIRST] for state in ("weights", "gradients", "optimizer"))
    assert states == pytest.approx(gigabytes * 1e9, rel=tolerance)


@pytest.mark.parametrize(("kv_heads", "causal_tokens"), [(64, 24_000), (8, 3000)])
def test_tokens_of_a_rank_that_hide_a_ring(kv_heads, causal_tokens):
    """e h_kv/h F/W of a balanced causal ring at 600 TFLOP/s and 50 GB/s; F/W = 12,000, half, where nothing is masked."""
    ranks, heads, size = 8, 64, 128
    tokens = causal_tokens * ranks
    found = shared(tokens, ranks, RING)
    step = 4 * size * heads * found["first_pairs"] / 600e12
    block = 2 * causal_tokens * kv_heads * size * 2 / 50e9
    assert step == pytest.approx(block)
    unmasked = 4 * size * heads * (causal_tokens / 2) ** 2 / 600e12
    assert unmasked == pytest.approx(block / 2)


# -- pipelines --------------------------------------------------------------------------------------


def test_bubbles_of_eight_stages_and_32_micro_batches():
    """Forward 1, backward 2: 21 of 117; a quarter of it with four chunks; 7 where the gradients of weights fill it."""
    assert equal_form("1f1b", (1, 2, 0), 8, 32) == equal_form("gpipe", (1, 2, 0), 8, 32) == 96 + 21 == 117
    assert equal_form("interleaved", (1, 2, 0), 8, 32, 4) == 96 + Fraction(21, 4)
    assert equal_form("zb-h1", (1, 1, 1), 8, 32) == 96 + 7
    assert equal_form("zb-v", (1, 1, 1), 8, 32, 2) < 96 + 7


def test_shares_of_bubbles():
    """(p - 1)/(m v) of the useful time, (p - 1)/(m v + p - 1) of all."""
    for p, m, v in ((8, 32, 1), (8, 32, 4), (4, 8, 2)):
        whole = equal_form("interleaved" if v > 1 else "1f1b", (1, 2, 0), p, m, v)
        assert (whole - 3 * m) / whole == Fraction(p - 1, m * v + p - 1)


@pytest.mark.parametrize(("backward", "wholes"), [(1, {4: 10, 8: 22, 16: 46}), (2, {4: 16, 8: 36, 16: 76})])
def test_chimera_with_as_many_micro_batches_as_stages(backward, wholes):
    assert {d: equal_form("chimera", (1, backward, 0), d, d) for d in wholes} == wholes


def test_unequal_stages_wait_for_the_slowest():
    """All stages once, and the slowest for every other micro-batch."""
    found = form("1f1b", [1, 1, 1, 2], [2, 2, 2, 3], p=4, m=10)
    assert found["total"] == 3 + 3 + 3 + 5 + 9 * 5


@pytest.mark.parametrize(
    ("schedule", "held", "v"),
    [
        ("gpipe", 32, 1),
        ("1f1b", 8, 1),
        ("interleaved", 8 + Fraction(7, 4), 4),
        ("zb-h1", 8, 1),
        ("zb-h2", 15, 1),
        ("zb-v", 8, 2),
        ("dualpipe", 9, 1),
        ("pipedream", 8, 1),
    ],
)
def test_micro_batches_held_on_the_first_of_eight_stages(schedule, held, v):
    """All of them; p; p (1 + (p - 1)/(p v)); p; 2 p - 1; p; p + 1; p."""
    assert in_flight(**sizes(schedule, 8, 32, v))["in_flight"][FIRST] == held


def test_interleaving_never_holds_more_than_there_are():
    assert in_flight(**sizes("interleaved", 8, 8, 4))["in_flight"][FIRST] == 8


# -- activations, logits ----------------------------------------------------------------------------


def test_gpt_3_before_fused_attention():
    """34 bytes a feature and 5 a score: 0.797 and 1.875 GiB a layer; two of the 34 are masks of dropout, which this step is without."""
    case = on("gpt3-175b", "dgx-a100:64", "zero=3", 2048, 64)
    without, found = case(), case(score_bytes=5)
    assert found["kept_scores"] / GIB == pytest.approx(1.875)
    printed = 34 * 2048 * 12288 / GIB
    assert printed == pytest.approx(0.797, abs=5e-4)
    statistics = 2048 * 4 * 96
    assert without["kept_layer"] - statistics == pytest.approx(printed * GIB * 32 / 34, rel=1e-12)


@pytest.mark.parametrize(("model", "layer", "all_layers"), [("llama-3-8b", 1.064, 34.0), ("llama-3-70b", 2.096, 167.7)])
def test_what_a_modern_block_keeps_of_8192_tokens(model, layer, all_layers):
    found = on(model, "dgx-h100:64", "zero=3", 8192, 64)()
    assert found["kept_layer"] / GIB == pytest.approx(layer, abs=6e-4)
    assert found["stage_activations"][FIRST][FORWARD] / GIB == pytest.approx(all_layers, rel=2e-3)


def test_70b_shared_by_eight_and_8b_run_again():
    """20.96 GiB a GPU with tp 8 and sequence parallelism; 2.0 GiB of inputs and 1.06 of the layer that is run again."""
    shared_by_eight = on("llama-3-70b", "dgx-h100:64", "tp=8 sp=1", 8192, 64)()
    assert shared_by_eight["stage_activations"][FIRST][FORWARD] / GIB == pytest.approx(20.96, abs=5e-3)
    again = on("llama-3-8b", "dgx-h100:8", "zero=3 recompute=full", 8192, 8)()
    assert again["stage_activations"][FIRST][FORWARD] / GIB == 2.0
    assert again["recomputed_layer"] / GIB == pytest.approx(1.064 - 2 / 32, abs=1e-3)


@pytest.mark.parametrize(("layout", "a_token"), [("tp=1", 139_400), ("tp=8 sp=0", 46_097), ("tp=8 sp=1", 17_425)])
def test_bytes_of_a_token_and_layer_of_8b(layout, a_token):
    """8 h + 4 q + 4 k + 6 f + 4 a, of which 8 h is not shared without sequence parallelism; 8 bytes of two norms are left out here."""
    found = on("llama-3-8b", "dgx-h100:8", layout, 8192, 8)()
    assert found["kept_layer"] / 8192 == pytest.approx(a_token, rel=1e-4, abs=8)


def test_what_a_layer_of_deepseek_v3_keeps_of_its_feed_forward():
    """369,664 bytes a token: the second norm's 28,672, the router's 1,024, of each of 8 experts two copies and 6 f, the shared 12,288."""
    found = on("deepseek-v3", "h800-cluster:1024", "ep=64", 4096, 1024)(
        row_copies=2, fused_row_copies=2, router_bytes=4
    )
    kept = {name: found[f"kept_{name}"] / 4096 for name in ("rows", "features", "router")}
    assert kept == {"rows": 8 * 4 * 7168, "features": 8 * 6 * 2048, "router": 1024}
    assert found["kept_outside"] / 4096 / 2 == 28_672
    assert 28_672 + sum(kept.values()) + 6 * 2048 == 369_664


def test_bytes_of_a_logit_as_measured():
    """1002.6 MiB of 2048 tokens and 50,257 words that an unfused loss held (NVIDIA/Megatron-LM issue 7220): 10 bytes a logit."""
    per_logit = CATALOG.recipe("deepspeed-zero3")["loss_bytes"].value
    assert per_logit * 2048 * 50_257 / 2**20 == pytest.approx(1002.6, rel=0.025)


def test_a_gradient_of_the_head_that_nobody_shares():
    """64,000 words of 4,096 features in fp32: the 1000 MiB that one allocation failed at (Lightning-AI/litgpt issue 684)."""
    case = on("llama-3-8b", "dgx-h100:8", "zero=3", 2048, 8).of(vocabulary=64_000)
    assert case(element_size=4)["unsharded_head_gradient"][FIRST] / 2**20 == 1000


# -- FLOPs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "teraflops"),
    [
        ("llama-2-7b", 1053.4),
        ("llama-2-13b", 2018.7),
        ("llama-2-70b", 10_528.0),
        ("mistral-7b", 1127.6),
        ("gemma-7b", 1328.2),
        ("gemma-2b", 391.8),
        ("mixtral-8x7b", 6946.5),
    ],
)
def test_flops_of_a_step_as_maxtext_counts(model, teraflops):
    """12 sequences of 2048 tokens, attention in full, the embedding free: MaxText, pull 644. It counted all experts of Mixtral."""
    shape = resolve_model(model, CATALOG)
    if shape.experts:
        shape = replace(shape, experts=replace(shape.experts, per_token=shape.experts.count))
    assert flop_counts(shape, 2048)["training_flops"] * 12 * 2048 / 1e12 == pytest.approx(teraflops, rel=7e-5)


def test_flops_of_the_experts_that_a_token_takes():
    found = flop_counts(resolve_model("mixtral-8x7b", CATALOG), 2048)["training_flops"]
    assert found * 12 * 2048 / 1e12 == pytest.approx(1958.9, rel=1e-4)
