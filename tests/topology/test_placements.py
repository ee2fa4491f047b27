"""The table of placements: complete, consistent, and equal to what one layout gives."""

from itertools import pairwise, product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.topology.grammar import parse_placement
from costmodel.topology.groups import members_in_block
from costmodel.topology.machine import parse_machine
from costmodel.topology.placements import members, placements
from tests.topology.hand_made import CATALOG

SWITCHED = ("dgx-h100:96", "dgx-h100:2048", "tight:512", "tighter:512", "gb200-nvl72:576", "mi300x:64", "workstation")
TORI = ("tpu-v5p:4x4x4", "tpu-v5p:8x8x16", "tpu-v5p:4x20x28", "tpu-v5p:2x2x4", "tpu-v6e:8x16", "trainium2:4x4")
AXES = ("tp", "cp", "dp", "pp")


def machine(on, slices=1):
    return parse_machine(on, slices, CATALOG)


def splits(size, axes):
    """How many ways there are to write `size` as an ordered product of `axes` factors."""
    ways, prime = 1, 2
    while size > 1:
        power = 0
        while size % prime == 0:
            size, power = size // prime, power + 1
        ways *= comb(power + axes - 1, axes - 1)
        prime += 1
    return ways


@pytest.mark.parametrize("on", SWITCHED + TORI)
def test_each_row_uses_every_chip(on):
    made = machine(on)
    table = placements(made, all_levels=True)
    assert (prod(table.columns[axis] for axis in AXES) == made.chips).all()
    for run, factors in zip(table.runs, table.factors, strict=True):
        assert (factors.prod(axis=0) == prod(dimension.size for dimension in run)).all()


@pytest.mark.parametrize("on", SWITCHED)
def test_members_of_inner_levels_divide_those_of_outer_ones(on):
    columns = placements(machine(on), all_levels=True).columns
    for axis in AXES:
        chain = [columns[f"domain_{axis}"], columns[f"unit_{axis}"], columns[axis]]
        assert all((outer % inner == 0).all() for inner, outer in pairwise(chain))


@pytest.mark.parametrize("on", ["dgx-h100:2048", "tight:512", "tighter:512", "gb200-nvl72:576"])
@pytest.mark.parametrize("axes", [("dp",), ("tp", "dp"), ("tp", "dp", "pp"), AXES])
def test_every_split_of_every_level_is_there_once(on, axes):
    made = machine(on)
    table = placements(made, axes, all_levels=True)
    assert len(table) == prod(splits(dimension.size, len(axes)) for dimension in made.dimensions)
    assert len(np.unique(table.factors.reshape(-1, len(table)), axis=1).T) == len(table)


def test_equal_axes_of_a_torus_are_not_told_apart():
    assert len(placements(machine("tpu-v5p:4x8x16"))) == splits(4, 4) * splits(8, 4) * splits(16, 4)
    assert len(placements(machine("tpu-v5p:8x8x8"))) == comb(splits(8, 4) + 2, 3)
    assert len(placements(machine("tpu-v5p:8x16x8"))) == splits(16, 4) * comb(splits(8, 4) + 1, 2)
    assert len(placements(machine("tpu-v6e:8x16"))) == splits(8, 4) * splits(16, 4)


@pytest.mark.parametrize(("first", "second"), [("8x16x16", "16x8x16"), ("4x8x8", "8x8x4")])
def test_the_names_of_the_axes_change_nothing(first, second):
    def descriptors(on):
        columns = placements(machine(f"tpu-v5p:{on}")).columns
        rows = []
        for row in range(len(columns["tp"])):
            by_axis = [
                tuple(columns[f"{axis}_{kind}{name}"][row] for axis in AXES for kind in ("", "stride_", "ring_"))
                for name in "xyz"
            ]
            rows.append(tuple(sorted(by_axis)))
        return sorted(rows)

    assert descriptors(first) == descriptors(second)


@given(st.sampled_from(SWITCHED + TORI), st.integers(1, 3), st.booleans(), st.randoms(use_true_random=False))
def test_a_row_is_what_its_placement_gives_when_written_out(on, slices, all_levels, random):
    made = machine(on, slices if on.startswith("tpu") else 1)
    table = placements(made, all_levels=all_levels)
    row = random.randrange(len(table))
    degrees = {axis: int(table.columns[axis][row]) for axis in AXES}
    placement = table.placement(row)
    assert parse_placement(str(placement)) == placement
    assert members(str(placement), degrees, made) == {name: column[row] for name, column in table.columns.items()}


