"""Ranks that share weights in groups, copied to other groups (HSDP): between sharing with all and with none."""

from itertools import pairwise

import pytest
from hypothesis import assume, given, settings

from tests.equations.training.drawn import cases, decoder, divisors, mixture, on

few = settings(max_examples=settings.default.max_examples // 2)
EXACT = 1e-12
STATES = ("stage_weights", "stage_gradients", "stage_optimizer")


@few
@given(cases(most_cp=2, least_dp=2))
def test_one_group_of_all_is_what_sharing_with_all_is(case):
    assume(case.layout.zero > 0)
    replicas = case.layout.dp * case.layout.cp
    found, wanted = case.laid(shard=replicas)(), case()
    assert found["step_time"] == pytest.approx(wanted["step_time"], rel=EXACT)
    assert found["allocated"] == pytest.approx(wanted["allocated"], rel=EXACT)
    assert found["sync_across_groups"] == 0


@few
@given(cases(most_cp=2, least_dp=2))
def test_larger_groups_hold_less(case):
    assume(case.layout.zero > 0)
    sizes = [size for size in divisors(case.layout.dp * case.layout.cp, 4096) if size > 1]
    held = [case.laid(shard=size)() for size in sizes]
    for smaller, larger in pairwise(held):
        assert larger["allocated"] <= smaller["allocated"] * (1 + EXACT)
        for state in STATES:
            assert max(larger[state]) <= max(smaller[state]) * (1 + EXACT)


@pytest.mark.parametrize(("layout", "sharing"), [("ep=8", 2), ("ep=4 etp=2", 2), ("ep=16", 1), ("ep=8 tp=2 sp=1", 4)])
def test_experts_are_in_as_many_groups_as_all_else(layout, sharing):
    """64 GPUs in groups of 16 replicas: a group holds every expert once or more, and shares each among its own copies."""
    case = on(mixture(experts=64), "dgx-h100:64", f"{layout} zero=3 shard=16", 4096, 64)
    found, whole = case(), case.laid(zero=0, shard=0)()
    assert found["legal"] == 1
    assert found["expert_sharing_ranks"] == sharing
    assert found["expert_replicas"] / sharing == found["replicas"] / 16
    assert found["heaviest_experts"] / found["expert_weight_shards"] == whole["heaviest_experts"] / sharing


def test_groups_inside_a_node_gather_on_its_links_and_sum_an_eighth_on_its_nics():
    """8.03e9 weights on 64 GPUs in groups of 8: each reduces 2 * 7/8 of its eighth, 2 GB, over the other nodes (3.51 GB sent)."""
    case = on("llama-3-8b", "dgx-h100:64", "zero=3 shard=8", 8192, 64)
    found = case(nic_share=1, gradient_wire_bytes=2)
    nic = found["nic_bandwidth"] * found["nics_per_host"] / 8
    sent = found["shares_of_stage_ideal_all_reduce_hierarchical_nics"]
    assert sent * nic == pytest.approx(2 * 7 / 8 * found["heaviest_stage"] * 2 / 8, rel=0.05)
    assert found["weights_of_layer_ideal_all_gather_hierarchical_nics"] == 0
    whole = case.laid(shard=0)()
    assert whole["weights_of_layer_all_gather"] > found["weights_of_layer_all_gather"]
    assert whole["allocated"] < found["allocated"]


def test_groups_are_for_slow_networks():
    """Where the network between nodes is a tenth and several micro-batches gather weights, groups of a node are faster."""
    model = decoder(layers=32, hidden_size=4096, ffn_size=14336, heads=32, kv_heads=8, head_size=128)
    case = on(model, "dgx-h100:64", "zero=3", 4096, 512)
    slow = {"nic_bandwidth": case.inputs["nic_bandwidth"] / 10}
    assert case.laid(shard=8)(**slow)["step_time"] < case(**slow)["step_time"]


def test_traffic_that_shows_on_the_same_links_leaves_less_to_hide_behind():
    """Inside a node FSDP shares the ports with tensor parallelism; over nodes it has the NICs for itself."""
    model = decoder(layers=32, hidden_size=4096, ffn_size=14336, heads=32, kv_heads=8, head_size=128)
    inside = on(model, "dgx-h100:8", "tp=2 zero=3", 4096, 8)()
    across = on(model, "dgx-h100:64", "tp=8 zero=3", 4096, 64)()
    assert inside["tp_shares_links"] == 1
    assert across["tp_shares_links"] == 0
    assert inside["links_taken_forward"] == inside["tensor_exposed_forward"] > 0
    assert across["links_taken_forward"] == 0
    slow = {"domain_bandwidth": inside["domain_bandwidth"] / 20}
    slowed = on(model, "dgx-h100:8", "tp=2 zero=3", 4096, 8)(**slow)
    hidden = slowed["sharded_forward"] - slowed["sharded_exposed_forward"]
    most = slowed["fsdp_hidden_share"] * (slowed["layer_forward"] - slowed["tensor_exposed_forward"])
    assert hidden == pytest.approx(min(most, slowed["fsdp_hidden_share"] * slowed["sharded_forward"]), rel=EXACT)


def test_groups_on_one_axis_of_a_torus_share_its_links():
    """tp along X and FSDP along Y and Z have links of their own; on one axis they share."""
    model = decoder(layers=8, hidden_size=4096, ffn_size=16384, heads=32, kv_heads=8, head_size=128)
    apart = on(model, "tpu-v5p:4x4x4", "tp=4 zero=3 placement=x:tp4/y:dp4/z:dp4", 4096, 64)()
    mixed = on(model, "tpu-v5p:4x4x4", "tp=2 zero=3 placement=x:tp2.dp2/y:dp4/z:dp4", 4096, 64)()
    assert (apart["tp_shares_links"], mixed["tp_shares_links"]) == (0, 1)


def test_sums_over_groups_wait_for_traffic_on_their_own_links():
    """Groups inside NVLink domains share the ports with tp, but what ends a step of theirs is summed over the NICs, which tp leaves free."""
    model = decoder(layers=32, hidden_size=4096, ffn_size=14336, heads=32, kv_heads=8, head_size=128)
    case = on(model, "gb200-nvl72:16x64", "tp=4 zero=3 shard=8", 4096, 1024)
    found = case()
    assert (found["tp_shares_links"], found["tp_shares_across"], found["links_tp_shares_sync"]) == (1, 0, 0)
    assert found["links_taken_backward"] > found["links_taken_sync"] == 0
    assert found["free_for_sync"] == found["layer_backward"] > found["free_backward"]
    slow = case(nic_bandwidth=found["nic_bandwidth"] / 20)
    hidden = slow["sync_gradient"] - slow["sync_exposed_gradient"]
    window = slow["dp_hidden_share"] * slow["mean_layers"] * slow["layer_backward"]
    assert hidden == pytest.approx(min(window, slow["dp_hidden_share"] * slow["sync_gradient"]), rel=EXACT)


def test_where_gradients_are_scattered_before_they_are_summed_both_links_count():
    model = decoder(layers=32, hidden_size=4096, ffn_size=14336, heads=32, kv_heads=8, head_size=128)
    found = on(model, "gb200-nvl72:16x64", "tp=4 zero=1 shard=8", 4096, 1024)()
    assert (found["tp_shares_links"], found["tp_shares_across"], found["links_tp_shares_sync"]) == (1, 0, 1)
    model = decoder(layers=8, hidden_size=4096, ffn_size=16384, heads=32, kv_heads=8, head_size=128)
    torus = on(model, "tpu-v5p:4x4x4", "tp=2 zero=1 shard=4 placement=x:dp4/y:dp4/z:tp2.dp2", 4096, 64)()
    assert (torus["tp_shares_links"], torus["tp_shares_across"], torus["links_tp_shares_sync"]) == (0, 1, 1)
    assert torus["links_taken_sync"] > torus["links_taken_backward"] == 0


@few
@given(cases(most_cp=2, least_dp=2))
def test_without_groups_only_the_links_of_all_count(case):
    found = case()
    assert (found["tp_shares_across"], found["cp_shares_across"]) == (0, 0)
    if case.layout.zero < 3:
        assert found["free_for_sync"] == found["free_backward"]


@pytest.mark.parametrize(
    ("where", "layout", "shares"),
    [
        (
            "h800-cluster:32",
            "tp=8 zero=3 shard=2",
            1,
        ),  # groups of two nodes, summed over both pairs: the NICs carry all
        ("h800-cluster:32", "tp=1 zero=3 shard=8", 0),  # groups inside nodes
        ("h800-cluster:32", "tp=1 zero=3", 0),  # one group
        ("tpu-v5p:4x4x4", "tp=4 zero=3 shard=4 placement=x:tp4/y:dp4/z:dp4", 0),
        ("tpu-v5p:4x4x4", "tp=4 zero=3 shard=8 placement=x:tp4/y:dp4/z:dp4", 1),
    ],
)
def test_a_link_carries_the_sums_over_groups_or_what_a_group_gathers(where, layout, shares):
    """What FSDP takes of the last backward pass is not there for the sums to hide behind, where both need the same links."""
    model = decoder(layers=32, hidden_size=4096, ffn_size=14336, heads=32, kv_heads=8, head_size=128)
    found = on(model, where, layout, 4096, 64)()
    assert found["fsdp_shares_across"] == shares
    taken = min(found["sharded_backward_once"], found["free_backward"]) if shares else 0
    assert found["free_for_sync"] == pytest.approx(
        found["layer_backward"] - found["links_taken_sync"] - taken, rel=EXACT
    )


def test_hybrid_sharding_gains_nothing_from_running_again_what_fits():
    model = decoder(layers=80, hidden_size=8192, ffn_size=28672, heads=64, kv_heads=8, head_size=128)
    case = on(model, "h800-cluster:32", "tp=8 zero=3 shard=2", 4096, 4)
    assert case()["step_time"] < case.laid(recompute="full")()["step_time"]
