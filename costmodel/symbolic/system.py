"""Equation and EquationSystem: every quantity is a named symbol with a unit, defined once by one expression."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import sympy as sp

from costmodel.errors import EquationError, nearest
from costmodel.symbolic.checks import axes_of, axis_errors, unit_errors
from costmodel.symbolic.nodes import UNIT_SYMBOLS, Axis, Expression, Extreme, chosen
from costmodel.symbolic.units import Unit

RESERVED = frozenset(
    {
        *("FLOP", "BYTE", "SECOND", "system"),
        *("cbrt", "ceil", "exp", "floor", "inf", "log", "sqrt"),
        *(
            "ceil_log2",
            "floor_log2",
            "locals",
            "max",
            "min",
            "nearest_whole",
            "none_drawn",
            "ones_below",
            "range",
            "sum",
        ),
        *(
            "add",
            "at_largest",
            "at_smallest",
            "branch_taken",
            "ceil_log2s",
            "floor_log2s",
            "maximum",
            "minimum",
            "nearest_wholes",
        ),
        *("divide", "multiply", "onto_first", "onto_second", "subtract"),
        *("none_drawns", "ones_belows", "row", "stacked", "where"),
    }
)
"""Names that chapters and generated modules use themselves; so is i_ in front, for the loops over axes."""


@dataclass(frozen=True)
class Equation:
    """One quantity. `stated` is the defining expression as written, or None for an input.

    `axes` of an input are declared, those of a definition inferred. `labels` are the alternatives that an input
    of `choose` may hold. `owner` says where an input's value comes from: chip, link, cluster, model, layout,
    workload, assumption. `approximate` says in words why a form is not exact, and is empty where it is.
    """

    symbol: sp.Symbol
    unit: Unit
    meaning: str
    stated: Expression | None = None
    axes: frozenset[str] = frozenset()
    labels: tuple[str, ...] = ()
    owner: str = ""
    source: str = ""
    valid: str = ""
    approximate: str = ""

    @property
    def name(self) -> str:
        """The symbol's name."""
        return str(self.symbol.name)

    @property
    def is_input(self) -> bool:
        """Whether nobody defines it here."""
        return self.stated is None

    @cached_property
    def expression(self) -> Expression:
        """What is evaluated: as stated, with the unit symbols taken as 1."""
        if self.stated is None:
            raise EquationError(f"{self.name} is an input: it has no expression")
        return self.stated.xreplace(dict.fromkeys(UNIT_SYMBOLS, sp.Integer(1)))

    @cached_property
    def uses(self) -> tuple[str, ...]:
        """Names of the symbols in the expression, sorted."""
        return () if self.stated is None else tuple(sorted(s.name for s in self.expression.free_symbols))


class View:
    """The symbols of an included chapter as attributes: `along_tp.all_gather`."""

    def __init__(self, symbols: Mapping[str, Expression]) -> None:
        self._symbols = dict(symbols)

    def __getattr__(self, name: str) -> Expression:
        if name in self._symbols:
            return self._symbols[name]
        hint = ", ".join(nearest(name, self._symbols)) or "nothing like it is defined there"
        raise AttributeError(f"no quantity {name!r} in this part; {hint}")


