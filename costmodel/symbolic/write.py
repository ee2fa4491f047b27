"""Arithmetic as Python source: what the `math` and the numpy version of a system have in common."""

from __future__ import annotations

from types import ModuleType
from typing import ClassVar

import sympy as sp
from sympy.logic.boolalg import And, Not, Or

from costmodel.errors import EquationError
from costmodel.symbolic import nodes
from costmodel.symbolic.nodes import Expression

COMPARE, ADD, MULTIPLY, POWER, ATOM = range(5)
Code = tuple[str, int]
"""Source and how tightly it binds."""


class PythonWriter:
    """Writes one expression; subclasses say how the functions of `nodes` are called."""

    functions: ClassVar[dict[type, str]] = {}
    and_or: ClassVar[tuple[str, str]] = (" and ", " or ")

    def write(self, x: Expression) -> str:
        """The expression as source."""
        return self.emit(x)[0]

    def at(self, x: Expression, binding: int) -> str:
        """The expression as source, in brackets unless it binds at least this tightly."""
        code, own = self.emit(x)
        return code if own >= binding else f"({code})"

    def call(self, name: str, *arguments: Expression) -> Code:
        """A function call."""
        return f"{name}({', '.join(map(self.write, arguments))})", ATOM

    def emit(self, x: Expression) -> Code:
        """The expression as source and how tightly it binds."""
        if x.is_Symbol:
            return self.symbol(x), ATOM
        if x is sp.oo:
            return "inf", ATOM
        if x.is_Number:
            return self.number(x)
        if isinstance(x, sp.Add):
            return self.add(x)
        if isinstance(x, sp.Mul):
            return self.multiply(x)
        if isinstance(x, sp.Pow):
            return self.power(x)
        if isinstance(x, sp.core.relational.Relational):
            return f"{self.at(x.lhs, ADD)} {x.rel_op} {self.at(x.rhs, ADD)}", COMPARE
        if isinstance(x, (And, Or)):
            joint = self.and_or[isinstance(x, Or)]
            return joint.join(f"({self.write(a)})" for a in sorted(x.args, key=str)), COMPARE
        if isinstance(x, Not):
            return self.negation(x.args[0]), COMPARE
        if isinstance(x, nodes.RoundedDivision):
            return f"{self.functions[type(x)]}({self.at(x.args[0], MULTIPLY)} / {self.at(x.args[1], POWER)})", ATOM
        return self.node(x)

    def symbol(self, x: Expression) -> str:
        """A quantity by name."""
        return str(x.name)

    def number(self, x: Expression) -> Code:
        """A constant; ratios stay divisions, so that Fractions pass through unharmed."""
        if x.is_Integer:
            return str(int(x)), ATOM if x >= 0 else ADD
        if x.is_Rational:
            return f"{int(x.p)} / {int(x.q)}", MULTIPLY if x >= 0 else ADD
        return repr(float(x)), ATOM if x >= 0 else ADD

    def add(self, x: Expression) -> Code:
        """A sum, the terms with a minus sign last and a factor that all share before it: sympy multiplies it out."""
        factor, rest = x.primitive()
        if factor != 1 and _shared(factor, x):
            return self.multiply(sp.Mul(factor, rest, evaluate=False))
        terms = x.as_ordered_terms()
        plus = [t for t in terms if not t.could_extract_minus_sign()]
        minus = [-t for t in terms if t.could_extract_minus_sign()]
        head = " + ".join(self.at(t, ADD) for t in plus) if plus else "-" + self.at(minus.pop(0), MULTIPLY)
        return "".join([head, *(f" - {self.at(t, MULTIPLY)}" for t in minus)]), ADD

    def multiply(self, x: Expression) -> Code:
        """A product over a product, one division."""
        coefficient, factors = x.as_coeff_mul()
        if coefficient.is_negative:
            return "-" + self.at(-x, MULTIPLY), ADD
        above = [f for f in factors if not _is_reciprocal(f)]
        below = [1 / f for f in factors if _is_reciprocal(f)]
        if coefficient.is_Rational and coefficient != 1:
            above = [sp.Integer(coefficient.p), *above] if coefficient.p != 1 or not above else above
            below = [sp.Integer(coefficient.q), *below] if coefficient.q != 1 else below
        elif coefficient != 1:
            above = [coefficient, *above]
        # The first factor is computed first in any case: a product or quotient there needs no brackets.
        top = " * ".join(self.at(f, POWER if i else MULTIPLY) for i, f in enumerate(above)) or "1"
        if not below:
            return top, MULTIPLY
        bottom = (
            self.at(below[0], POWER) if len(below) == 1 else "(" + " * ".join(self.at(f, POWER) for f in below) + ")"
        )
        return f"{top} / {bottom}", MULTIPLY

    def power(self, x: Expression) -> Code:
        """A power; roots and squares by their own functions."""
        if x.exp == -1:
            return f"1 / {self.at(x.base, POWER)}", MULTIPLY
        if x.exp.is_Rational and x.exp.is_negative:
            return f"1 / {self.at(1 / x, POWER)}", MULTIPLY
        if x.exp == sp.Rational(1, 2):
            return self.call("sqrt", x.base)
        if x.exp == sp.Rational(1, 3):
            return self.call("cbrt", x.base)
        if x.exp in (2, 3, 4) and x.base.is_Symbol:
            return " * ".join([self.write(x.base)] * int(x.exp)), MULTIPLY
        return f"{self.at(x.base, ATOM)} ** {self.at(x.exp, ATOM)}", POWER

    def negation(self, x: Expression) -> str:
        """A condition that does not hold."""
        return f"not ({self.write(x)})"

    def node(self, x: Expression) -> Code:
        """A function of `nodes` that both versions call by a name of their own."""
        if type(x) in self.functions:
            return self.call(self.functions[type(x)], *x.args)
        if isinstance(x, sp.log):
            return self.call("log", *x.args)
        raise EquationError(f"no Python form for {x.func.__name__}")


def _shared(factor: Expression, x: Expression) -> bool:
    """Whether a sum reads better with its factor taken out; a lone 1 / 2 would turn exact Fractions into floats."""
    coefficients = [term.as_coeff_Mul()[0] for term in x.args]
    if not all(c.is_Rational for c in coefficients):
        return False
    return any(term.is_Rational and term.q != 1 for term in x.args) or all(c.q == factor.q for c in coefficients)


def _is_reciprocal(x: Expression) -> bool:
    return bool(x.is_Pow and x.exp.is_Rational and x.exp.is_negative)


def load(source: str, name: str) -> ModuleType:
    """The module that a source says; `name` shows in tracebacks."""
    module = ModuleType(name)
    exec(compile(source, f"<equations of {name}>", "exec"), module.__dict__)  # noqa: S102  our own source
    return module
