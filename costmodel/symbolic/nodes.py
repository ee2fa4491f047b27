"""The functions that equations are written with, beside sympy's arithmetic.

sympy's own Min, Max, Piecewise and ceiling rewrite what they are given and are slow; these stay exactly as written.
Each has one printer in `write_math`, one in `write_numpy`, one in `latex`, and a derivative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import sympy as sp
from sympy.core.symbol import Str

from costmodel.errors import EquationError

Expression = Any  # sympy ships no types

FLOP = sp.Symbol("FLOP")
"""One operation: turns a count of multiplications into work. It is 1 in every value and a unit in the unit check."""

BYTE = sp.Symbol("BYTE")
"""One byte: gives a plain number of bytes its unit. It is 1 in every value."""

SECOND = sp.Symbol("SECOND")
"""One second: gives a plain number of seconds its unit. It is 1 in every value."""

UNIT_SYMBOLS = (FLOP, BYTE, SECOND)


@dataclass(frozen=True, slots=True)
class Axis:
    """A named axis along which a quantity can vary; `labels` name its rows where they are fixed."""

    name: str
    labels: tuple[str, ...] = ()

    def number(self, label: str) -> int:
        """The row of a label; raises EquationError for one that the axis lacks."""
        if label not in self.labels:
            raise EquationError(f"axis {self.name} has no row {label!r}; its rows are {', '.join(self.labels)}")
        return self.labels.index(label)


class Node(sp.Function):  # type: ignore[misc]
    """A function that sympy must not look into: it stays as written."""

    @classmethod
    def eval(cls, *_: Expression) -> None:
        """Leave it as written."""


class Extreme(Node):
    """The smallest or the largest of its arguments."""

    prefers: ClassVar[type]
    """The relation in which what is taken stands to the others."""

    def _eval_derivative(self, x: Expression) -> Expression:
        first, *rest = self.args
        if not rest:
            return sp.diff(first, x)
        other = self.func(*rest) if len(rest) > 1 else rest[0]
        d_first, d_other = sp.diff(first, x), sp.diff(other, x)
        return d_first if d_first == d_other else select(self.prefers(first, other, evaluate=False), d_first, d_other)


class smallest(Extreme):
    """The smallest of its arguments, element by element."""

    prefers = sp.Le


class largest(Extreme):
    """The largest of its arguments, element by element."""

    prefers = sp.Ge


class RoundedDivision(Node):
    """A quotient by one true division, rounded to a whole number."""

    def fdiff(self, argindex: int = 1) -> Expression:
        """The smooth slope, which is what a planner means by the sensitivity to a number of tiles."""
        a, b = self.args
        return (1 / b, -a / b**2)[argindex - 1]


class ceil_divide(RoundedDivision):
    """The smallest whole number that is at least a/b."""


class floor_divide(RoundedDivision):
    """The largest whole number that is at most a/b."""


class Step(Node):
    """A function of whole numbers that is flat between its steps."""

    def fdiff(self, argindex: int = 1) -> Expression:
        """Zero, whatever the position of the argument, `argindex`."""
        return sp.Integer(0 * argindex)


class ceil_log2(Step):
    """The smallest k with 2^k >= n, for n >= 1."""


class floor_log2(Step):
    """The largest k with 2^k <= n, for n >= 1."""


class ones_below(Step):
    """How many ones the binary forms of 0 .. n-1 hold together."""


class nearest_whole(Step):
    """The nearest whole number, halves to even."""


class none_drawn(Step):
    """none_drawn(population, marked, draws): the chance that draws without putting back hit none of the marked."""


class select(Node):
    """select(condition, value, otherwise): only the branch taken needs to be meaningful."""

    def __new__(cls, condition: Expression, *formulas: Expression, **options: Any) -> Any:
        """Refuse what Python's == makes of two formulas."""
        return super().__new__(cls, _condition(condition), *formulas, **options)

    @classmethod
    def eval(cls, condition: Expression, value: Expression, otherwise: Expression) -> Expression | None:
        """Only a condition that binding has settled, such as 1 > 1, is resolved."""
        return value if condition == sp.true else otherwise if condition == sp.false else None

    def _eval_derivative(self, x: Expression) -> Expression:
        condition, value, otherwise = self.args
        d_value, d_otherwise = sp.diff(value, x), sp.diff(otherwise, x)
        return d_value if d_value == d_otherwise else select(condition, d_value, d_otherwise)


class chosen(Node):
    """chosen(choice, Str(label), formula, Str(label), formula, ...): write it with `choose`."""

    @property
    def options(self) -> dict[str, Expression]:
        """The formula of each label."""
        return {label.name: formula for label, formula in zip(self.args[1::2], self.args[2::2], strict=True)}

    @property
    def branches(self) -> dict[Expression, tuple[str, ...]]:
        """The labels that share each formula; the formula of the last label comes last."""
        *_, last = self.options.values()
        found: dict[Expression, tuple[str, ...]] = {}
        for label, formula in self.options.items():
            found[formula] = (*found.get(formula, ()), label)
        found[last] = found.pop(last)
        return found

    def _eval_derivative(self, x: Expression) -> Expression:
        slopes = {label: sp.diff(formula, x) for label, formula in self.options.items()}
        return next(iter(slopes.values())) if len(set(slopes.values())) == 1 else choose(self.args[0], slopes)


