"""Why a quantity has its value: the tree of definitions below it, in symbols and numbers, along the branches taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import sympy as sp

from costmodel.symbolic import nodes
from costmodel.symbolic.latex import latex, number
from costmodel.symbolic.nodes import Axis, Expression
from costmodel.symbolic.point import At, Decision, Point, Walk
from costmodel.symbolic.system import Equation, EquationSystem
from costmodel.symbolic.text import TextWriter, plain

FEW = 8
"""A sum over at most so many rows is written out."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity of a tree, with the part of the tree below it.

    Attributes:
        equation: its definition, or what it is as an input.
        rows: the axis and the label of each row that it is taken in.
        value: its number; None in a tree of definitions without values.
        held: the label that a choice holds, else empty.
        taken: its expression along the branches taken, over the symbols in `values`; None for an input.
        values: what each quantity in it is worth, by name and rows.
        decisions: what each branching function in it took.
        parts: the quantities in it, in reading order; empty where the tree ends.
        labels: the row labels of each axis, for printing.

    """

    equation: Equation
    rows: tuple[tuple[str, str], ...] = ()
    value: float | None = None
    held: str = ""
    taken: Expression | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    parts: tuple[Quantity, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the quantity, without its rows."""
        return self.equation.name

    @property
    def shown(self) -> str:
        """The name with the labels of its rows."""
        return f"{self.name}[{', '.join(label for _, label in self.rows)}]" if self.rows else self.name

    @property
    def unit(self) -> str:
        """The label of its unit."""
        return self.equation.unit.label

    @property
    def text(self) -> str:
        """Its defining expression, as text; empty for an input."""
        return "" if self.equation.is_input else TextWriter(self.labels).write(self.equation.expression)

    @property
    def numbers(self) -> str:
        """Its expression along the branches taken, with numbers in it; empty where that is the value itself."""
        return "" if not self._says_more else TextWriter(self.labels, self._number).write(self.taken)

    @property
    def latex(self) -> str:
        """Its defining expression, as LaTeX."""
        return "" if self.equation.is_input else latex(self.equation.expression, self.labels)

    @property
    def numbers_latex(self) -> str:
        """Its expression along the branches taken, with numbers in it, as LaTeX."""
        return "" if not self._says_more else latex(self.taken, self.labels, lambda name: number(self._number(name)))

    @property
    def _says_more(self) -> bool:
        return self.taken is not None and bool(self.taken.args)

    def _number(self, name: str) -> str:
        return plain(self.values[name])

    def walk(self) -> Iterator[tuple[int, Quantity, bool]]:
        """Every quantity of the tree with its depth, and whether all there is to tell of it was told before."""
        told: dict[str, bool] = {}

        def below(depth: int, q: Quantity) -> Iterator[tuple[int, Quantity, bool]]:
            again = q.shown in told and (told[q.shown] or not q.parts)
            yield depth, q, again
            told[q.shown] = told.get(q.shown, False) or bool(q.parts)
            if not again:
                for part in q.parts:
                    yield from below(depth + 1, part)

        return below(0, self)


def definition(system: EquationSystem, name: str, depth: int = 1, axes: Sequence[Axis] = ()) -> Quantity:
    """The tree of definitions below a quantity, in symbols alone; `axes` tell the labels of rows.

    Raises EquationError for an unknown name.
    """
    labels = {axis.name: axis.labels for axis in axes}

    @cache
    def below(name: str, depth: int) -> Quantity:
        equation = system[name]
        if not depth or equation.is_input:
            return Quantity(equation, labels=labels)
        writer = TextWriter()
        writer.write(equation.expression)
        return Quantity(equation, parts=tuple(below(used, depth - 1) for used in writer.read), labels=labels)

    return below(name, depth)