@given(
    st.sampled_from(SWITCHED),
    st.permutations(AXES),
    st.sampled_from([1, 2, 3, 4, 6, 8]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1, 2, 4, 9]),
)
def test_an_order_is_counted_as_its_strides_say(on, order, tp, cp, pp):
    made = machine(on)
    if made.chips % (tp * cp * pp):
        return
    degrees = {"tp": tp, "cp": cp, "dp": made.chips // (tp * cp * pp), "pp": pp}
    row = members("-".join(order), degrees, made)
    stride = 1
    for axis in order:
        for level, block in (("domain", made.dimensions[0].size), ("unit", made.unit)):
            whole = block >= made.chips
            expected = degrees[axis] if whole else members_in_block(degrees[axis], stride, block)[0]
            assert row[f"{level}_{axis}"] == expected
        stride *= degrees[axis]


def test_frameworks_order_their_axes_differently():
    made, degrees = machine("dgx-h100:16384"), {"tp": 8, "dp": 128, "pp": 16}
    megatron, llama = members("tp-dp-pp", degrees, made), members("tp-pp-dp", degrees, made)
    assert (megatron["domain_dp"], megatron["unit_dp"], megatron["unit_pp"]) == (1, 32, 1)
    assert (llama["domain_dp"], llama["unit_dp"], llama["unit_pp"]) == (1, 2, 16)


def test_groups_that_straddle_domains_count_their_fewest_members():
    row = members("tp-dp-pp", {"tp": 4, "dp": 16, "pp": 9}, machine("gb200-nvl72:576"))
    assert (row["domain_tp"], row["domain_dp"]) == (4, 2)


def test_levels_of_equal_bandwidth_are_filled_together_but_still_counted():
    loose, tight = placements(machine("dgx-h100:512")), placements(machine("tight:512"))
    assert [len(run) for run in loose.runs] == [1, 2]
    assert [len(run) for run in tight.runs] == [1, 1, 1]
    row = [str(loose.placement(row)) for row in range(len(loose))].index("domain:tp8/network:dp16.pp4")
    assert (loose.columns["unit_dp"][row], loose.columns["unit_pp"][row]) == (16, 2)


def test_limits_of_degrees():
    table = placements(machine("dgx-h100:2048"), limits={"tp": 8, "pp": 16})
    assert table.columns["tp"].max() == 8
    assert table.columns["pp"].max() == 16
    everything = placements(machine("dgx-h100:2048"))
    kept = (everything.columns["tp"] <= 8) & (everything.columns["pp"] <= 16)
    assert len(table) == kept.sum()
    with pytest.raises(InputError, match="allow more"):
        placements(machine("dgx-h100:2048"), limits={"tp": 1, "cp": 1, "dp": 2, "pp": 4})


def test_factors_that_are_not_powers_of_two():
    assert {9.0, 72.0, 36.0, 1.0} <= set(placements(machine("gb200-nvl72:576")).columns["domain_tp"])
    table = placements(machine("tpu-v5p:16x20x28"))
    assert {7.0, 14.0, 28.0} <= set(table.columns["tp_z"])
    assert {5.0, 10.0, 20.0} <= set(table.columns["dp_y"])


def test_rings_close_only_outermost_on_axes_that_wrap():
    table = placements(machine("tpu-v6e:8x16"))
    columns = table.columns
    for axis, name in product(AXES, "xyz"):
        size, stride = columns[f"{axis}_{name}"], columns[f"{axis}_stride_{name}"]
        length, wrap = {"x": (8, False), "y": (16, True), "z": (1, False)}[name]
        assert (columns[f"{axis}_ring_{name}"] == (wrap & (size > 1) & (size * stride == length))).all()
        assert (stride[size == 1] == 1).all()


def test_several_slices_are_one_more_dimension():
    table = placements(machine("tpu-v5p:4x4x4", 6))
    assert (prod(table.columns[f"{axis}_slices"] for axis in AXES) == 6).all()
    row = members("x:tp4/y:dp4/z:dp4/slices:dp3.pp2", {"tp": 4, "dp": 48, "pp": 2}, machine("tpu-v5p:4x4x4", 6))
    assert (row["dp_slices"], row["pp_slices"], row["tp_slices"]) == (3, 2, 1)
    assert members("tp-dp-pp", {"tp": 4, "dp": 48, "pp": 2}, machine("tpu-v5p:4x4x4", 6)) == row


@pytest.mark.parametrize("degrees", [{"tp": 0, "dp": 8}, {"tp": -1, "dp": -8}, {"tp": 2, "dp": 5}])
def test_degrees_that_make_no_sense(degrees):
    with pytest.raises(InputError):
        members("tp-dp-pp", degrees, machine("dgx-h100:8"))
