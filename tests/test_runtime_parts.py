"""A part of a table gives what the same rows and choices give alone; arrays are written over only where nothing is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel import runtime, runtime_arrays
from costmodel.errors import EquationError
from costmodel.runtime import Run, Table
from costmodel.runtime_parts import PartRun
from costmodel.symbolic import Axis, Chapter, bytes_, column, count, equation, numpy_module, select, smallest, total
from costmodel.symbolic import given as given_
from costmodel.symbolic.write import load

SIZE, MODE, KIND = Axis("size"), Axis("mode"), Axis("kind", ("dense", "sparse"))
LEVELS = {"once": [], "by_tp": ["tp"], "layouts": ["tp", "dp"]}


class Sheet(Chapter):
    """Quantities on every level, some over both open axes."""

    tp = column(count, "a degree")
    dp = column(count, "another")
    micro = given_(count, "sequences by size", SIZE)
    keeps = given_(count, "whether something is kept, by mode", MODE)
    width = given_(bytes_, "bytes by kind", KIND)

    shard = equation(bytes_, total(width / tp, KIND), "one of few axes, before parts")
    work = equation(bytes_, shard * micro * (2 - keeps), "of both open axes, in parts")
    spread = equation(bytes_, micro * shard / dp, "in blocks, the same in every slice")
    held = equation(bytes_, select(keeps > 0, work, smallest(work, 2 * spread)), "in slices, handed on as it is or not")
    rest = equation(bytes_, work + shard - held / 2 + spread * micro, "uses what another name is for as well")
    whole = equation(bytes_, rest * 3 + held * dp, "over what nobody needs again")


@pytest.fixture(scope="module")
def sheet():
    patch = pytest.MonkeyPatch()
    patch.setattr("costmodel.symbolic.write_numpy.MANY_AXES", 2)
    source = numpy_module(
        "sheet", Sheet.system, ["work", "whole"], [SIZE, MODE, KIND], LEVELS, in_parts=["by_tp"], sliced=MODE.name
    )
    patch.undo()
    return load(source, "sheet")


def expected(tp, dp, micro, keeps):
    """The sheet in a person's arithmetic."""
    shard = (4 + 8) / tp
    work = shard * micro * (2 - keeps)
    spread = micro * shard / dp
    held = work if keeps else min(work, 2 * spread)
    return work, (work + shard - held / 2 + spread * micro) * 3 + held * dp


def test_each_quantity_lives_where_it_is_worked_out(sheet):
    assert (sheet.PARTS, sheet.BLOCKS, sheet.SLICED) == (["by_tp_in_parts"], ["layouts", "layouts_in_slices"], "mode")
    assert {name: sheet.LEVEL[name] for name in ("shard", "work", "spread", "whole")} == {
        "shard": "by_tp",
        "work": "by_tp_in_parts",
        "spread": "layouts",
        "whole": "layouts_in_slices",
    }


@given(st.data())
def test_a_part_is_what_its_rows_and_choices_give(sheet, data):
    degrees = st.lists(st.tuples(st.sampled_from((1, 2, 4)), st.sampled_from((1, 3, 5))), min_size=1, max_size=9)
    table = data.draw(degrees)
    micro, keeps = (
        data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)),
        data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=4)),
    )
    rows, sizes, modes = (
        np.array(sorted(data.draw(st.sets(st.integers(0, len(held) - 1), min_size=1))))
        for held in (table, micro, keeps)
    )
    columns = {"tp": [tp for tp, _ in table], "dp": [dp for _, dp in table]}
    whole = Run(sheet, Table(columns), {"micro": micro, "keeps": keeps, "width": [4, 8]}).shared()
    assert "work" not in whole.values
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "BLOCK", data.draw(st.sampled_from((1, 5, 1000))))
        part = PartRun(whole, rows, (sizes, modes)).coarse()
        for block, found in part.blocks():
            for number, size, mode in np.ndindex(block.stop - block.start, len(sizes), len(modes)):
                tp, dp = table[rows[block.start + number]]
                work, whole_thing = expected(tp, dp, micro[sizes[size]], keeps[modes[mode]])
                index = part.index("by_tp", "layouts")[block.start + number]
                works = part.values["work"]
                place = [at if works.shape[axis] > 1 else 0 for axis, at in enumerate((size, mode, 0, index))]
                assert works[tuple(place)] == pytest.approx(work, rel=1e-12)
                mine = np.broadcast_to(found["whole"], (len(sizes), len(modes), 1, block.stop - block.start))
                assert mine[size, mode, 0, number] == pytest.approx(whole_thing, rel=1e-12)


def test_an_axis_that_a_formula_reduces_cannot_be_sliced():
    with pytest.raises(EquationError, match="shard needs all rows of kind at once"):
        numpy_module("sheet", Sheet.system, ["shard"], [SIZE, MODE, KIND], {"all": ["tp"]}, sliced=KIND.name)


def test_an_array_is_written_over_only_where_it_has_the_shape_of_the_result():
    spare = np.ones((2, 3))
    assert runtime_arrays.onto_first(np.add, spare, 1.0) is spare
    assert runtime_arrays.onto_second(np.subtract, np.ones((1, 3)), spare) is spare
    assert spare.tolist() == [[-1] * 3] * 2
    assert runtime_arrays.onto_first(np.multiply, spare, np.full((4, 1, 1), 2.0)).shape == (4, 2, 3)
    assert spare.tolist() == [[-1] * 3] * 2
    assert runtime_arrays.onto_first(np.add, np.ones(2, int), 0.5).tolist() == [1.5, 1.5]


def test_only_the_branch_that_one_condition_takes_is_computed():
    def never():
        raise AssertionError

    assert runtime_arrays.branch_taken(np.array([[True]]), lambda: 1, never) == 1
    assert runtime_arrays.branch_taken(np.array([[False]]), never, lambda: 2) == 2
    both = runtime_arrays.branch_taken(np.array([True, False]), lambda: np.array([1, 1]), lambda: np.array([2, 2]))
    assert both.tolist() == [1, 2]
