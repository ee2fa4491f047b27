"""What the rules let pass is worked out, each point once, and little else."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.search.candidates import Candidates, candidates
from costmodel.search.evaluate import evaluate
from costmodel.search.grid import search
from costmodel.search.possible import PART_POINTS, parts
from costmodel.search.workload import Workload
from tests.equations.training.drawn import CATALOG, machine, mixture

few = settings(max_examples=settings.default.max_examples // 4)
SHAPE = (3, 4, 2, 2, 2, 2)


@st.composite
def passing(draw):
    """For each axis which rows pass for each tuple of degrees, all or none of a tuple, as rules on products of them give it."""
    tuples = draw(st.integers(1, 8))
    some = [draw(st.booleans()) for _ in range(tuples)]
    rows = []
    for size in SHAPE:
        row = np.zeros((size, tuples), bool)
        for number, stands in enumerate(some):
            if stands:
                chosen = draw(st.sets(st.integers(0, size - 1), min_size=1))
                row[sorted(chosen), number] = True
        rows.append(row)
    return tuple(rows)


@given(passing(), st.sampled_from((1, 10, 10**5)))
def test_every_tuple_that_passes_is_in_one_part_with_all_its_rows(rows, placements):
    found = list(parts(rows, np.full(rows[0].shape[1], placements)))
    tuples = [number for part in found for number in part.tuples.tolist()]
    assert sorted(tuples) == np.flatnonzero(rows[0].any(axis=0)).tolist()
    for part in found:
        assert part.tuples.tolist() == sorted(part.tuples.tolist())
        for axis, kept in enumerate(part.kept):
            assert kept.tolist() == np.flatnonzero(rows[axis][:, part.tuples].any(axis=1)).tolist()


def test_few_points_stay_together_and_many_are_told_apart():
    alone = [np.ones((size, 2), bool) for size in SHAPE]
    alone[1] = np.array([[True, False], [False, True], [False, True], [False, True]])
    few_points, many = (list(parts(tuple(alone), np.full(2, n))) for n in (1, PART_POINTS))
    assert [len(part.tuples) for part in few_points] == [2]
    assert sorted(len(part.kept[1]) for part in many) == [1, 3]


CHOICES = Candidates(
    micro_batches=(1, 2),
    schedules=(("1f1b", 1), ("interleaved", 2)),
    experts=(1, 2, 4),
    zeros=(0, 1, 3, 3),
    shards=(0, 0, 0, 4),
)


@few
@given(st.sampled_from(("dgx-h100:16", "tpu-v5p:2x2x4")), st.integers(1, 6), st.data())
def test_with_experts_every_point_is_what_one_answer_says(on, layers, data):
    workload = Workload(machine(on), mixture(4, 2, 512, layers=layers), 1024, 32)
    grid = search(workload, CATALOG, CHOICES)
    legal = np.argwhere(grid.legal)
    drawn = tuple(data.draw(st.integers(0, size - 1)) for size in grid.step_time.shape)
    settled = tuple(map(int, legal[data.draw(st.integers(0, len(legal) - 1))]))
    for index in (drawn, settled):
        rows = grid.order[np.flatnonzero(grid.rows_of == index[-1])]
        found = [evaluate(workload, grid.layout(index, str(grid.placed.placement(int(row)))), CATALOG) for row in rows]
        assert {one["legal"] for one in found} == {int(grid.legal[index])}
        if grid.legal[index]:
            assert grid.step_time[index] == pytest.approx(min(one["step_time"] for one in found), rel=1e-12)
            assert grid.device_used[index] == pytest.approx(found[0]["device_used"], rel=1e-12)
        else:
            assert np.isinf(grid.step_time[index]) and np.isinf(grid.device_used[index])
    assert grid.count(grid.legal) <= grid.evaluated <= grid.searched


def test_of_a_large_search_a_third_of_what_is_worked_out_is_legal_or_more():
    workload = Workload(machine("dgx-h100:1024"), mixture(64, 4, 1024, layers=48), 4096, 1024)
    tried = candidates(48, 1024, 4096, experts=64, shards=workload.shards)
    grid = search(workload, CATALOG, replace(tried, etp=1))
    assert grid.evaluated < 3 * grid.count(grid.legal) < grid.searched
