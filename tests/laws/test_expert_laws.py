"""What a training step of a model with experts obeys."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.catalog.counts import parameter_counts
from costmodel.equations.axes import DISPATCH, EXPERT_OVERLAP, INNER_AXES, MATMUL
from costmodel.equations.evaluation import STEPS, reported
from costmodel.errors import InputError
from costmodel.runtime import call
from costmodel.search.routing import ExpertRouting, parse_routing
from costmodel.studies.estimate import TIME_ITEMS
from costmodel.symbolic import compile_math
from tests.equations.training.drawn import cases, decoder, divisors, mixture, on

few = settings(max_examples=settings.default.max_examples // 2)
EXACT = 1e-12


@st.composite
def mixtures(draw, **limits):
    """A dense case that keeps every rule, and experts in its layers that its ranks can share."""
    case = draw(cases(most_tp=4, most_cp=2, **limits))
    layout, model = case.layout, case.workload.model
    etp = draw(st.sampled_from(divisors(layout.tp, 4)))
    ep = draw(st.sampled_from(divisors(layout.tp * layout.cp * layout.dp // etp, 8)))
    experts = ep * draw(st.integers(1, 4))
    per_token = draw(st.integers(1, min(experts, 4)))
    shared = draw(st.integers(0, 1))
    first = draw(st.integers(0, model.layers - 1))
    sizes = {
        name: getattr(model, name) for name in ("layers", "hidden_size", "ffn_size", "heads", "kv_heads", "head_size")
    }
    held = mixture(
        experts, per_token, etp * 64 * draw(st.integers(1, 8)), shared, first, gated_ffn=model.gated_ffn, **sizes
    )
    if shared:
        held = replace(held, experts=replace(held.experts, shared_ffn_size=layout.tp * 64))
    # Only a layer without experts has a dense feed-forward to run again.
    again = "core_attn" if not first and "mlp" in layout.recompute.partition("/")[0].split("+") else layout.recompute
    changed = case.laid(
        recompute=again,
        ep=ep,
        etp=etp,
        sequence_parallel=layout.tp > 1,
        ep_overlap=draw(st.sampled_from(EXPERT_OVERLAP)),
        dispatch=draw(st.sampled_from(DISPATCH)),
    )
    return changed.on(model=held)


@few
@given(mixtures())
def test_a_drawn_case_is_legal_and_its_items_add_up(case):
    found = case()
    assert [name for name in found if name.startswith("rule_") and found[name] != 1] == []
    assert sum(found[f"time_{item}"] for item in TIME_ITEMS) == pytest.approx(found["step_time"], rel=EXACT)
    assert 0 < found["step_time"] < float("inf")
    assert min(found[f"time_{item}"] for item in TIME_ITEMS) >= 0


@few
@given(mixtures())
def test_all_ranks_together_hold_every_weight_as_often_as_it_is_copied(case):
    """Routed experts once for each of their replicas; one stage, where no table is copied between stages."""
    one = case.laid(pp=1, virtual_stages=1, schedule="1f1b", dp=case.layout.dp * case.layout.pp)
    found, layout = one(), one.layout
    counts = parameter_counts(one.workload.model)
    ranks = layout.tp * layout.cp * layout.dp
    replicas = ranks / (layout.ep * layout.etp)
    assert found["stage_experts"][0] * ranks == pytest.approx(counts["routed_expert_parameters"] * replicas, rel=EXACT)
    if layout.tp == 1:
        padding = (found["padded_vocabulary"] - one.workload.model.vocabulary) * one.workload.model.hidden_size
        tables = 1 if one.workload.model.tied_embeddings else 2
        held = counts["parameters"] - counts["routed_expert_parameters"] + tables * padding
        assert found["stage_parameters"][0] == pytest.approx(held, rel=EXACT)


@few
@given(mixtures(), st.floats(1, 4))
def test_a_busier_rank_takes_longer_and_keeps_more(case, imbalance):
    skewed = case.on(routing=ExpertRouting(imbalance=imbalance))()
    even = case()
    assert skewed["step_time"] >= even["step_time"] * (1 - EXACT)
    assert skewed["allocated"] >= even["allocated"] * (1 - EXACT)
    dropped = case.on(routing=ExpertRouting(imbalance=imbalance, capacity=1))()
    assert dropped["step_time"] == pytest.approx(even["step_time"], rel=EXACT)


@few
@given(mixtures())
def test_what_shows_of_the_exchanges_lies_between_nothing_and_all(case):
    found = case()
    assert 0 <= found["time_ep"] <= found["total_ep"] * (1 + EXACT)
    alone = case.laid(ep_overlap="none")()
    assert alone["time_ep"] == pytest.approx(alone["total_ep"], rel=EXACT)
    assert found["step_time"] <= alone["step_time"] * (1 + EXACT)


@few
@given(mixtures(), st.floats(0.05, 1))
def test_fused_kernels_send_no_byte_faster_than_the_links_attain(case, factor):
    """Fusing saves starts and passes at most: what remains of an exchange at a factor of next to nothing bounds it from below."""
    plain, fused, wire = case(expert_path_factor=1), case(expert_path_factor=factor), case(expert_path_factor=1e-12)
    for way in ("experts_there", "experts_back"):
        assert fused[way] == pytest.approx(max(factor * plain[way], wire[way]), rel=EXACT)
        assert (wire[way] > 0) == (case.layout.ep > 1)
    assert fused["total_ep"] >= wire["total_ep"] > 0 or case.layout.ep * case.layout.etp == 1


def test_bytes_over_a_port_in_round_numbers():
    """Mixtral on one DGX H100, 4,096 tokens a rank: 7 of 8 copies of two, 4096 features in bf16, over what 450 GB/s attain."""
    case = on("mixtral-8x7b", "dgx-h100:8", "ep=8 dp=8 dispatch=expert mbs=1", 4096, 8)
    wire = case(expert_path_factor=1e-12)["experts_back"]
    attained = case.inputs["domain_bandwidth"] * case.inputs["domain_share"]
    assert attained < 450e9
    assert wire == pytest.approx(4096 * 2 * 7 / 8 * 4096 * 2 / attained, rel=1e-9)


@few
@given(mixtures())
def test_eight_bits_on_the_way_there_take_no_longer(case):
    narrow = case.on(routing=ExpertRouting(dispatch_dtype="fp8"))()
    assert narrow["total_ep"] <= case()["total_ep"] * (1 + EXACT)


@pytest.mark.parametrize("layout", ["", "tp=4", "tp=2 pp=2", "zero=3"])
def test_one_expert_is_a_dense_feed_forward_but_for_the_router(layout):
    """With etp = tp, no traffic of sorting and rows that fill whole tiles: the same products, weights and bytes."""
    size = 4096
    dense = on(decoder(ffn_size=size), "dgx-h100:8", layout, 1024, 8)
    tp = dense.layout.tp
    one = on(mixture(1, 1, size, ffn_size=size), "dgx-h100:8", layout, 1024, 8).laid(etp=tp)
    plain = {
        "row_bytes": 0,
        "sorted_token_bytes": 0,
        "expert_traffic_factor": dense.inputs["elementwise_traffic_factor"],
    }
    kept = dict.fromkeys(
        ("router_bytes", "row_copies", "fused_row_copies", "weighing_copies", "grouped_workspace_bytes"), 0
    )
    found, wanted = one(**plain, **kept), dense()
    router = 1024 * 1
    layers = max(wanted["stage_layers"])
    assert max(found["stage_experts"]) + max(found["stage_parameters"]) - layers * router == max(
        wanted["stage_parameters"]
    )
    passes = found["layer_passes"]
    routing = sum(row[MATMUL.labels.index("router")] for row in found["taken"])
    assert found["time_matmul"] - passes * routing == pytest.approx(wanted["time_matmul"], rel=1e-9)
    assert found["time_elementwise"] == pytest.approx(wanted["time_elementwise"], rel=1e-3)
    assert found["memory_activations"] == pytest.approx(wanted["memory_activations"], rel=1e-9)


@cache
def whole(fabric):
    """The equations of any model on a kind of machine, as code, and the names of what is reported."""
    system = STEPS[fabric].system
    return compile_math(system, reported(system), looped=INNER_AXES), frozenset(reported(system))


@few
@given(cases(most_cp=2))
def test_what_is_known_of_dense_models_beforehand_changes_no_number(case):
    """The equations in which there are no experts are the general ones with none."""
    general, names = whole(case.workload.machine.fabric)
    found = call(general, case.inputs)
    for name, value in case().items():
        if name in names:
            assert np.allclose(found[name], value, rtol=EXACT, atol=0), name


@pytest.mark.parametrize(
    ("on_", "layout", "members"),
    [
        ("h800-cluster:2048", "tp=1 pp=16 dp=128 ep=64", (8, 1)),  # eight members a node; its two replicas apart
        ("dgx-h100:128", "tp=2 pp=1 dp=64 ep=32 etp=2 zero=1", (4, 1)),
        ("dgx-h100:128", "tp=8 pp=1 dp=16 ep=8 etp=1 zero=1", (8, 1)),
        ("dgx-h100:128", "tp=4 pp=1 dp=32 ep=2 etp=1 zero=1", (2, 4)),
    ],
)
def test_experts_lie_on_the_inner_ranks_of_a_stage(on_, layout, members):
    """Megatron-core's order etp-ep-edp, counted on lists of ranks."""
    found = on(mixture(64, 8, 1024, layers=16), on_, layout, 1024, 4096)()
    assert (found["domain_ep"], found["domain_experts"]) == members


