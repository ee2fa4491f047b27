"""An answer as an expression of a few inputs: equal to the answer, and to other answers until a branch changes."""

import math

import pytest
import sympy as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from costmodel.errors import EquationError
from costmodel.symbolic import (
    Chapter,
    EquationSystem,
    bytes_,
    bytes_per_second,
    ceil_divide,
    ceil_log2,
    compile_math,
    count,
    equation,
    largest,
    seconds,
    select,
    smallest,
    total,
)
from costmodel.symbolic import given as given_
from costmodel.symbolic.point import Point
from costmodel.symbolic.regime import reach, regime
from tests.symbolic.random_systems import KIND, PHASE, REAL, along_size, points, systems
from tests.symbolic.worth import worth


class Link(Chapter):
    """A step that waits for the slower of its work and its traffic."""

    S = given_(bytes_, "traffic")
    W = given_(bytes_per_second, "bandwidth")
    work = given_(seconds, "work")
    overhead = given_(seconds, "beside both")
    n = given_(count, "ranks")

    traffic = equation(seconds, S / W, "over the link")
    slower = equation(seconds, largest(work, traffic), "the slower of both")
    step = equation(seconds, overhead + 2 * slower, "the whole")
    rounds = equation(count, ceil_log2(n) * ceil_divide(n, 3), "in steps")
    alone = equation(seconds, select(n > 1, step, work), "nothing to wait for alone")


def link(**changed):
    inputs = {"S": 100, "W": 4, "work": 10, "overhead": 3, "n": 8, **changed}
    return Point(Link.system, compile_math(Link.system)(**inputs))


W, S, n = sp.symbols("W S n")


def test_a_step_as_a_function_of_one_number():
    assert regime(link(), "step", ["W"]) == 3 + 200 / W
    assert regime(link(W=20), "step", ["W"]) == 23
    assert regime(link(), "step", ["W", "S"]) == 3 + 2 * S / W
    assert regime(link(), "step", ["traffic"]) == 3 + 2 * sp.Symbol("traffic")
    assert regime(link(), "step", []) == 53
    assert regime(link(), "alone", ["W"]) == 3 + 200 / W
    assert regime(link(n=1), "alone", ["W"]) == 10


def test_steps_stay_as_they_are_until_they_are_numbers():
    assert regime(link(), "rounds", ["n"]) == ceil_log2(n) * ceil_divide(n, 3)
    assert regime(link(), "rounds", ["W"]) == 9


def test_a_step_of_a_settled_branch_is_a_number():
    x = EquationSystem("settled")
    a, b = x.input("a", count, "one"), x.input("b", count, "other")
    x.define("tiles", count, ceil_divide(smallest(a, b), 4), "of the smaller")
    assert regime(Point(x, compile_math(x)(a=5, b=9)), "tiles", ["b"]) == 2


def test_a_sum_over_rows_adds_up_what_each_row_takes():
    x = EquationSystem("rows")
    a, w = x.input("a", count, "one"), x.input("w", count, "by kind", axes=(KIND,))
    x.define("each", count, smallest(a, w), "the smaller")
    x.define("whole", count, total(x["each"].symbol, KIND), "all")
    here = Point(x, compile_math(x, looped=[KIND])(a=3, w=[1, 5, 7]), [KIND])
    assert regime(here, "whole", ["a"]) == 1 + 2 * sp.Symbol("a")
    assert regime(here, "each", ["a"], {"kind": "dense"}) == 1
    assert regime(here, "each", ["a"]) == sp.Symbol("a")


def test_a_regime_ends_where_another_branch_is_as_good():
    low, high = reach(link(), "step", "W")
    assert low == 0
    assert math.isclose(high, 10, rel_tol=1e-6)
    low, high = reach(link(W=20), "step", "W")
    assert math.isclose(low, 10, rel_tol=1e-6)
    assert high == math.inf
    assert reach(link(), "alone", "overhead") == (0, math.inf)
    low, high = reach(link(), "step", "traffic")
    assert math.isclose(low, 10, rel_tol=1e-6)


def test_a_regime_ends_where_nothing_can_be_computed():
    x = EquationSystem("pole")
    a = x.input("a", count, "one")
    x.define("y", count, sp.log(a - 1), "only above one")
    low, _ = reach(Point(x, compile_math(x)(a=3)), "y", "a")
    assert math.isclose(low, 1, rel_tol=1e-6)


def test_unknown_names_are_told():
    with pytest.raises(EquationError, match="did you mean work"):
        regime(link(), "step", ["wrok"])
    with pytest.raises(EquationError, match="did you mean step"):
        regime(link(), "stp", ["W"])


SCALARS = [name for name, axes in REAL.items() if not axes] + ["ways", "tp", "pp", "dp", "stretch", "micro"]


@given(systems(), points(), st.lists(st.sampled_from(SCALARS), unique=True, max_size=2))
def test_a_regime_is_worth_what_the_answer_is_at_its_point(drawn, values, keep):
    inputs = along_size(values[0], 0) | {name: column[0] for name, column in values[1].items()}
    here = Point(drawn.system, compile_math(drawn.system, looped=[KIND, PHASE])(**inputs), [KIND, PHASE])
    name = drawn.names[-1]
    found = regime(here, name, keep)
    assert {s.name for s in found.free_symbols} <= set(keep)
    answer = here.row(name, here.values[name], here.bind(name, {}))
    assert math.isclose(worth(found, {kept: inputs[kept] for kept in keep}), answer, rel_tol=1e-8)


@given(systems(), points(), st.floats(0.5, 2))
def test_inside_its_reach_a_regime_is_worth_what_another_answer_is(drawn, values, factor):
    inputs = along_size(values[0], 0) | {name: column[0] for name, column in values[1].items()}
    function = compile_math(drawn.system, looped=[KIND, PHASE])
    here = Point(drawn.system, function(**inputs), [KIND, PHASE])
    name, at = drawn.names[-1], None
    low, high = reach(here, name, "alpha")
    moved = {**inputs, "alpha": inputs["alpha"] * factor}
    assume(low < moved["alpha"] < high)
    at = here.bind(name, {})
    answer = here.row(name, function(**moved)[name], at)
    assert math.isclose(worth(regime(here, name, ["alpha"]), {"alpha": moved["alpha"]}), answer, rel_tol=1e-8)
