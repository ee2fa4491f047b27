"""Expressions as a person reads them in a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from costmodel.symbolic import nodes
from costmodel.symbolic.nodes import Expression
from costmodel.symbolic.write import ADD, ATOM, COMPARE, MULTIPLY, POWER, Code, PythonWriter


def plain(value: float, unit: str = "", digits: int = 4) -> str:
    """A value in SI units: 0.006064 s, 4.5e10 B/s, 8."""
    whole = abs(value) < 1e6 and value == int(value)
    text = str(int(value)) if whole else re.sub(r"e([+-]?)0*(\d+)$", _power_of_ten, f"{value:.{digits}g}")
    return f"{text} {unit}".strip()


def _power_of_ten(found: re.Match[str]) -> str:
    return f"e{found[1].strip('+')}{found[2]}"


class TextWriter(PythonWriter):
    """Writes an expression in words and signs, and notes its symbols in the order in which they are read.

    `labels` are the row labels of each axis; `show` says how a symbol is written, by default as its name.
    """

    functions: ClassVar[dict[type, str]] = {
        nodes.smallest: "smallest",
        nodes.largest: "largest",
        nodes.ceil_divide: "ceil",
        nodes.floor_divide: "floor",
        nodes.ceil_log2: "ceil_log2",
        nodes.floor_log2: "floor_log2",
        nodes.ones_below: "ones_below",
        nodes.nearest_whole: "nearest_whole",
        nodes.none_drawn: "none_drawn",
    }
    reductions: ClassVar[dict[type, str]] = {
        nodes.total_over: "total",
        nodes.smallest_over: "best",
        nodes.largest_over: "worst",
        nodes.at_smallest: "at_best",
        nodes.at_largest: "at_worst",
    }

    def __init__(self, labels: Mapping[str, Sequence[str]] | None = None, show: Callable[[str], str] = str) -> None:
        self.labels, self.show = labels or {}, show
        self.read: dict[str, None] = {}

    def emit(self, x: Expression) -> Code:
        """The expression and how tightly it binds; a negative number in place of a symbol binds as a sum does."""
        code, binding = super().emit(x)
        return code, ADD if x.is_Symbol and code.startswith("-") else binding

    def symbol(self, x: Expression) -> str:
        """A symbol as it is shown; noted as read."""
        self.read.setdefault(str(x.name))
        return self.show(str(x.name))

    def number(self, x: Expression) -> Code:
        """A constant, floats to six digits."""
        return super().number(x) if x.is_Rational else (plain(float(x), digits=6), ATOM if x >= 0 else ADD)

    def power(self, x: Expression) -> Code:
        """A power; roots by name, whole powers as powers."""
        if x.exp.is_Integer and x.exp > 1:
            return f"{self.at(x.base, ATOM)}**{x.exp}", POWER
        return super().power(x)

    def node(self, x: Expression) -> Code:
        """Functions by name, choices and reductions in words."""
        if isinstance(x, nodes.select):
            condition, value, otherwise = x.args
            code = f"{self.at(value, ADD)} if {self.write(condition)}"
            return f"{code} else {self.at(otherwise, ADD)}", COMPARE - 1
        if isinstance(x, nodes.chosen):
            choice = self.write(x.args[0])
            named = {" ".join(labels): formula for formula, labels in x.branches.items()}
            return f"choose({choice}, {self.listed(named)})", ATOM
        if isinstance(x, nodes.stacked):
            formulas = {self.label(x.axis, i): formula for i, formula in enumerate(x.args[1:])}
            return f"rows({x.axis}, {self.listed(formulas)})", ATOM
        if isinstance(x, nodes.at_row):
            return f"{self.at(x.args[0], ATOM)}[{self.label(x.axis, int(x.args[2]))}]", ATOM
        if isinstance(x, nodes.Reduction):
            arguments = ", ".join(self.at(a, MULTIPLY - 1) for a in (x.args[0], *x.args[2:]))
            return f"{self.reductions[type(x)]}({arguments} over {x.axis})", ATOM
        return super().node(x)

    def label(self, axis: str, row: int) -> str:
        """The label of a row, or its number where the axis has none that is known."""
        return self.labels[axis][row] if axis in self.labels else str(row)

    def listed(self, formulas: Mapping[str, Expression]) -> str:
        """Formulas by label."""
        return ", ".join(f"{label}: {self.write(formula)}" for label, formula in formulas.items())
