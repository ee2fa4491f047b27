"""Each kind of mistake that the checks are there for, and that what is right passes."""

import pytest
import sympy as sp
from hypothesis import given

from costmodel.errors import EquationError
from costmodel.symbolic import (
    BYTE,
    FLOP,
    SECOND,
    Axis,
    EquationSystem,
    at_best,
    best,
    bytes_,
    bytes_per_second,
    ceil_divide,
    ceil_log2,
    choose,
    count,
    cube_root,
    dollars,
    dollars_per_second,
    equal,
    flop,
    flop_per_second,
    infinite,
    joules,
    largest,
    nearest_whole,
    per_second,
    row,
    rows,
    seconds,
    select,
    smallest,
    square_root,
    total,
    watts,
)
from tests.symbolic.random_systems import systems

KIND = Axis("kind", ("dense", "sparse"))
UNITS = {"t": seconds, "u": seconds, "S": bytes_, "W": bytes_per_second, "n": count, "m": count, "P": flop_per_second}


def problems(x, unit):
    system = EquationSystem("x")
    for name, declared in UNITS.items():
        system.input(name, declared, name)
    system.input("by_kind", seconds, "by kind", axes=(KIND,))
    system.input("mode", count, "a choice", labels=("plain", "eager"))
    system.define("y", unit, x, "under test")
    return system.check()


t, u, S, W, n, m, P, by_kind, mode = sp.symbols("t u S W n m P by_kind mode")

RIGHT = [
    (S / W + t, seconds),
    (2 * n * m * FLOP / P, seconds),
    (S + 4 * BYTE, bytes_),
    (n * SECOND, seconds),
    (1 / t, per_second),
    (cube_root(t**3 + u**3), seconds),
    (square_root(t * u), seconds),
    (sp.log(S / (4 * BYTE)) + n, count),
    (smallest(t, infinite, 0), seconds),
    (select(n > 1, t, 0), seconds),
    (select(t > u, n, 1), count),
    (select(equal(t, 0), n, 1), count),
    (choose(mode, {"plain": t, "eager": infinite}), seconds),
    (ceil_divide(S, 8 * BYTE) * t, seconds),
    (total(by_kind, KIND) + best(by_kind, KIND) + row(by_kind, KIND, "dense"), seconds),
    (total(rows(KIND, {"dense": t, "sparse": 0}), KIND), seconds),
    (at_best(S * by_kind / t, by_kind, KIND), bytes_),
    (n**m, count),
    (0, seconds),
    (infinite, bytes_),
    (ceil_log2(n) * t, seconds),
]


@pytest.mark.parametrize(("x", "unit"), RIGHT, ids=str)
def test_what_balances_passes(x, unit):
    assert problems(x, unit) == []


WRONG = [
    (S + t, bytes_, "adds or compares S [B], t [s]"),
    (S - n, bytes_, "adds or compares"),
    (S / W, bytes_, "declared [B], works out as [s]"),
    (S * W, seconds, "declared [s], works out as [B^2/s]"),
    (n * m / P, seconds, "declared [s], works out as [s/FLOP]"),
    (3, seconds, "declared [s], works out as []"),
    (sp.log(S), count, "log of a quantity with a unit: S"),
    (ceil_log2(t), count, "ceil_log2 of a quantity with a unit: t"),
    (nearest_whole(S), count, "nearest_whole of a quantity with a unit: S"),
    (ceil_divide(S, n), count, "adds or compares S [B], n []"),
    (smallest(t, S), seconds, "adds or compares t [s], S [B]"),
    (largest(t, n), seconds, "adds or compares"),
    (select(t > S, n, 1), count, "adds or compares"),
    (select(n > 1, t, S), seconds, "adds or compares t [s], S [B]"),
    (select(equal(t, S), n, 1), count, "adds or compares t [s], S [B]"),
    (choose(mode, {"plain": t, "eager": S}), seconds, "adds or compares"),
    (rows(KIND, {"dense": t, "sparse": S}), seconds, "adds or compares"),
    (t**n, count, "t has a unit and is raised to n"),
    (n**t, count, "n is raised to t, which has a unit"),
    (t**0.5, count, "t has a unit and is raised to 0.5"),
    (total(t, KIND), seconds, "total_over over kind, along which t does not vary"),
    (best(2 * t, KIND), seconds, "smallest_over over kind, along which 2*t does not vary"),
    (at_best(t, u, KIND), seconds, "at_smallest over kind, along which t does not vary"),
    (choose(mode, {"plain": t}), seconds, "has no formula for 'eager'"),
    (choose(mode, {"plain": t, "eager": u, "lazy": u}), seconds, "chooses 'lazy', not among plain, eager"),
]


@pytest.mark.parametrize(("x", "unit", "said"), WRONG, ids=str)
def test_each_mistake_is_named_with_its_equation(x, unit, said):
    found = problems(x, unit)
    assert len(found) == 1, found
    assert found[0].startswith("y: ")
    assert said in found[0]


def test_every_mistake_is_told_at_once():
    assert len(problems(sp.log(S) + ceil_log2(t) + n, seconds)) == 3


def test_only_a_choice_can_be_chosen_by():
    with pytest.raises(EquationError, match="n is used by choose but was not declared as a choice"):
        problems(choose(n, {"plain": t, "eager": u}), seconds)
    with pytest.raises(EquationError, match="n \\+ 1 is used by choose but was not declared as a choice"):
        problems(choose(n + 1, {"plain": t, "eager": u}), seconds)


@given(systems())
def test_random_systems_pass(drawn):
    assert drawn.system.check() == []


def test_labels_of_units():
    units = [seconds, bytes_per_second, count, flop, dollars, dollars_per_second, joules, watts, per_second]
    labels = ["s", "B/s", "", "FLOP", "USD", "USD/s", "J", "J/s", "1/s"]
    assert [unit.label for unit in units] == labels
    assert seconds.times(seconds).label == "s^2"
    assert flop_per_second.times(seconds) == flop
