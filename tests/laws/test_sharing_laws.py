"""Ranks that share weights in groups, copied to other groups (HSDP): between sharing with all and with none."""

from itertools import pairwise

import pytest
from hypothesis import assume, given, settings

from tests.equations.training.drawn import cases, decoder, divisors, on

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


def test_groups_inside_a_node_gather_on_its_links_and_sum_an_eighth_on_its_nics():
    """8.03e9 weights on 64 GPUs in groups of 8: each reduces 2 * 7/8 of its eighth, 2 GB, over the other nodes (3.51 GB sent)."""
    case = on("llama-3-8b", "dgx-h100:64", "zero=3 shard=8", 8192, 64)
    found = case(nic_share=1, gradient_wire_bytes=2)
    nic = found["nic_bandwidth"] * found["nics_per_host"] / 8
    sent = found["shares_of_stage_all_reduce"] - found["shares_of_stage_all_reduce_ring_latency"]
    assert sent * nic == pytest.approx(2 * 7 / 8 * found["heaviest_stage"] * 2 / 8, rel=0.05)
    assert found["weights_of_layer_all_gather_ring_nics"] == 0
    whole = case.laid(shard=0)()
    assert whole["weights_of_layer_all_gather"] > found["weights_of_layer_all_gather"]
    assert whole["allocated"] < found["allocated"]


def test_groups_are_for_slow_networks():
    """Where the network between nodes is a tenth and several micro-batches gather weights, groups of a node are faster."""
    model = decoder(layers=32, hidden_size=4096, ffn_size=14336, heads=32, kv_heads=8, head_size=128)
    case = on(model, "dgx-h100:64", "zero=3", 4096, 512)
    slow = {"nic_bandwidth": case.inputs["nic_bandwidth"] / 10}
    assert case.laid(shard=8)(**slow)["step_time"] < case(**slow)["step_time"]
