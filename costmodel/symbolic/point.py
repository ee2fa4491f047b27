"""One answer, and the way through its equations: every value, and which branch each formula took."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any

import sympy as sp

from costmodel.errors import EquationError
from costmodel.symbolic import nodes
from costmodel.symbolic.nodes import Axis, Expression
from costmodel.symbolic.system import EquationSystem
from costmodel.symbolic.text import TextWriter
from costmodel.symbolic.write import load
from costmodel.symbolic.write_math import MathWriter, math_module

At = Mapping[str, int]
"""The row of each axis that is bound."""

TIE = 1e-12
"""Alternatives whose values differ by less than this share bind together: round numbers tie exactly, up to rounding."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What one smallest, largest, select, choose or reduction took.

    `kind` is smallest, largest, if, choose, best, worst, at best, at worst or total. `taken` names the alternative,
    condition, label or row, `tied` those that bind as well. `options` are all alternatives with their values, where there
    are values to compare.
    """

    kind: str
    over: str
    taken: str
    tied: tuple[str, ...] = ()
    options: tuple[tuple[str, float], ...] = ()

    @property
    def runner_up(self) -> tuple[str, float] | None:
        """The alternative that comes next, when there is one that does not tie."""
        rest = [option for option in self.options if option[0] != self.taken and option[0] not in self.tied]
        worst = self.kind in {"largest", "worst", "at worst", "total"}
        return (max if worst else min)(rest, key=lambda option: option[1], default=None)


class Point:
    """A system and the values of its quantities at one point.

    Args:
        system: the equations.
        values: of every quantity that is to be asked about and all that it needs, as a function from `math_module`
            returns them: numbers, or lists along the axes in `looped`.
        looped: the axes along which values are lists, outermost first.

    """

    def __init__(self, system: EquationSystem, values: Mapping[str, Any], looped: Sequence[Axis] = ()) -> None:
        self.system = system
        self.values = {name: value for name, value in values.items() if name in system.equations}
        self.looped = tuple(looped)
        self.labels = {axis.name: axis.labels for axis in looped}
        self.axes = system.axes(self.values)
        self._writer = MathWriter(system, self.axes, self.looped)
        self._codes: dict[Any, CodeType] = {}

    @cached_property
    def _names(self) -> dict[str, Any]:
        return load(math_module("", {}), self.system.name).__dict__ | self.values

    def own(self, name: str, at: At) -> dict[str, int]:
        """Of the bound rows those along which a quantity varies, outermost first."""
        if name not in self.axes:
            raise EquationError(f"no value of {self.system[name].name} is known at this point")
        return {axis.name: at[axis.name] for axis in self.looped if axis.name in self.axes[name] and axis.name in at}

    def unbound(self, name: str, at: At) -> list[Axis]:
        """The axes along which a quantity still varies."""
        bound = self.own(name, at)
        return [axis for axis in self.looped if axis.name in self.axes[name] and axis.name not in bound]

    def bind(self, name: str, rows: Mapping[str, str]) -> At:
        """The numbers of rows given by label; along every other axis of the quantity the row where it is largest.

        Raises EquationError for an unknown name, axis or label.
        """
        known = {axis.name: axis for axis in self.looped}
        at: dict[str, int] = {}
        for axis, label in rows.items():
            if axis not in known:
                raise EquationError(f"there is no axis {axis!r}; the axes are {', '.join(known) or 'none'}")
            at[axis] = known[axis].number(label)
        while free := self.unbound(name, at):
            axis = free[0].name
            sizes = [_largest(self.row(name, self.values[name], {**at, axis: i})) for i in range(len(free[0].labels))]
            at[axis] = sizes.index(max(sizes))
        return at

    def row(self, name: str, value: Any, at: At) -> Any:
        """What the value of a quantity, a list along each of its axes, is in the rows that are bound."""
        own = self.own(name, at)
        for axis in self.looped:
            if axis.name in own:
                value = value[own[axis.name]]
        return value

    def key(self, name: str, at: At) -> str:
        """A quantity's name with the numbers of its rows: tells it from its other rows, and sorts by row."""
        return name + "".join(f"[{i:06}]" for i in self.own(name, at).values())

    def value(self, x: Expression, at: At) -> Any:
        """The number, or truth, of an expression whose every axis is bound or reduced."""
        return self._run(x, self._writer.write, x, at)

    def along(self, x: Expression, axis: str, at: At) -> list[float]:
        """The values of an expression in every row of an axis."""
        return list(self._run((x, axis), lambda y: f"[{self._writer.write(y)} for {self._writer.loop(axis)}]", x, at))

    def _run(self, key: Any, write: Any, x: Expression, at: At) -> Any:
        if key not in self._codes:
            self._codes[key] = compile(write(x), f"<{self.system.name}>", "eval")
        bound = {f"i_{axis}": i for axis, i in at.items()}
        return eval(self._codes[key], self._names | bound)  # noqa: S307  our own source

    def follow(self, x: Expression, at: At) -> tuple[Expression, At]:
        """The part of a branching function that its value comes from, and the rows that are bound there."""
        if isinstance(x, nodes.Extreme):
            values = [self.value(a, at) for a in x.args]
            return x.args[values.index(_extreme(x)(values))], at
        if isinstance(x, nodes.select):
            return x.args[1 if self.value(x.args[0], at) else 2], at
        if isinstance(x, nodes.chosen):
            return x.options[self.label(x.args[0], at)], at
        if isinstance(x, nodes.stacked):
            return x.args[1 + at[x.axis]], at
        if isinstance(x, nodes.at_row):
            return x.args[0], {**at, x.axis: int(x.args[2])}
        key = x.args[2] if isinstance(x, nodes.Pick) else x.args[0]
        values = self.along(key, x.axis, at)
        return x.args[0], {**at, x.axis: values.index(_extreme(x)(values))}

    def label(self, choice: Expression, at: At) -> str:
        """The label that a choice holds."""
        return self.system.labels(choice)[int(self.value(choice, at))]

    def decision(self, x: Expression, at: At) -> Decision | None:
        """What a branching function took and why; None for one that has nothing to decide."""
        if isinstance(x, nodes.Extreme):
            values = [(_text(a, self), self.value(a, at)) for a in x.args]
            return _compared(x.func.__name__, "", values, _extreme(x)) if len(values) > 1 else None
        if isinstance(x, nodes.select):
            holds = bool(self.value(x.args[0], at))
            return Decision("if", "", f"{_text(x.args[0], self)} is {'true' if holds else 'false'}")
        if isinstance(x, nodes.chosen):
            return Decision("choose", str(x.args[0]), self.label(x.args[0], at))
        if isinstance(x, nodes.Reduction):
            key = x.args[2] if isinstance(x, nodes.Pick) else x.args[0]
            values = list(zip(self.labels[x.axis], self.along(key, x.axis, at), strict=True))
            return _compared(_KINDS[x.func], x.axis, values, _extreme(x))
        return None


