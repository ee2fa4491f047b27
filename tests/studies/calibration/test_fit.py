"""Least absolute error held to a prior: what it recovers, and what it does not let go."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.studies.calibration.fit import Bounds, fit, folds, objective, sensitivities, told

WIDE = [Bounds(-2.0, 2.0)] * 2


def line(points, truth, noise=()):
    """Residuals of a linear model: the first constant weighs on small points, the second on large ones."""
    extra = noise or [0.0] * len(points)

    def residuals(x):
        return [(x[0] - truth[0]) * (1 - p) + (x[1] - truth[1]) * p - e for p, e in zip(points, extra, strict=True)]

    return residuals


@given(st.tuples(st.floats(-1, 1), st.floats(-1, 1)))
def test_it_recovers_what_made_the_measurements(truth):
    points = [n / 19 for n in range(20)]
    found = fit(line(points, truth), WIDE, 1.0)
    assert found == pytest.approx(list(truth), abs=3e-3)


def test_outliers_do_not_move_it():
    points = [n / 19 for n in range(20)]
    spoiled = [0.0] * 16 + [3.0, -2.0, 4.0, 3.0]
    assert fit(line(points, (0.5, -0.3), spoiled), WIDE, 1.0) == pytest.approx([0.5, -0.3], abs=0.02)


@pytest.mark.parametrize("count", [1, 2])
def test_a_measurement_or_two_move_nothing(count):
    assert fit(line([0.0] * count, (1.0, 0.0)), WIDE, 2.0) == [0.0, 0.0]


def test_three_that_agree_move_it_and_three_that_do_not_leave_it():
    assert fit(line([0.0] * 3, (1.0, 0.0)), WIDE, 2.0)[0] == pytest.approx(1.0, abs=1e-3)
    assert fit(line([0.0] * 3, (0.0, 0.0), [0.9, -0.8, 0.7]), WIDE, 2.0)[0] == 0.0


@given(st.integers(0, 1000))
def test_the_sum_is_never_larger_than_at_the_prior(seed):
    draw = random.Random(seed)  # noqa: S311 - repeatable, not secret
    points = [draw.random() for _ in range(12)]
    noise = [draw.gauss(0, 0.3) for _ in points]
    residuals = line(points, (draw.gauss(0, 0.5), draw.gauss(0, 0.5)), noise)
    found = fit(residuals, WIDE, 2.0)
    assert objective(residuals(found), found, 2.0) <= objective(residuals([0.0, 0.0]), [0.0, 0.0], 2.0) + 1e-9


def test_it_stays_inside_the_bounds():
    points = [n / 9 for n in range(10)]
    assert fit(line(points, (1.5, 1.5)), [Bounds(0.0, 0.2), Bounds(-1.0, 1.0)], 1.0)[0] <= 0.2


def test_what_moves_alike_is_not_told_apart():
    column = np.linspace(0, 1, 20)
    jacobian = np.array([column, 0.9 * column, 1 - column, 0.01 * column]).T
    found = told(jacobian, 1.0)
    assert [one.is_told(1.0) for one in found] == [True, False, True, False]
    assert found[1].like == (0,)
    assert found[3].weight < 1.0


def test_slopes_by_differences_stay_inside_the_bounds():
    seen = []

    def residuals(x):
        seen.append(tuple(x))
        return [2 * x[0]]

    assert sensitivities(residuals, [0.0], [Bounds(-1.0, 0.0)])[0, 0] == pytest.approx(2.0)
    assert all(x[0] <= 0 for x in seen)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=30), st.integers(1, 6))
def test_parts_to_leave_out_hold_each_measurement_once_and_repeats_together(groups, most):
    found = folds(groups, most)
    assert sorted(place for part in found for place in part) == list(range(len(groups)))
    assert len(found) == min(most, len(set(groups)))
    for group in set(groups):
        assert sum(any(groups[place] == group for place in part) for part in found) == 1