def test_dispatch_of_deepseek_v3_by_expert_and_node():
    """4,096 tokens to 8 of 256 experts on 64 ranks in 8 nodes, at most 4 of them: at one byte a feature 231 MB to experts, of
    which seven in eight leave the node; by node 3.18 copies leave instead of 7."""
    case = on("deepseek-v3", "h800-cluster:1024", "tp=1 pp=1 dp=1024 ep=64", 4096, 1024)
    found = case.on(routing=ExpertRouting(dispatch_dtype="fp8"))()
    sent = 4096 * 8 * 7168
    assert found["tokens_there_sent_routed_per_expert"] == pytest.approx(sent * 63 / 64)
    assert found["tokens_there_sent_routed_per_expert_off_node"] == pytest.approx(sent * 7 / 8)
    assert found["tokens_there_sent_routed_per_node_off_node"] / (4096 * 7168) == pytest.approx(3.18, abs=0.01)


@pytest.mark.parametrize(
    ("layout", "domains", "reached"),
    [
        ("ep=64", 4, 3.63),  # a node is a group
        ("ep=128", 8, 5.34),  # a group lies on two nodes: 8 * (1 - C(112, 8) / C(128, 8))
        ("ep=256", 16, 6.60),
        ("ep=64 etp=8", 32, 7.36),  # every expert-parallel rank on a node of its own
        ("ep=8", 1, 1),
    ],
)
def test_groups_of_experts_lie_on_one_node_or_several(layout, domains, reached):
    """DeepSeek-V3's router takes 4 of 8 groups of 32 experts, whatever nodes they lie on; draws counted by hand."""
    found = on("deepseek-v3", "dgx-h100:1024", f"{layout} dp=1024", 4096, 1024)()
    assert found["node_limit"] == domains
    assert found["tokens_there_sent_routed_nodes_reached"] == pytest.approx(reached, abs=0.005)


