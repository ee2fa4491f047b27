"""Groups on machines of round numbers, to be worked out in the head, and what every algorithm of them must have."""

import pytest

from costmodel.equations.collectives.group_on_switches import ALGORITHMS_ON_SWITCHES, CollectivesOnSwitches
from costmodel.equations.collectives.group_on_torus import ALGORITHMS_ON_TORUS, CollectivesOnTorus
from costmodel.generated import group_on_switches_math, group_on_torus_math
from costmodel.symbolic import seconds

GROUPS = {
    "switches": (CollectivesOnSwitches.system, ALGORITHMS_ON_SWITCHES),
    "torus": (CollectivesOnTorus.system, ALGORITHMS_ON_TORUS),
}
REGISTRY = [
    (kind, operation, name)
    for kind, (_, algorithms) in GROUPS.items()
    for operation, names in algorithms.items()
    for name in names
]
RESOURCES = ("ports", "nics", "uplinks", "slowest", "links", "dcn")

NODES = {
    "launch_latency": 0,
    "domain_kind": 0,
    "domain_bandwidth": 400e9,
    "domain_share": 1,
    "domain_latency": 1e-6,
    "nic_bandwidth": 50e9,
    "nic_share": 1,
    "nics_per_host": 8,
    "chips_per_host": 8,
    "nic_latency": 5e-6,
    "unit_oversubscription": 1,
    "unit_link_latency": 10e-6,
    "unit_levels_below": 0,
    "switch_latency": 0,
    "nvls_share": 1,
    "tokens": 0,
    "dispatch_bytes": 0,
    "combine_bytes": 0,
    "experts": 64,
    "chosen": 1,
}
"""Nodes of eight on 400 GB/s, a 50 GB/s card for each rank."""

SLICE = {
    "launch_latency": 0,
    "link_bandwidth": 100e9,
    "link_share": 1,
    "hop_latency": 1e-6,
    "dcn_links_per_host": 4,
    "dcn_bandwidth": 5e9,
    "chips_per_host": 4,
    "host_link_bandwidth": 30e9,
    "dcn_share": 1,
    "dcn_latency": 10e-6,
    "twist": 0,
    "twist_side": 1,
    "tokens": 0,
    "dispatch_bytes": 0,
    "combine_bytes": 0,
    "experts": 64,
    "chosen": 1,
}
"""Links of 100 GB/s, 5 GB/s a chip between slices."""


def on_nodes(n, m, u, S, **more):
    return group_on_switches_math.times(**NODES | {"n": n, "m": m, "u": u, "S": S, "node_limit": n / m} | more)


def on_slice(x=1, y=1, z=1, *, rings=1, strides=1, slices=1, S=1e9, **more):
    sizes = {"size_x": x, "size_y": y, "size_z": z}
    shape = {f"{what}_{axis}": value for axis in "xyz" for what, value in (("ring", rings), ("stride", strides))}
    return group_on_torus_math.times(**SLICE | sizes | shape | {"slices": slices, "S": S} | more)


@pytest.mark.parametrize("kind", GROUPS)
def test_the_units_of_every_equation_balance(kind):
    assert GROUPS[kind][0].check() == []


@pytest.mark.parametrize(("kind", "operation", "name"), REGISTRY)
def test_an_algorithm_has_its_parts_and_a_source(kind, operation, name):
    system = GROUPS[kind][0]
    time = system[f"{operation}_{name}"]
    parts = [f"{time.name}_{resource}" for resource in RESOURCES if f"{time.name}_{resource}" in system.equations]
    assert all(system[part].unit == seconds for part in [time.name, f"{time.name}_latency", *parts])
    assert bool(parts) == (operation != "barrier")
    assert time.meaning
    assert time.source


@pytest.mark.parametrize("kind", GROUPS)
def test_the_fastest_is_among_those_that_are_listed(kind):
    system, algorithms = GROUPS[kind]
    for operation, names in algorithms.items():
        used = {name for name in system[operation].uses if name.startswith(f"{operation}_")}
        assert used <= {f"{operation}_{name}" for name in names}
        assert used


def test_eight_ranks_of_a_node():
    found = on_nodes(8, 8, 8, 8e9)
    assert found["all_gather_ring"] == pytest.approx(7e-6 + 7e9 / 400e9)
    assert found["all_gather_direct"] == pytest.approx(1e-6 + 7e9 / 400e9)
    assert found["all_reduce_ring"] == pytest.approx(14e-6 + 14e9 / 400e9)
    assert found["all_reduce_nvls"] == pytest.approx(2e-6 + 9e9 / 400e9)
    assert found["all_to_all_direct"] == pytest.approx(1e-6 + 7e9 / 400e9)
    assert found["send_recv"] == pytest.approx(1e-6 + 8e9 / 400e9)
    assert found["broadcast_nvls"] == pytest.approx(1e-6 + 8e9 / 400e9)


def test_four_whole_nodes():
    found = on_nodes(32, 8, 32, 32e9)
    assert found["all_gather_hierarchical"] == pytest.approx(7e-6 + 15e-6 + 28e9 / 400e9 + 3e9 / 50e9)
    assert found["all_gather_pipelined"] == pytest.approx(7e-6 + 15e-6 + 28e9 / 400e9)
    assert found["all_gather_ring_nics"] == pytest.approx(31e9 / 8 / 50e9)
    assert found["all_gather_ring_latency"] == pytest.approx(27e-6 + 4 * 5e-6)
    assert found["all_to_all_direct_nics"] == pytest.approx(24e9 / 50e9)
    assert found["all_reduce_sharp_nics"] == pytest.approx(4e9 / 50e9)
    assert found["barrier_hierarchical"] == pytest.approx(3e-6 + 2 * 5e-6)


