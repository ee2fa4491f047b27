"""Groups of ranks counted against lists of ranks, and as inputs of the equations."""

from collections import Counter
from math import inf, lcm

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.topology import groups
from costmodel.topology.machine import parse_machine
from tests.topology.hand_made import CATALOG

degrees = st.integers(1, 12) | st.sampled_from([16, 24, 72])
strides = st.integers(1, 12) | st.sampled_from([16, 24, 96])
blocks = st.sampled_from([4, 6, 8, 12, 16, 18, 32, 72])


def ranks_of_groups(degree, stride, world):
    period = degree * stride
    return [
        [high + low + j * stride for j in range(degree)] for high in range(0, world, period) for low in range(stride)
    ]


@given(degrees, strides, blocks)
@example(3, 1, 8)
@example(64, 1, 72)
@example(16, 4, 72)
def test_members_against_lists_of_ranks(degree, stride, block):
    world = lcm(degree * stride, block)
    assume(world <= 20_000)
    counts = [Counter(rank // block for rank in ranks) for ranks in ranks_of_groups(degree, stride, world)]
    members = [member for count in counts for member in count.values()]
    assert groups.members_in_block(degree, stride, block) == (min(members), max(members))


@pytest.mark.parametrize(
    ("on", "group", "stride", "expected"),
    [
        ("dgx-h100:512", None, 1, (512, 8, 256)),
        ("dgx-h100:512", 8, 1, (8, 8, 8)),
        ("dgx-h100:512", 64, 8, (64, 1, 32)),
        ("dgx-h100:512", 16, 2, (16, 4, 16)),
        ("dgx-h100:16", 12, 1, (12, 4, 12)),
        ("dgx-h100:5", None, 1, (5, 5, 5)),
        ("dgx-h100:8", 3, 1, (3, 3, 3)),
        ("dgx-h100:16", 3, 1, (3, 1, 3)),
        ("dgx-h100:296", None, 1, (296, 8, 296)),
        ("gb200-nvl72:512", None, 1, (512, 64, 512)),
        ("dgx-h100", 1, 1, (1, 1, 1)),
    ],
)
def test_groups_on_switches(on, group, stride, expected):
    found = groups.group_descriptors(parse_machine(on, 1, CATALOG), group=group, stride=stride)
    assert (found["n"], found["m"], found["u"]) == expected


@pytest.mark.parametrize(
    ("on", "group", "axes", "sizes", "rings"),
    [
        ("tpu-v5p:8x8x16", None, None, (8, 8, 16), (1, 1, 1)),
        ("tpu-v5p:8x8x16", None, "z", (1, 1, 16), (0, 0, 1)),
        ("tpu-v5p:8x8x16", None, "XZ", (8, 1, 16), (1, 0, 1)),
        ("tpu-v5p:8x8x16", 4, None, (4, 1, 1), (0, 0, 0)),
        ("tpu-v5p:8x8x16", 16, None, (8, 2, 1), (1, 0, 0)),
        ("tpu-v5p:8x8x16", 32, "zx", (2, 1, 16), (0, 0, 1)),
        ("tpu-v5p:2x2x4", None, None, (2, 2, 4), (0, 0, 0)),
        ("tpu-v6e:8x16", None, None, (8, 16, 1), (0, 1, 0)),
        ("tpu-v6e:8x16", 1, None, (1, 1, 1), (0, 0, 0)),
    ],
)
def test_groups_on_a_torus(on, group, axes, sizes, rings):
    found = groups.group_descriptors(parse_machine(on, 1, CATALOG), group=group, axes=axes)
    assert tuple(found[f"size_{axis}"] for axis in "xyz") == sizes
    assert tuple(found[f"ring_{axis}"] for axis in "xyz") == rings
    assert tuple(found[f"stride_{axis}"] for axis in "xyz") == (1, 1, 1)
    assert found["slices"] == 1


def test_groups_over_slices():
    machine = parse_machine("tpu-v5p:4x4x4", 6, CATALOG)
    spans = {axes: groups.torus_group(machine, axes=axes) for axes in (None, "xyz", "slices", "x+slices")}
    assert [found["slices"] for found in spans.values()] == [6, 1, 6, 6]
    assert [found["size_y"] for found in spans.values()] == [4, 4, 1, 1]
    assert groups.torus_group(machine, group=128)["slices"] == 2


@pytest.mark.parametrize(
    ("on", "asked", "said"),
    [
        ("dgx-h100:16", {"group": 17}, "from 1 to 16"),
        ("dgx-h100:16", {"group": 0}, "from 1 to 16"),
        ("dgx-h100:16", {"group": 4, "stride": 8}, "1 to 5"),
        ("dgx-h100:16", {"group": 4, "stride": 0}, "1 to 5"),
        ("dgx-h100:16", {"axes": "x"}, "--group 8"),
        ("tpu-v5p:8x8x8", {"stride": 2}, "--axes x"),
        ("tpu-v5p:8x8x8", {"axes": "w"}, "x, y, z"),
        ("tpu-v5p:8x8x8", {"axes": ""}, "x, y, z"),
        ("tpu-v5p:8x8x8", {"axes": "xx"}, "at most once"),
        ("tpu-v6e:8x8", {"axes": "z"}, "x, y"),
        ("tpu-v5p:8x8x8", {"group": 12}, "--group 8 or --group 16"),
        ("tpu-v5p:8x8x8", {"group": 1024}, "--group 512"),
        ("tpu-v5p:8x8x8", {"group": 0}, "--group 1"),
        ("tpu-v5p:8x8x8", {"group": -4}, "--group 1"),
    ],
)
def test_groups_that_do_not_exist(on, asked, said):
    with pytest.raises(InputError, match=said):
        groups.group_descriptors(parse_machine(on, 1, CATALOG), **asked)


def test_what_the_equations_learn_of_a_switched_machine():
    found = groups.fabric_inputs(parse_machine("tight:512", 1, CATALOG))
    assert found == {
        "launch_latency": 2e-6,
        "chips_per_host": 8,
        "domain_kind": 0,
        "domain_bandwidth": 400e9,
        "domain_share": 0.8,
        "domain_latency": 1e-6,
        "nics_per_host": 8,
        "nic_bandwidth": 50e9,
        "nic_share": 0.9,
        "nic_latency": 2e-6,
        "unit_oversubscription": 7,
        "unit_link_latency": 2e-6,
        "unit_levels_below": 1,
        "switch_latency": 0.25e-6,
        "nvls_share": 0.7,
    }


def test_a_mesh_has_links_and_no_adding_switches():
    found = groups.fabric_inputs(parse_machine("mi300x:8", 1, CATALOG))
    assert (found["domain_kind"], found["domain_bandwidth"], found["nvls_share"]) == (1, 64e9, 0)


def test_what_the_equations_learn_of_a_torus():
    assert groups.fabric_inputs(parse_machine("tpu-v5p:4x4x4", 1, CATALOG)) == {
        "launch_latency": 2e-6,
        "chips_per_host": 4,
        "link_bandwidth": 100e9,
        "link_share": 0.9,
        "hop_latency": 1e-6,
        "dcn_links_per_host": 1,
        "dcn_bandwidth": 25e9,
        "host_link_bandwidth": 15e9,
        "dcn_share": 0.9,
        "dcn_latency": 15e-6,
        "twist": 0,
        "twist_side": 1,
    }


@pytest.mark.parametrize(("shape", "twist", "side"), [("4x4x8", 1, 4), ("8x4x4", 1, 4), ("8x16x16", 2, 8)])
def test_what_the_equations_learn_of_a_twist(shape, twist, side):
    found = groups.fabric_inputs(parse_machine(f"tpu-v5p:{shape}_twisted", 1, CATALOG))
    assert (found["twist"], found["twist_side"]) == (twist, side)


def test_without_a_network_nothing_is_waited_for():
    assert groups.fabric_inputs(parse_machine("workstation", 1, CATALOG))["nic_bandwidth"] == inf
    assert groups.fabric_inputs(parse_machine("trainium2", 1, CATALOG))["dcn_bandwidth"] == inf
