"""What a library adds: with the hardware's own constants nothing, with round ones what the head says."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.generated import group_on_switches_by_library_math as library
from costmodel.generated import group_on_switches_math as ideal
from tests.equations.collectives.drawn import INFINITE, same
from tests.laws.test_group_laws import on_switches

GB, US = 10**9, Fraction(1, 10**6)
NOT_USED = {
    f"{protocol}_{what}": Fraction(0)
    for protocol in ("ll", "ll128")
    for what in ("start", "step", "share", "overhead", "ring_step", "tree_step", "nic_share")
}
NEUTRAL = {
    "dispatch_latency": Fraction(0),
    "added_latency": Fraction(0),
    "ll_rank_rate": Fraction(1),
    "simple_overhead": Fraction(0),
    "own_shard": Fraction(0),
    "own_block": Fraction(0),
    "exchange_ll_start": Fraction(0),
    "exchange_ll_share": Fraction(0),
}


def as_hardware(inputs):
    """The constants with which a library adds nothing to what the links do."""
    step = inputs["nic_latency"]
    return {
        "simple_start": inputs["launch_latency"],
        "simple_step": inputs["domain_latency"],
        "simple_share": inputs["domain_share"],
        "simple_ring_step": step,
        "simple_tree_step": step,
        "simple_nic_share": inputs["nic_share"],
        "in_network_start": inputs["launch_latency"] + 2 * inputs["domain_latency"],
        "in_network_share": inputs["nvls_share"],
        "exchange_start": inputs["launch_latency"],
        "exchange_share": inputs["domain_share"],
        "exchange_nic_share": inputs["nic_share"],
        "pair_share": inputs["domain_share"],
    }


def times(module, known):
    return module.times(**{name: known[name] for name in module.times.__annotations__ if name in known})


@given(on_switches())
def test_with_the_constants_of_the_hardware_it_adds_nothing(inputs):
    inputs = {name: Fraction(value) if name != "domain_kind" else value for name, value in inputs.items()}
    # One more switch between units takes what the links say, and a message is between two ranks of one link.
    inputs["unit_link_latency"] = inputs["nic_latency"]
    links = times(ideal, inputs)
    run = times(library, inputs | NOT_USED | NEUTRAL | as_hardware(inputs))
    for operation in ("all_gather", "reduce_scatter", "all_reduce"):
        assert run[f"{operation}_ring_ll"] == INFINITE
        assert same(run[f"{operation}_ring_simple"], links[f"{operation}_ring"])
    if inputs["n"] <= inputs["m"]:
        assert same(run["all_to_all_direct_simple_ports"], links["all_to_all_direct_ports"])
        if inputs["n"] > 2:
            assert same(run["all_reduce_nvls"], links["all_reduce_nvls"])
    elif inputs["n"] / inputs["m"] in (2, 4, 8, 16):
        assert same(run["all_reduce_tree_simple"], links["all_reduce_tree"])
    assert same(run["all_to_all_direct_simple_nics"], links["all_to_all_direct_nics"])
    assert run["send_recv_direct_ll"] == INFINITE


def round_number_machine(n, m, payload, **more):
    """Ports of 100 GB/s of which Simple gets half and LL a twentieth, NICs of 10 GB/s of which it gets half."""
    return {
        **NOT_USED,
        **NEUTRAL,
        "n": n,
        "m": m,
        "u": n,
        "S": payload,
        "domain_kind": 0,
        "domain_bandwidth": 100 * GB,
        "nics_per_host": 1,
        "chips_per_host": 1,
        "nic_bandwidth": 10 * GB,
        "unit_oversubscription": 1,
        "unit_levels_below": 0,
        "unit_link_latency": 0,
        "switch_latency": 0,
        "ll_start": 5 * US,
        "ll_step": US,
        "ll_share": Fraction(1, 20),
        "ll_ring_step": 2 * US,
        "ll_tree_step": 3 * US,
        "ll_nic_share": Fraction(1, 2),
        "ll_rank_rate": 5 * GB,
        "simple_start": 20 * US,
        "simple_step": 2 * US,
        "simple_share": Fraction(1, 2),
        "simple_ring_step": 10 * US,
        "simple_tree_step": 20 * US,
        "simple_nic_share": Fraction(1, 2),
        "simple_overhead": 3 * US,
        "own_shard": Fraction(1, 2),
        "in_network_start": 50 * US,
        "in_network_share": Fraction(1, 2),
        "exchange_start": 10 * US,
        "exchange_share": Fraction(1, 2),
        "exchange_nic_share": Fraction(1, 2),
        "pair_share": Fraction(4, 5),
        "tokens": 1,
        "dispatch_bytes": 0,
        "combine_bytes": 0,
        "experts": n,
        "chosen": 1,
        "node_limit": Fraction(n, m),
        **more,
    }


@pytest.mark.parametrize(
    ("n", "m", "payload", "name", "microseconds"),
    [
        # 20 us, 4 steps of 2 us; 4/5 of 5 MB and half of the own 1 MB at 50 GB/s.
        (5, 5, 5_000_000, "all_gather_ring_simple", 20 + 8 + 80 + 10),
        # Twice the steps and shards, the own one once.
        (5, 5, 5_000_000, "all_reduce_ring_simple", 20 + 16 + 160 + 10),
        # 5 us, 4 steps of 1 us; 4/5 of 50 kB at 5 GB/s.
        (5, 5, 50_000, "all_gather_ring_ll", 5 + 4 + 8),
        # 50 us; 6/5 of 5 MB at 50 GB/s.
        (5, 5, 5_000_000, "all_reduce_nvls", 50 + 120),
        # 10 us; 4/5 of 5 MB at 50 GB/s.
        (5, 5, 5_000_000, "all_to_all_direct_simple", 10 + 80),
        # 2 nodes of 4: 2 of 7 steps between them, 5 inside at the least of 3 us; 7/8 of 8 MB by 4 NICs of 5 GB/s.
        (8, 4, 8_000_000, "all_gather_ring_simple", 20 + 2 * 10 + 5 * 3 + 350),
        # 4 nodes of 2: a chain of one step and trees of two, there and back; 2 S/2 at 5 GB/s.
        (8, 2, 1_000_000, "all_reduce_tree_simple", 20 + 2 * 2 + 4 * 20 + 200),
        # As above without the chain; the switches' 3/2 MB at 50 GB/s hide behind the NICs.
        (8, 2, 1_000_000, "all_reduce_nvls_tree", 20 + 4 * 20 + 200),
        # The same steps at 2 and 1 us; 7/8 of 8 kB at the 5 GB/s that a rank sends at most.
        (8, 4, 8_000, "all_gather_ring_ll", 5 + 2 * 2 + 5 * 1 + Fraction(7, 5)),
        # To the neighbour at 80 GB/s.
        (2, 2, 8_000_000, "send_recv_direct_simple", 10 + 100),
        # To another node: 10 us more, at 5 GB/s.
        (2, 1, 1_000_000, "send_recv_direct_simple", 10 + 10 + 200),
    ],
)
def test_round_numbers(n, m, payload, name, microseconds):
    known = round_number_machine(n, m, payload)
    assert times(library, known)[name] == pytest.approx(float(microseconds * US), rel=1e-12)


def test_what_the_host_adds_comes_on_top():
    alone = times(library, round_number_machine(4, 4, 1000))
    started = times(library, round_number_machine(4, 4, 1000, dispatch_latency=22 * US))
    for operation in ("all_gather", "all_reduce", "all_to_all", "send_recv", "broadcast", "barrier"):
        assert same(started[operation], alone[operation] + 22 * US)


@given(st.integers(2, 9), st.integers(1, 9))
def test_a_protocol_without_a_share_is_not_used(n, nodes):
    found = times(library, round_number_machine(n * nodes, n, 1000, simple_share=Fraction(0), ll_nic_share=Fraction(0)))
    assert found["all_gather_ring_simple"] == INFINITE
    assert (found["all_gather_ring_ll"] == INFINITE) == (nodes > 1)