def test_one_rank_a_node_shares_nothing():
    found = on_nodes(128, 1, 128, 128e9)
    assert found["all_gather_ring"] == pytest.approx(127 * 5e-6 + 127e9 / 50e9)
    assert found["all_gather_hierarchical_log"] == pytest.approx(7 * 5e-6 + 127e9 / 50e9)
    assert found["all_gather_ring_ports"] == 0


def test_a_full_mesh_has_a_link_for_each_pair():
    found = on_nodes(8, 8, 8, 8e9, domain_kind=1, domain_bandwidth=50e9, nvls_share=0)
    assert found["all_gather_direct"] == pytest.approx(1e-6 + 1e9 / 50e9)
    assert found["send_recv"] == pytest.approx(1e-6 + 8e9 / 50e9)
    assert found["all_reduce_nvls"] == float("inf")
    two = on_nodes(2, 2, 2, 8e9, domain_kind=1, domain_bandwidth=50e9, nvls_share=0)
    assert two["all_gather_direct"] == pytest.approx(1e-6 + 4e9 / 50e9)


def test_an_oversubscribed_spine_binds_what_crosses_it():
    plain, tight = (on_nodes(64, 8, 32, 64e9, unit_oversubscription=o) for o in (1, 4))
    assert tight["all_to_all_direct_uplinks"] == pytest.approx(32e9 / 50e9 * 4)
    assert plain["all_to_all"] < tight["all_to_all"]
    assert plain["all_gather_hierarchical_nics"] == tight["all_gather_hierarchical_nics"]
    inside = on_nodes(32, 8, 32, 64e9, unit_oversubscription=4)
    assert inside["all_to_all_direct_uplinks"] == 0


def test_experts_are_sent_one_copy_a_place():
    router = {"tokens": 1000, "dispatch_bytes": 10_000, "combine_bytes": 20_000, "experts": 64, "chosen": 8}
    found = on_nodes(64, 8, 64, 0, **router)
    assert found["dispatch_per_expert_nics"] == pytest.approx(1000 * 10_000 * 8 * 7 / 8 / 50e9)
    assert found["dispatch_per_rank_nics"] == pytest.approx(found["dispatch_per_expert_nics"])
    assert found["dispatch_per_node_nics"] < found["dispatch_per_rank_nics"]
    assert found["combine_per_expert_nics"] == pytest.approx(2 * found["dispatch_per_expert_nics"])
    limited = on_nodes(64, 8, 64, 0, **router | {"node_limit": 1})
    assert limited["dispatch_per_node_nics"] == pytest.approx(1000 * 10_000 * 7 / 8 / 50e9)


def test_axes_add():
    one, two, three = (on_slice(*shape) for shape in ((8,), (8, 8), (8, 8, 8)))
    assert one["all_gather_equal_split"] == pytest.approx(4e-6 + 1e9 * 7 / 8 / 200e9)
    assert two["all_gather_equal_split"] == pytest.approx(8e-6 + 1e9 * 63 / 64 / 400e9)
    assert three["all_reduce_equal_split"] == pytest.approx(24e-6 + 2e9 * 511 / 512 / 600e9)
    assert two["all_gather_one_order_links"] == pytest.approx(2 * two["all_gather_equal_split_links"])


def test_a_line_has_half_the_links_and_twice_the_hops():
    ring, line = on_slice(8), on_slice(8, rings=0)
    assert line["all_gather_equal_split_links"] == pytest.approx(2 * ring["all_gather_equal_split_links"])
    assert line["all_gather_equal_split_latency"] == pytest.approx(7e-6)
    assert line["all_to_all_direct_links"] == pytest.approx(2 * ring["all_to_all_direct_links"])


def test_interleaved_groups_share_the_cables():
    near, far = on_slice(4), on_slice(4, strides=4)
    assert far["all_gather_equal_split_links"] == pytest.approx(4 * near["all_gather_equal_split_links"])
    assert far["send_recv_direct"] == pytest.approx(4e-6 + 4e9 / 100e9)


def test_slices_exchange_each_chips_own_share():
    found = on_slice(8, 8, 8, slices=4, S=512e9)
    assert found["all_gather_equal_split_dcn"] == pytest.approx(3 / 4 * 1e9 / 5e9)
    assert found["all_reduce_equal_split_dcn"] == pytest.approx(2 * 3 / 4 * 1e9 / 5e9)
    assert found["all_to_all_direct_dcn"] == pytest.approx(3 / 4 * 512e9 / 5e9)
    assert found["all_gather_book"] == float("inf")


def test_the_book_takes_the_larger_part():
    long, short = on_slice(8, 8, S=64e9), on_slice(8, 8, S=64)
    assert long["all_gather_book"] == pytest.approx(64e9 / 400e9)
    assert short["all_gather_book"] == pytest.approx(8e-6)
    node = on_nodes(8, 8, 8, 8e9)
    assert node["all_reduce_book"] == pytest.approx(2 * 7e9 / 400e9)