def test_routing_in_words():
    assert parse_routing("imbalance=1.5 capacity=1.25 dispatch=fp8") == ExpertRouting(1.5, 1.25, "fp8")
    assert parse_routing("") == ExpertRouting()
    for text, said in {
        "imbalance": "not key=value",
        "imbalanced=2": "did you mean imbalance",
        "imbalance=0.5": "from 1 to 1000",
        "imbalance=nan": "from 1 to 1000",
        "dispatch=fp9": "fp8",
        "capacity=2 capacity=3": "twice",
    }.items():
        with pytest.raises(InputError, match=said):
            parse_routing(text)


def test_a_rank_with_all_experts_is_never_busier_than_the_mean():
    case = on(mixture(), "dgx-h100:8", "ep=1 zero=1", 1024, 8)
    skewed = case.on(routing=ExpertRouting(imbalance=20))
    assert skewed()["step_time"] == case()["step_time"]
    spread = case.laid(ep=4)
    most = spread.on(routing=ExpertRouting(imbalance=1000))()
    assert most["busiest"] == 4


@pytest.mark.parametrize("ends", ["", "first=5 last=3", "first=3 last=5", "first=2 last=6"])
def test_the_slowest_stage_is_one_stage(ends):
    """Gradients and optimizer of each stage, dense weights and experts of its own, worked out one by one: the largest counts."""
    model = mixture(64, 8, 1024, first_layer=3, layers=16, vocabulary=200_000)
    found = on(model, "dgx-h100:64", f"pp=4 ep=8 zero=1 {ends}", 1024, 512)()
    assert found["legal"] == 1
    stages = [*zip(found["stage_parameters"], found["stage_experts"], strict=True)]
    for whole, routed, counted in (
        ("scattered_of_stage_reduce_scatter", "scattered_experts_of_stage_reduce_scatter", "sync_one_reduction"),
        ("weights_of_stage_all_gather", "experts_of_stage_all_gather", "sync_weight"),
    ):
        dense, experts = found[whole] / found["heaviest_stage"], found[routed] / found["heaviest_experts"]
        slowest = max(d * dense + e * experts for d, e in stages)
        assert found[counted] / found["dp_wire_factor"] == pytest.approx(slowest)
        assert slowest <= (found[whole] + found[routed]) * (1 + EXACT)
        assert slowest >= max(found[whole], found[routed]) * (1 - EXACT)
    shards = found["optimizer_shards"], found["expert_optimizer_shards"]
    assert found["owned_parameters"] == pytest.approx(max(d / shards[0] + e / shards[1] for d, e in stages))


def test_the_first_stage_of_deepseek_v3_has_the_embedding_and_the_middle_ones_the_experts():
    """Three dense layers and the embedding first: 2.9e9 dense weights and a quarter of the experts that the others have."""
    found = on("deepseek-v3", "dgx-h100:2048", "pp=16 ep=64 zero=1 first=4 last=1", 4096, 16384)()
    dense, experts = found["scattered_of_stage_reduce_scatter"], found["scattered_experts_of_stage_reduce_scatter"]
    middle = found["stage_parameters"][1] / found["stage_parameters"][0] * dense + experts
    assert found["stage_experts"][0] == found["stage_experts"][1] / 4
    assert found["sync_one_reduction"] == pytest.approx(found["dp_wire_factor"] * middle)
    assert middle < 0.7 * (dense + experts)