class EquationSystem:
    """A set of equations; its inputs are the symbols that nobody defines."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.equations: dict[str, Equation] = {}

    def __getitem__(self, name: str) -> Equation:
        if name not in self.equations:
            hint = nearest(name, self.equations)
            raise EquationError(
                f"{self.name} has no quantity {name!r}" + (f"; did you mean {', '.join(hint)}?" if hint else "")
            )
        return self.equations[name]

    def add(self, equation: Equation) -> Expression:
        """Add one equation and return its symbol. Raises EquationError for a reserved or repeated name."""
        name = equation.name
        if not name.isidentifier() or keyword.iskeyword(name) or name in RESERVED or name.startswith("i_"):
            raise EquationError(f"{name!r} cannot name a quantity: Python or the generated modules use it")
        if name in self.equations:
            raise EquationError(f"{name} is defined twice in {self.name}")
        self.equations[name] = equation
        return equation.symbol

    def input(
        self,
        name: str,
        unit: Unit,
        meaning: str,
        axes: Sequence[Axis] = (),
        *,
        owner: str = "",
        labels: Sequence[str] = (),
    ) -> Expression:
        """Declare an input."""
        over = frozenset(axis.name for axis in axes)
        return self.add(Equation(sp.Symbol(name), unit, meaning, axes=over, owner=owner, labels=tuple(labels)))

    def define(
        self,
        name: str,
        unit: Unit,
        expression: Expression,
        meaning: str,
        *,
        source: str = "",
        valid: str = "",
        approximate: str = "",
    ) -> Expression:
        """Define a quantity by an expression over others."""
        stated = sp.sympify(expression)
        return self.add(
            Equation(sp.Symbol(name), unit, meaning, stated, source=source, valid=valid, approximate=approximate)
        )

    def include(self, other: EquationSystem, prefix: str = "", bind: Mapping[str, Expression] | None = None) -> View:
        """Copy another system's equations, their names prefixed, some of its inputs bound to expressions of this one.

        An input that is not bound keeps its name and is shared with an input or definition of the same name here, which must
        have the same unit. Without a prefix, an equation that is here already, word for word, is shared too.
        """
        waiting = dict(bind or {})
        here: dict[Any, Expression] = {}
        for e in other.equations.values():
            if e.name in waiting:
                if not e.is_input:
                    raise EquationError(f"{other.name}.{e.name} is defined there and cannot be bound")
                here[e.symbol] = sp.sympify(waiting.pop(e.name))
            else:
                here[e.symbol] = e.symbol if e.is_input else sp.Symbol(prefix + e.name)
        if waiting:
            raise EquationError(f"{other.name} has no input {', '.join(sorted(waiting))}")
        renamed = {old: new for old, new in here.items() if old != new}
        for e in other.equations.values():
            if e.stated is not None:
                copy = replace(e, symbol=here[e.symbol], stated=e.stated.xreplace(renamed))
                known = self.equations.get(copy.name)
                if prefix or known is None or known.stated != copy.stated:
                    self.add(copy)
            elif here[e.symbol] == e.symbol:
                self._share(e, other)
        return View({symbol.name: value for symbol, value in here.items()})

    def _share(self, e: Equation, other: EquationSystem) -> None:
        """Take over an input of another system, unless a quantity of that name is here and is of the same kind."""
        known = self.equations.get(e.name)
        if known is None:
            self.add(e)
        elif known.unit != e.unit:
            units = f"[{known.unit.label}] in {self.name} and [{e.unit.label}] in {other.name}"
            raise EquationError(f"{e.name} is {units}: bind it")
        elif known.labels != e.labels:
            raise EquationError(f"{e.name} holds other labels in {self.name} than in {other.name}: bind it")

    def cut(self, *names: str) -> EquationSystem:
        """A copy in which these quantities are inputs: a piece of the system by itself, for a test or a question."""
        axes = self.axes()
        piece = EquationSystem(self.name)
        for name in names:
            self[name]
        piece.equations = {
            name: replace(e, stated=None, axes=axes[name]) if name in names else e for name, e in self.equations.items()
        }
        return piece

    def settled(self, values: Mapping[str, int]) -> EquationSystem:
        """A copy in which these inputs are numbers, and what they settle is put in wherever it is used.

        Branches that such numbers rule out are gone; a quantity that comes to a number stays, as that number.
        """
        known: dict[Any, Expression] = {self[name].symbol: sp.Integer(value) for name, value in values.items()}
        piece = EquationSystem(self.name)
        for e in self.order():
            if e.stated is None:
                if e.symbol not in known:
                    piece.add(e)
                continue
            copy = replace(e, stated=_without_repeats(self._picked(e.stated, known).xreplace(known)))
            if copy.expression.is_Number:
                known[e.symbol] = copy.expression
            piece.add(copy)
        return piece

    def _picked(self, expression: Expression, known: Mapping[Any, Expression]) -> Expression:
        """The expression with the formula of the label in place of every choice whose number is known."""
        while settled := [x for x in expression.atoms(chosen) if x.args[0] in known]:
            formulas = {x: x.options[self.labels(x.args[0])[int(known[x.args[0]])]] for x in settled}
            expression = expression.xreplace(formulas)
        return expression

    def order(self, wanted: Iterable[str] | None = None) -> list[Equation]:
        """The equations that `wanted` (default all) needs, definitions before uses.

        Raises EquationError for a symbol that is neither input nor defined, and for a cycle, by name.
        """
        done: set[str] = set()
        found: list[Equation] = []
        path: list[str] = []

        def visit(name: str, asked_by: str) -> None:
            if name in done:
                return
            if name not in self.equations:
                raise EquationError(f"{name}, used by {asked_by}, is neither an input nor defined in {self.name}")
            if name in path:
                raise EquationError("cycle: " + " -> ".join([*path[path.index(name) :], name]))
            path.append(name)
            equation = self.equations[name]
            for used in equation.uses:
                visit(used, name)
            path.pop()
            done.add(name)
            found.append(equation)

        for name in wanted if wanted is not None else list(self.equations):
            visit(name, "the request")
        return found

    def inputs(self, wanted: Iterable[str] | None = None) -> list[Equation]:
        """The inputs that `wanted` (default all) needs."""
        return [e for e in self.order(wanted) if e.is_input]

    def labels(self, symbol: sp.Symbol) -> tuple[str, ...]:
        """The alternatives of a choice input."""
        labels = self[symbol.name].labels if symbol.is_Symbol else ()
        if not labels:
            raise EquationError(f"{symbol} is used by choose but was not declared as a choice")
        return labels

    def axes(self, wanted: Iterable[str] | None = None) -> dict[str, frozenset[str]]:
        """The axes of every quantity: those of what it uses, less what it reduces, plus what it stacks."""
        found: dict[str, frozenset[str]] = {}
        for e in self.order(wanted):
            found[e.name] = e.axes if e.is_input else axes_of(e.expression, found)
        return found

    def check(self) -> list[str]:
        """Everything wrong with the system in one list of sentences: units, axes, choices. Empty when it is well formed."""
        problems = []
        axes = self.axes()
        units = {e.name: e.unit for e in self.equations.values()}
        for e in self.equations.values():
            if e.stated is None:
                continue
            problems += [f"{e.name}: {text}" for text in unit_errors(e.stated, e.unit, units)]
            problems += [f"{e.name}: {text}" for text in axis_errors(e.expression, axes)]
            for node in sorted(e.expression.atoms(chosen), key=str):
                allowed = self.labels(node.args[0])
                known = ", ".join(allowed)
                problems += [
                    f"{e.name}: chooses {label!r}, not among {known}" for label in node.options if label not in allowed
                ]
                problems += [
                    f"{e.name}: has no formula for {label!r}" for label in allowed if label not in node.options
                ]
        return problems


def _without_repeats(expression: Expression) -> Expression:
    """The expression with each argument of a smallest or a largest once: what is settled is often the same for many."""
    repeated = {x: x.func(*dict.fromkeys(x.args)) for x in expression.atoms(Extreme) if len(set(x.args)) < len(x.args)}
    return expression.xreplace(repeated)
