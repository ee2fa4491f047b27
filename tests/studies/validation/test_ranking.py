"""Ranking of sweeps: on rows that can be ranked in the head, and as the published sweeps come out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.studies.validation import training
from costmodel.studies.validation.outcome import Outcome
from costmodel.studies.validation.ranking import rankings, spearman
from tests.equations.training.drawn import CATALOG


def row(measured, predicted, sweep="llm-foundry a", work=1.0):
    source = sweep.split()[0]
    return Outcome("training", "r", "step_time_s", measured, predicted, source=source, sweep=sweep, work=work)


def test_ranks_in_the_head():
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == -1
    assert spearman([1, 2, 3], [5, 5, 5]) == 0
    assert spearman([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)


@given(st.lists(st.integers(1, 9), min_size=3, max_size=9), st.randoms())
def test_ranks_do_not_depend_on_the_order_or_on_a_growing_scale(values, shuffler):
    other = list(values)
    shuffler.shuffle(other)
    found = spearman(values, other)
    assert -1 - 1e-9 <= found <= 1 + 1e-9
    assert spearman([value**3 for value in values], other) == pytest.approx(found, abs=1e-12)
    assert spearman(other, values) == pytest.approx(found, abs=1e-12)


def test_regret_is_what_the_choice_costs_as_measured():
    """The second is predicted fastest and takes 20 % longer than the first; the fastest is fourth of four by prediction."""
    (found,) = rankings([row(10, 9), row(12, 5), row(15, 6), row(20, 7)])
    assert (found.groups, found.rows, found.top) == (1, 4, 0)
    assert found.spread == pytest.approx(2)
    assert found.median_regret == found.worst_regret == pytest.approx(0.2)


def test_rows_compare_by_the_work_of_a_step():
    (found,) = rankings([row(10, 10, work=1), row(10, 10, work=2), row(10, 10, work=4)])
    assert (found.spearman, found.spread, found.top) == (pytest.approx(1), pytest.approx(4), 1)


def test_what_is_no_sweep_is_not_ranked():
    assert rankings([row(1, 1), row(2, 2)]) == []
    assert rankings([Outcome("training", "r", "step_time_s", 1, 1)] * 3) == []


def test_published_sweeps():
    """The fastest as measured is among the first three predicted in nine sweeps of ten, and choosing the first costs nothing
    in the median."""
    found = {one.source: one for one in rankings(one for one in training.outcomes(CATALOG) if one.headline)}
    assert set(found) == {"llm-foundry", "zero-bubble2024", "megatron-bridge-perf", "bigscience-tr11-prequel", "all"}
    whole = found["all"]
    assert whole.groups >= 59 and whole.rows >= 300
    assert whole.top / whole.groups >= 0.9
    assert whole.median_regret <= 0.03
    assert whole.worst_regret <= 0.22
    assert found["llm-foundry"].spearman > 0.99
    assert found["megatron-bridge-perf"].spearman > 0.95
    assert found["zero-bubble2024"].spearman >= 0.8
    assert found["bigscience-tr11-prequel"].spearman > 0.9