class at_row(Node):
    """at_row(expression, Str(axis), number): write it with `row`."""

    @property
    def axis(self) -> str:
        """The name of the axis that the row is of."""
        return str(self.args[1].name)

    def _eval_derivative(self, x: Expression) -> Expression:
        slope = sp.diff(self.args[0], x)
        return slope if slope == 0 else at_row(slope, *self.args[1:])


class stacked(Node):
    """stacked(Str(axis), a, b, ...): one formula a row; write it with `rows`."""

    @property
    def axis(self) -> str:
        """The name of the axis that the formulas are the rows of."""
        return str(self.args[0].name)

    def _eval_derivative(self, x: Expression) -> Expression:
        slopes = [sp.diff(formula, x) for formula in self.args[1:]]
        return sp.Integer(0) if not any(slopes) else stacked(self.args[0], *slopes)


class Reduction(Node):
    """Reduction(expression, Str(axis)): the axis disappears."""

    @property
    def axis(self) -> str:
        """The name of the axis that is reduced."""
        return str(self.args[1].name)


class total_over(Reduction):
    """The sum along an axis."""

    def _eval_derivative(self, x: Expression) -> Expression:
        slope = sp.diff(self.args[0], x)
        return slope if slope == 0 else total_over(slope, self.args[1])


class smallest_over(Reduction):
    """The smallest along an axis."""

    def _eval_derivative(self, x: Expression) -> Expression:
        slope = sp.diff(self.args[0], x)
        return slope if slope == 0 else at_smallest(slope, self.args[1], self.args[0])


class largest_over(Reduction):
    """The largest along an axis."""

    def _eval_derivative(self, x: Expression) -> Expression:
        slope = sp.diff(self.args[0], x)
        return slope if slope == 0 else at_largest(slope, self.args[1], self.args[0])


class Pick(Reduction):
    """Pick(value, Str(axis), key): the value in the row that the key decides."""

    def _eval_derivative(self, x: Expression) -> Expression:
        slope = sp.diff(self.args[0], x)
        return slope if slope == 0 else self.func(slope, *self.args[1:])


class at_smallest(Pick):
    """at_smallest(value, Str(axis), key): the value in the row where the key is smallest."""


class at_largest(Pick):
    """at_largest(value, Str(axis), key): the value in the row where the key is largest."""


def choose(choice: Expression, options: Mapping[str, Expression]) -> Expression:
    """The formula whose label the input `choice` holds; `choice` is declared with `choice(labels, ...)`."""
    parts = [part for label, formula in options.items() for part in (Str(label), sp.sympify(formula))]
    return chosen(choice, *parts)


def rows(axis: Axis, formulas: Mapping[str, Expression]) -> Expression:
    """One formula for each row of an axis, by label; every row must be given."""
    if tuple(formulas) != axis.labels:
        raise EquationError(f"rows of {axis.name} must be {', '.join(axis.labels)}, in this order")
    return stacked(Str(axis.name), *(sp.sympify(formula) for formula in formulas.values()))


def row(x: Expression, axis: Axis, label: str) -> Expression:
    """The value in one row of an axis."""
    return at_row(sp.sympify(x), Str(axis.name), sp.Integer(axis.number(label)))


def total(x: Expression, axis: Axis) -> Expression:
    """The sum along an axis."""
    return total_over(sp.sympify(x), Str(axis.name))


def best(x: Expression, axis: Axis) -> Expression:
    """The smallest along an axis."""
    return smallest_over(sp.sympify(x), Str(axis.name))


def worst(x: Expression, axis: Axis) -> Expression:
    """The largest along an axis."""
    return largest_over(sp.sympify(x), Str(axis.name))


def at_best(value: Expression, key: Expression, axis: Axis) -> Expression:
    """The value in the row of an axis where the key is smallest."""
    return at_smallest(sp.sympify(value), Str(axis.name), sp.sympify(key))


def at_worst(value: Expression, key: Expression, axis: Axis) -> Expression:
    """The value in the row of an axis where the key is largest."""
    return at_largest(sp.sympify(value), Str(axis.name), sp.sympify(key))


def equal(a: Expression, b: Expression) -> Expression:
    """The condition a = b; Python's == would compare the formulas themselves."""
    return sp.Eq(sp.sympify(a), sp.sympify(b), evaluate=False)


def divides(divisor: Expression, whole: Expression) -> Expression:
    """The condition that a whole number divides another without rest."""
    return equal(floor_divide(whole, divisor) * divisor, whole)


def holds(condition: Expression) -> Expression:
    """1 where a condition holds, else 0."""
    return select(condition, sp.Integer(1), sp.Integer(0))


def both(*conditions: Expression) -> Expression:
    """All conditions hold."""
    return sp.And(*map(_condition, conditions), evaluate=False)


def either(*conditions: Expression) -> Expression:
    """At least one condition holds."""
    return sp.Or(*map(_condition, conditions), evaluate=False)


def _condition(condition: Expression) -> Expression:
    if isinstance(condition, bool):
        raise EquationError("a condition is Python's own True or False: write equal(a, b) where == stands")
    return condition


def cube_root(x: Expression) -> Expression:
    """The third root."""
    return x ** sp.Rational(1, 3)


def square_root(x: Expression) -> Expression:
    """The square root."""
    return sp.sqrt(x)


def exponential(x: Expression) -> Expression:
    """The exponential function."""
    return sp.exp(x)


infinite = sp.oo
"""What does not apply takes forever."""