def tree(point: Point, name: str, depth: int = 3, rows: Mapping[str, str] | None = None) -> Quantity:
    """Why a quantity has its value at a point.

    Args:
        point: the values.
        name: the quantity.
        depth: how many definitions to go down.
        rows: the label of the row to look at, by axis; the row with the largest value where none is given.

    Raises EquationError for an unknown name, axis or label.

    """
    return _Tree(point).quantity(name, point.bind(name, rows or {}), depth)


class _Reading(Walk):
    """Rewrites one expression along its branches; notes the quantities met and what was decided."""

    def __init__(self, point: Point) -> None:
        super().__init__(point)
        self.met: dict[str, tuple[str, At]] = {}
        self.values: dict[str, float] = {}
        self.decisions: list[Decision] = []
        self.deciding: list[tuple[Expression, At]] = []
        self.small: set[str] = set()
        """Quantities that are in the smaller rows of a sum only."""
        self._in_small_row = False

    def symbol(self, x: Expression, at: At) -> Expression:
        key = self.point.key(x.name, at)
        if not self._in_small_row:
            self.small.discard(key)
        elif key not in self.met:
            self.small.add(key)
        self.met.setdefault(key, (x.name, self.point.own(x.name, at)))
        self.values[key] = self.point.value(x, at)
        return sp.Symbol(key)

    def branch(self, x: Expression, at: At) -> None:
        decision = self.point.decision(x, at)
        if decision is not None and decision not in self.decisions:
            self.decisions.append(decision)
        if isinstance(x, (nodes.select, nodes.chosen)):
            self.deciding.append((x.args[0], at))
        elif isinstance(x, nodes.Pick):
            self.deciding.append((x.args[2], self.point.follow(x, at)[1]))

    def total(self, x: Expression, at: At) -> Expression:
        sizes = [abs(value) for value in self.point.along(x.args[0], x.axis, at)]
        largest, inside, terms = sizes.index(max(sizes)), self._in_small_row, []
        for i in range(len(sizes)) if len(sizes) <= FEW else [largest]:
            self._in_small_row = inside or i != largest
            terms.append(self.visit(x.args[0], {**at, x.axis: i}))
        self._in_small_row = inside
        if len(sizes) <= FEW:
            return sp.Add(*terms)
        whole = TextWriter(self.point.labels).write(x)
        self.values[whole] = self.point.value(x, at)
        return sp.Symbol(whole)


class _Tree:
    """Builds the tree of one point; what is met twice is built once."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.built: dict[tuple[str, int], Quantity] = {}

    def quantity(self, name: str, at: At, depth: int) -> Quantity:
        key = self.point.key(name, at), depth
        if key not in self.built:
            self.built[key] = self._build(name, self.point.own(name, at), depth)
        return self.built[key]

    def _build(self, name: str, at: At, depth: int) -> Quantity:
        point, equation = self.point, self.point.system[name]
        labels = point.labels
        rows = tuple((axis, labels[axis][i]) for axis, i in at.items())
        value = point.value(equation.symbol, at)
        if equation.is_input:
            held = point.label(equation.symbol, at) if equation.labels else ""
            return Quantity(equation, rows, value, held, labels=labels)
        reading = _Reading(point)
        taken = reading.visit(equation.expression, at)
        parts = self._parts(reading, taken, depth) if depth else ()
        return Quantity(equation, rows, value, "", taken, reading.values, tuple(reading.decisions), parts, labels)

    def _parts(self, reading: _Reading, taken: Expression, depth: int) -> tuple[Quantity, ...]:
        """The quantities met, in reading order, then those that decided about branches."""
        point = self.point
        writer = TextWriter(point.labels)
        writer.write(taken)
        order = [key for key in writer.read if key in reading.met]
        met = {key: reading.met[key] for key in [*order, *reading.met]}
        for condition, at in reading.deciding:
            asked = TextWriter(point.labels)
            asked.write(condition)
            for name in asked.read:
                if not point.unbound(name, at):
                    met.setdefault(point.key(name, at), (name, point.own(name, at)))
        return tuple(
            self.quantity(name, at, 0 if key in reading.small else depth - 1) for key, (name, at) in met.items()
        )