_KINDS = {
    nodes.total_over: "total",
    nodes.smallest_over: "best",
    nodes.largest_over: "worst",
    nodes.at_smallest: "at best",
    nodes.at_largest: "at worst",
}


def _largest(value: Any) -> float:
    return max(map(_largest, value)) if isinstance(value, (list, tuple)) else float(value)


def _extreme(x: Expression) -> Any:
    large = isinstance(x, (nodes.largest, nodes.largest_over, nodes.at_largest, nodes.total_over))
    return max if large else min


def _text(x: Expression, point: Point) -> str:
    return TextWriter(point.labels).write(x)


def _compared(kind: str, over: str, values: Sequence[tuple[str, float]], extreme: Any) -> Decision:
    taken = extreme(values, key=lambda option: option[1])
    tied = [name for name, value in values if name != taken[0] and math.isclose(value, taken[1], rel_tol=TIE)]
    return Decision(kind, over, taken[0], () if kind == "total" else tuple(tied), tuple(values))


class Walk(ABC):
    """Rewrites an expression along the branches taken at a point; subclasses say what becomes of its symbols."""

    def __init__(self, point: Point) -> None:
        self.point = point

    @abstractmethod
    def symbol(self, x: Expression, at: At) -> Expression:
        """What a symbol becomes."""

    def branch(self, x: Expression, at: At) -> None:  # noqa: B027 - a walk need not watch the branches
        """Called at each branching function, before the branch is followed."""

    def total(self, x: Expression, at: At) -> Expression:
        """What a sum along an axis becomes: the sum of what its rows become."""
        rows = range(len(self.point.labels[x.axis]))
        return sp.Add(*(self.visit(x.args[0], {**at, x.axis: i}) for i in rows))

    def visit(self, x: Expression, at: At) -> Expression:
        """What an expression becomes."""
        if x.is_Symbol:
            return self.symbol(x, at)
        if isinstance(x, nodes.total_over):
            self.branch(x, at)
            return self.total(x, at)
        if isinstance(x, _BRANCHING):
            self.branch(x, at)
            return self.visit(*self.point.follow(x, at))
        return x.func(*(self.visit(a, at) for a in x.args)) if x.args else x


_BRANCHING = (nodes.Extreme, nodes.select, nodes.chosen, nodes.stacked, nodes.at_row, nodes.Reduction)
