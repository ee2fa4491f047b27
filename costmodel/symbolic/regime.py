"""An answer as one short expression of a few inputs, along the branches taken: exact until one of them changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

import sympy as sp

from costmodel.symbolic import nodes
from costmodel.symbolic.nodes import Expression
from costmodel.symbolic.point import At, Point, Walk
from costmodel.symbolic.system import EquationSystem
from costmodel.symbolic.units import count
from costmodel.symbolic.write_math import compile_math

FARTHEST = 1e6
"""How far an end of a regime is looked for, as a factor."""


def regime(point: Point, name: str, keep: Collection[str], rows: Mapping[str, str] | None = None) -> Expression:
    """A quantity as an expression of the symbols in `keep`, every other one replaced by its value.

    Each smallest, largest, select, choose and reduction is replaced by what it took at this point, so that the expression
    is exact as far as the same branches are taken. Rounded divisions and logarithms stay as they are.

    Args:
        point: the values.
        name: the quantity.
        keep: names of inputs or of other quantities.
        rows: the label of the row to look at, by axis; the row with the largest value where none is given.

    Raises EquationError for an unknown name, axis or label.

    """
    for kept in keep:
        point.system[kept]
    found = _Along(point, frozenset(keep)).symbol(point.system[name].symbol, point.bind(name, rows or {}))
    return min((found, sp.expand(found)), key=sp.count_ops)


def reach(point: Point, name: str, kept: str, rows: Mapping[str, str] | None = None) -> tuple[float, float]:
    """The nearest values of one positive number, below and above, at which its regime stops to hold.

    They are found by trying, to six digits; 0 and infinity when it holds over six orders of magnitude.
    """
    formula = _function("regime", regime(point, name, [kept], rows), kept)
    at = point.bind(name, rows or {})
    system = point.system.cut(kept)
    whole = compile_math(system, [name], looped=point.looped)
    inputs = {e.name: point.values[e.name] for e in system.inputs([name])}
    if kept not in inputs:
        return 0.0, math.inf

    def holds(x: float) -> bool:
        try:
            value = point.row(name, whole(**{**inputs, kept: x})[name], at)
            return math.isclose(value, formula(x), rel_tol=1e-9)
        except (ArithmeticError, ValueError):
            return False

    here = point.row(kept, point.values[kept], at)
    return here / _end(lambda factor: holds(here / factor)), here * _end(lambda factor: holds(here * factor))


def _function(name: str, x: Expression, of: str) -> Callable[[float], float]:
    system = EquationSystem(name)
    system.input(of, count, "what varies")
    system.define(name, count, x, "along the branches taken")
    function = compile_math(system, [name, of])
    return lambda value: float(function(**{of: value})[name])


def _end(holds: Callable[[float], bool]) -> float:
    """The factor from which on something no longer holds, infinite when it holds as far as one looks."""
    good, bad = 1.0, 1.01
    while holds(bad):
        good, bad = bad, bad**1.5
        if bad > FARTHEST:
            return math.inf
    while bad / good > 1 + 1e-7:
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return bad


class _Along(Walk):
    """Replaces what does not depend on the symbols kept by its value."""

    def __init__(self, point: Point, keep: frozenset[str]) -> None:
        super().__init__(point)
        self.keep = keep
        self.depends = set(keep)
        for e in point.system.order(point.values):
            if not self.depends.isdisjoint(e.uses):
                self.depends.add(e.name)
        self.known: dict[str, Expression] = {}

    def symbol(self, x: Expression, at: At) -> Expression:
        if x.name in self.keep:
            return x
        if x.name not in self.depends:
            return _exact(self.point.value(x, at))
        key = self.point.key(x.name, at)
        if key not in self.known:
            self.known[key] = self.visit(self.point.system[x.name].expression, self.point.own(x.name, at))
        return self.known[key]

    def visit(self, x: Expression, at: At) -> Expression:
        if x.args and self.depends.isdisjoint(s.name for s in x.free_symbols):
            return _exact(self.point.value(x, at))
        found = super().visit(x, at)
        settled = isinstance(found, nodes.Node) and not found.free_symbols
        return _exact(self.point.value(x, at)) if settled else found


def _exact(value: float) -> Expression:
    """A number that prints as what it is: whole numbers stay whole."""
    whole = math.isfinite(value) and abs(value) < 2**53 and value == int(value)
    return sp.Integer(int(value)) if whole else sp.oo if value == math.inf else sp.Float(value)
