"""Placements by name: what frameworks' orders reach, and how JAX lays a mesh on a torus."""

from itertools import permutations
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.topology.frameworks import MESHES, NAMES, ORDERS, by_name
from costmodel.topology.grammar import AXES, Order, fill
from costmodel.topology.machine import parse_machine
from costmodel.topology.placements import members, placements, reached
from tests.topology.hand_made import CATALOG

SWITCHED = ("dgx-h100:96", "dgx-h100:2048", "tight:512", "gb200-nvl72:576")
TORI = ("tpu-v5p:4x4x4", "tpu-v5p:8x8x16", "tpu-v5p:4x20x28", "tpu-v6e:8x16", "tpu-v5p:16x20x28")


def machine(on, slices=1):
    return parse_machine(on, slices, CATALOG)


def rows_of(table):
    return [
        ({axis: int(table.columns[axis][row]) for axis in AXES}, table.placement(row), row) for row in range(len(table))
    ]


def links_and_hops(row, axis):
    """Of a group along `axis` on a torus: cables that are its own, both ways of a ring counted, and the longest path."""
    links = hops = 0
    for name in "xyz":
        size, stride, closes = (row[f"{axis}_{what}{name}"] for what in ("", "stride_", "ring_"))
        if size > 1:
            links += (1 + closes) / stride
            hops += stride * (size // 2 if closes else size - 1)
    return links, hops


# What JAX's own code gives for meshes of [fsdp, tensor], run at version cec06d1 of jax/_src/mesh_utils.py.
JAX_ON_SLICES = [
    ("tpu-v5p:8x8x8", 64, 8, "x:tp8/y:dp8/z:dp8", (2, 4), (4, 8)),
    ("tpu-v5p:4x4x8", 16, 8, "x:dp4/y:dp4/z:tp8", (2, 4), (4, 4)),
    ("tpu-v5p:4x8x8", 32, 8, "x:dp4/y:tp8/z:dp8", (2, 4), (4, 6)),
    ("tpu-v6e:16x16", 64, 4, "x:tp4.dp4/y:dp16", (1, 3), (2.5, 16)),
    ("tpu-v5p:16x20x28", 560, 16, "x:tp16/y:dp20/z:dp28", (2, 8), (4, 24)),
    ("tpu-v5p:16x20x28", 2240, 4, "x:tp4.dp4/y:dp20/z:dp28", (1, 3), (4.5, 32)),
    ("tpu-v6e:8x16", 16, 8, "x:tp8/y:dp16", (1, 7), (2, 8)),
]


@pytest.mark.parametrize(("on", "dp", "tp", "placement", "tensor", "fsdp"), JAX_ON_SLICES)
def test_jax_on_slices(on, dp, tp, placement, tensor, fsdp):
    degrees = {"tp": tp, "dp": dp}
    assert str(by_name("jax-split", degrees, machine(on))) == placement
    row = members("jax-split", degrees, machine(on))
    assert row == members(placement, degrees, machine(on))
    assert (links_and_hops(row, "tp"), links_and_hops(row, "dp")) == (tensor, fsdp)


def test_a_square_of_2x2_is_what_jax_does_not_find():
    """MaxText's hybrid ring on 16x16: tensor parallelism on the inner square has twice the links of JAX's own choice."""
    degrees = {"tp": 4, "dp": 64}
    row = members("x:tp2.dp8/y:tp2.dp8", degrees, machine("tpu-v6e:16x16"))
    assert (links_and_hops(row, "tp"), links_and_hops(row, "dp")) == ((2, 2), (2, 16))


# The GPT-3 175B recipes of MaxText on v5p (MLPerf training 4.0): data, fsdp and tensor; shapes of the first three are usual ones.
@pytest.mark.parametrize(
    ("shape", "ranks"),
    [("8x8x8", 64), ("8x8x16", 128), ("8x12x16", 192), ("4x8x64", 256), ("8x16x32", 512), ("8x16x48", 768)],
)
def test_meshes_of_maxtext_take_whole_axes(shape, ranks):
    degrees = {"tp": 8, "dp": ranks}
    row = members("jax", degrees, machine(f"tpu-v5p:{shape}"))
    assert links_and_hops(row, "tp") == (2, 4)
    assert {row[f"tp_stride_{axis}"] for axis in "xyz"} == {row[f"dp_stride_{axis}"] for axis in "xyz"} == {1}


def test_more_axes_come_first_and_then_the_first_of_them():
    """The example of JAX's documentation: of 4x4x16, the axis of 16 that is served first gets the plane."""
    made = machine("tpu-v5p:4x4x16")
    assert str(by_name("jax", {"tp": 16, "dp": 16}, made)) == "x:tp4/y:tp4/z:dp16"
    assert str(by_name("jax", {"tp": 4, "cp": 4, "pp": 16}, made)) == "x:tp4/y:cp4/z:pp16"


def test_split_axes_are_shared_before_free_ones_are_touched():
    """A quirk of the rule as it runs: 2 goes outside the 4 on one axis, where it has half a link, and not to a free axis."""
    placement = by_name("jax-split", {"tp": 4, "cp": 2, "dp": 64}, machine("tpu-v5p:8x8x8"))
    assert str(placement) == "x:tp4.cp2/y:dp8/z:dp8"


def test_what_jax_refuses():
    with pytest.raises(InputError, match=r"of 8x8x8 none that are left make tp=4; write placement=jax-split"):
        members("jax", {"tp": 4, "dp": 128}, machine("tpu-v5p:8x8x8"))
    with pytest.raises(InputError, match=r"makes 16 ranks, and tpu-v5p:8x8x8 has 512 chips"):
        members("jax-split", {"tp": 4, "dp": 4}, machine("tpu-v5p:8x8x8"))


def test_slices_are_joined_by_data_parallelism():
    made = machine("tpu-v5p:4x4x8", 3)
    degrees = {"tp": 8, "dp": 48}
    assert members("jax", degrees, made) == members("x:dp4/y:dp4/z:tp8/slices:dp3", degrees, made)
    assert set(reached("jax", made).columns["dp_slices"]) == {3}
    with pytest.raises(InputError, match=r"dp=16 is no multiple of the 3 slices; dp=15 is"):
        members("jax-split", {"tp": 8, "cp": 3, "dp": 16}, made)


@pytest.mark.parametrize("on", TORI)
def test_a_split_is_made_only_where_whole_axes_do_not_do(on):
    made = machine(on)
    limits = {"tp": 16, "cp": 4, "pp": 8}
    whole = {str(placement) for _, placement, _ in rows_of(reached("jax", made, limits=limits))}
    split = {str(placement) for _, placement, _ in rows_of(reached("jax-split", made, limits=limits))}
    assert whole < split
    assert all("." not in placement for placement in whole)


@pytest.mark.parametrize("on", SWITCHED)
@pytest.mark.parametrize("name", MESHES)
def test_on_switches_meshes_are_an_order(on, name):
    assert by_name(name, {"tp": 2, "cp": 2, "dp": 4}, machine(on)) == Order(AXES)


@pytest.mark.parametrize("on", SWITCHED + TORI)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "best"])
def test_a_search_reaches_what_one_layout_gets(on, name):
    """Each tuple of degrees at most once, on the same placement, with the same numbers."""
    made = machine(on)
    table = reached(name, made, limits={"tp": 16, "cp": 4, "pp": 8})
    seen = set()
    for degrees, placement, row in rows_of(table)[:: 1 + len(table) // 100]:
        assert tuple(degrees.values()) not in seen
        seen.add(tuple(degrees.values()))
        alone = members(name, degrees, made)
        assert alone == members(placement, degrees, made)
        assert alone == {column: float(values[row]) for column, values in table.columns.items()}


@pytest.mark.parametrize("on", ["dgx-h100:96", "tight:512", "gb200-nvl72:576", "tpu-v5p:4x20x28", "tpu-v6e:8x16"])
@pytest.mark.parametrize("order", ["tp-cp-dp-pp", "tp-cp-pp-dp", "dp-tp-pp", "pp-dp"])
def test_an_order_reaches_all_degrees_that_it_fills(on, order):
    made = machine(on)
    table = reached(order, made, all_levels=True)
    found = {tuple(degrees.values()): placement for degrees, placement, _ in rows_of(table)}
    assert len(found) == len(table)
    everything = placements(made, all_levels=True)
    axes = order.split("-")
    for degrees in {tuple(degrees.values()): degrees for degrees, _, _ in rows_of(everything)[::7]}.values():
        if prod(degrees[axis] for axis in axes) < made.chips:
            assert tuple(degrees.values()) not in found
            continue
        try:
            expected = fill(made, axes, degrees)
        except InputError:
            assert tuple(degrees.values()) not in found
        else:
            alike = members(found[tuple(degrees.values())], degrees, made)
            assert alike == members(expected, degrees, made)


@given(st.permutations(AXES), st.sampled_from(SWITCHED))
def test_an_order_is_one_of_all_placements(order, on):
    """On switches, where the order inside a level changes nothing, the rows of an order are rows of the whole table."""
    made = machine(on)
    names = [name for name in placements(made).columns if name.startswith("domain") or name in AXES]
    every, some = (
        {tuple(row) for row in np.array([table.columns[name] for name in names]).T.tolist()}
        for table in (placements(made), reached("-".join(order), made))
    )
    assert some <= every


# Degrees, and how many placements there are of them on 16,384 GPUs: in some order, and by splitting every level freely;
# first with one level above the node, then with units of 256 GPUs.
ORDERS_AND_SPLITS = [
    (16384, {"tp": 8, "pp": 16, "dp": 128}, (3, 10), (6, 109)),
    (16384, {"tp": 8, "cp": 16, "pp": 16, "dp": 8}, (4, 20), (22, 566)),
    (16384, {"tp": 4, "cp": 4, "pp": 16, "dp": 64}, (8, 18), (17, 345)),
    (2048, {"ep": 64, "pp": 16, "edp": 2}, (4, 7), (6, 35)),
]


@pytest.mark.parametrize(("chips", "degrees", "node", "unit"), ORDERS_AND_SPLITS)
def test_orders_are_few_of_all_placements(chips, degrees, node, unit):
    made = machine(f"dgx-h100:{chips}")
    axes = tuple(degrees)
    for all_levels, (in_orders, split_freely) in ((False, node), (True, unit)):
        assert len(placements(made, axes, limits=degrees, all_levels=all_levels)) == split_freely
        levels = ("domain", "unit")[: 1 + all_levels]
        found = set()
        for order in permutations(axes):
            row = members("-".join(order), degrees, made, axes)
            found.add(tuple(row[f"{level}_{axis}"] for level in levels for axis in axes))
        assert len(found) == in_orders


def test_llama_3_keeps_a_pipeline_together():
    """tp 8, pp 16 in 16 nodes: data parallelism has one member a node, and two pipelines share each unit of 32 nodes."""
    degrees = {"tp": 8, "pp": 16, "dp": 128}
    row = members("llama3", degrees, machine("tight:16384"))
    assert [row[f"domain_{axis}"] for axis in AXES] == [8, 1, 1, 1]
    assert [row[f"unit_{axis}"] for axis in AXES] == [8, 1, 2, 16]
    by_megatron = members("megatron", degrees, machine("tight:16384"))
    assert [by_megatron[f"unit_{axis}"] for axis in AXES] == [8, 1, 32, 1]


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_names_context_parallelism_where_there_is_any(name):
    made = machine("dgx-h100:64")
    assert str(by_name(name, {"tp": 8, "dp": 8}, made)) == "-".join(a for a in ORDERS[name] if a != "cp")
    assert str(by_name(name, {"tp": 8, "cp": 2, "dp": 4}, made)) == "-".join(ORDERS[name])


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("megatorn", "unknown placement 'megatorn': did you mean megatron"),
        ("jaxx", "did you mean jax"),
        ("tp-xp", "axis in a placement"),
        ("domain:tp8/network:dp4", "write|joins"),
        ("tp", "allow more"),
        ("", "expected"),
    ],
)
def test_what_cannot_be_reached(by, message):
    with pytest.raises(InputError, match=message):
        reached(by, machine("dgx-h100:64"), limits={"tp": 8})


def test_a_placement_written_out_is_the_only_one():
    table = reached("x:dp2.tp4/y:dp8/z:pp8", machine("tpu-v5p:8x8x8"), limits={"tp": 2})
    assert len(table) == 1
    assert str(table.placement(0)) == "x:dp2.tp4/y:dp8/z:pp8"
    assert table.columns["tp_stride_x"] == [2]
