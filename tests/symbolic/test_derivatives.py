"""The derivative of every function against a difference quotient, at numbers untidy enough that nothing ties."""

import math

import pytest
import sympy as sp

from costmodel.symbolic import (
    Axis,
    EquationSystem,
    at_best,
    at_worst,
    best,
    ceil_divide,
    ceil_log2,
    choose,
    compile_math,
    count,
    cube_root,
    floor_divide,
    floor_log2,
    largest,
    nearest_whole,
    none_drawn,
    ones_below,
    row,
    rows,
    select,
    smallest,
    square_root,
    total,
    worst,
)

KIND = Axis("kind", ("dense", "sparse", "head"))
x, y, w, v, mode = sp.symbols("x y w v mode")
POINT = {"x": 1.937, "y": 2.713, "w": [0.771, 3.519, 1.207], "v": [2.221, 0.613, 4.139], "mode": 1}


def function_of(expression):
    system = EquationSystem("slope")
    for name in ("x", "y"):
        system.input(name, count, name)
    for name in ("w", "v"):
        system.input(name, count, name, axes=(KIND,))
    system.input("mode", count, "a choice", labels=("plain", "eager"))
    system.define("f", count, expression, "under test")
    needed = {e.name for e in system.inputs(["f"])}
    function = compile_math(system, ["f"], looped=[KIND])

    def call(**changed):
        return function(**{name: value for name, value in {**POINT, **changed}.items() if name in needed})["f"]

    return call


SMOOTH = {
    "smallest": smallest(x**2, x * y, 3 * y),
    "largest": largest(x**2, x * y, x / y),
    "three of them": smallest(9 - x, largest(x, y), 5),
    "select": select(x > y, x, x**2 * y),
    "select the other way": select(x < y, sp.log(x), x**2 * y),
    "choose": choose(mode, {"plain": x, "eager": x**3}),
    "choose with one slope": choose(mode, {"plain": 2 * x, "eager": 2 * x + y}),
    "rows and a row": row(rows(KIND, {"dense": x, "sparse": x**2 * w, "head": y}), KIND, "sparse"),
    "total": total(w * x**2 + y, KIND),
    "total of a constant": total(w + x, KIND),
    "best": best((w - x) ** 2, KIND),
    "worst": worst(x * w + v, KIND),
    "at best": at_best(x * v, w, KIND),
    "at worst": at_worst(x**2 * v, w, KIND),
    "roots": cube_root(x**3 + y**3) + square_root(x * y),
    "nested": largest(best(x * w, KIND), total(select(w > 1, x**2, 0), KIND)) / smallest(x, y),
    "a slope again": sp.diff(best(x**3 * w, KIND) + at_best(x**3 * v, w, KIND), x),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_the_slope_is_the_limit_of_a_difference_quotient(name):
    expression = SMOOTH[name]
    f, slope = function_of(expression), function_of(sp.diff(expression, x))
    step = 1e-6
    quotient = (f(x=POINT["x"] + step) - f(x=POINT["x"] - step)) / (2 * step)
    assert math.isclose(slope(), quotient, rel_tol=1e-7), (slope(), quotient)


@pytest.mark.parametrize("node", [ceil_divide, floor_divide])
def test_a_rounded_division_slopes_as_it_does_over_many_steps(node):
    for symbol in (x, y):
        f, slope = function_of(node(x, y)), function_of(sp.diff(node(x, y), symbol))
        assert math.isclose(slope(), function_of(sp.diff(x / y, symbol))())
        assert slope() != 0
        assert f() == (1 if node is ceil_divide else 0)


@pytest.mark.parametrize("node", [ceil_log2, floor_log2, ones_below, nearest_whole])
def test_what_moves_in_steps_is_flat_between_them(node):
    assert sp.diff(node(3 * x), x) == 0
    f = function_of(node(3 * x))
    assert f(x=POINT["x"] + 1e-6) == f(x=POINT["x"] - 1e-6)


def test_a_chance_is_flat_in_whole_draws():
    assert sp.diff(none_drawn(x, y, 2), x) == 0


@pytest.mark.parametrize("name", SMOOTH)
def test_what_does_not_depend_has_no_slope(name):
    assert sp.diff(SMOOTH[name], sp.Symbol("elsewhere")) == 0


def test_slopes_that_do_not_depend_on_the_branch_lose_it():
    assert sp.diff(select(y > 1, 2 * x, 2 * x + y), x) == 2
    assert sp.diff(smallest(2 * x, 2 * x + y), x) == 2
