"""Passes over expressions that find mistakes: dimensions that do not balance, axes reduced that are not there."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import sympy as sp
from sympy.core.symbol import Str
from sympy.logic.boolalg import BooleanFunction

from costmodel.errors import EquationError
from costmodel.symbolic import nodes
from costmodel.symbolic.nodes import Expression
from costmodel.symbolic.units import Unit, bytes_, count, flop, seconds

_UNIT_OF = {nodes.FLOP: flop, nodes.BYTE: bytes_, nodes.SECOND: seconds}


def axes_of(x: Expression, known: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The axes along which an expression varies, given those of its symbols."""
    if x.is_Symbol:
        return known[x.name]
    found: frozenset[str] = frozenset().union(*(axes_of(a, known) for a in x.args if not isinstance(a, Str)))
    if isinstance(x, (nodes.at_row, nodes.Reduction)):
        return found - {x.axis}
    return found | {x.axis} if isinstance(x, nodes.stacked) else found


def axis_errors(x: Expression, known: Mapping[str, frozenset[str]]) -> list[str]:
    """Reductions over an axis that their expression does not have: n times the value, which nobody means."""
    return [
        f"{node.func.__name__} over {node.axis}, along which {node.args[0]} does not vary"
        for node in sorted(x.atoms(nodes.Reduction), key=str)
        if node.axis not in frozenset().union(*(axes_of(a, known) for a in node.args if not isinstance(a, Str)))
    ]


def unit_errors(x: Expression, declared: Unit, units: Mapping[str, Unit]) -> list[str]:
    """What is wrong with the dimensions of an expression that is declared to have a unit; `units` are those of its symbols."""
    walk = _UnitWalk(units)
    found = walk.unit(x)
    if found is not None and found != declared:
        walk.errors.append(f"declared [{declared.label}], works out as [{found.label}]")
    return walk.errors


class _UnitWalk:
    """Works out the unit of every sub-expression; None is the unit of 0 and infinity, which fit everywhere."""

    def __init__(self, units: Mapping[str, Unit]) -> None:
        self.units = units
        self.errors: list[str] = []

    def same(self, parts: list[Expression]) -> Unit | None:
        """The common unit of terms that are added, compared or alternatives."""
        known = [(part, unit) for part in parts if (unit := self.unit(part)) is not None]
        if known and any(unit != known[0][1] for _, unit in known):
            self.errors.append("adds or compares " + ", ".join(f"{part} [{unit.label}]" for part, unit in known))
        return known[0][1] if known else None

    def unit(self, x: Expression) -> Unit | None:
        """The unit of one expression."""
        if x in _UNIT_OF:
            return _UNIT_OF[x]
        if x.is_Symbol:
            if x.name not in self.units:
                raise EquationError(f"{x.name} is neither an input nor defined")
            return self.units[x.name]
        if isinstance(x, (sp.Number, sp.NumberSymbol)):
            return None if x == 0 or x in {sp.oo, -sp.oo} else count
        if isinstance(x, sp.Mul):
            product = count
            for a in x.args:
                product = product.times(self.unit(a) or count)
            return product
        if isinstance(x, sp.Pow):
            return self._power(x)
        if isinstance(x, sp.core.relational.Relational):
            self.same(list(x.args))
            return count
        if isinstance(x, BooleanFunction):
            for a in x.args:
                self.unit(a)
            return count
        return self._node(x)

    def _power(self, x: Expression) -> Unit:
        base = self.unit(x.base) or count
        if self.unit(x.exp) not in {None, count}:
            self.errors.append(f"{x.base} is raised to {x.exp}, which has a unit")
        if base == count:
            return count
        if not x.exp.is_Rational:
            self.errors.append(f"{x.base} has a unit and is raised to {x.exp}")
            return count
        return base.power(Fraction(int(x.exp.p), int(x.exp.q)))

    def _node(self, x: Expression) -> Unit | None:
        if isinstance(x, nodes.chosen):
            self.unit(x.args[0])
            return self.same(list(x.args[2::2]))
        if isinstance(x, nodes.select):
            self.unit(x.args[0])
            return self.same(list(x.args[1:]))
        if isinstance(x, nodes.stacked):
            return self.same(list(x.args[1:]))
        if isinstance(x, (sp.Add, nodes.Extreme)):
            return self.same(list(x.args))
        if isinstance(x, nodes.RoundedDivision):
            self.same(list(x.args))
            return count
        if isinstance(x, nodes.Pick):
            self.unit(x.args[2])
        if isinstance(x, (nodes.Reduction, nodes.at_row)):
            return self.unit(x.args[0])
        for a in x.args:
            if self.unit(a) not in {None, count}:
                self.errors.append(f"{x.func.__name__} of a quantity with a unit: {a}")
        return count
