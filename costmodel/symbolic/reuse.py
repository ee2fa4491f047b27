"""Arithmetic over large arrays as numpy source: small factors first, and results written over arrays that are not needed again.

A sum or product of several terms is computed pair by pair, the pair that runs over the fewest elements first, so that what varies
along few axes meets the large arrays once. A pair whose larger part nobody uses again is written over it: memory that is in the
caches is used again, and none is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import sympy as sp

from costmodel.symbolic import nodes
from costmodel.symbolic.checks import axes_of
from costmodel.symbolic.nodes import Expression
from costmodel.symbolic.system import Equation
from costmodel.symbolic.write import ADD, ATOM, MULTIPLY, Code, is_reciprocal

ROWS = "rows"
LIKELY_ROWS, LIKELY_LABELS = 500, 8
OPERATORS = {"add": ("+", ADD, ADD), "subtract": ("-", ADD, MULTIPLY), "multiply": ("*", MULTIPLY, ATOM)}
OPERATORS |= {"divide": ("/", MULTIPLY, ATOM)}


@dataclass(frozen=True)
class Piece:
    """A part of an expression: its source, how tightly that binds, what it runs over, and whether it may be written over."""

    code: str
    binding: int
    axes: frozenset[str]
    fresh: bool = False

    def at(self, binding: int) -> str:
        """The source, in brackets unless it binds at least this tightly."""
        return self.code if self.binding >= binding else f"({self.code})"


def joined(function: str, first: Piece, second: Piece) -> Piece:
    """A function of two parts, written over one of them where that holds all elements and is not needed again."""
    axes = first.axes | second.axes
    for name, piece in (("onto_first", first), ("onto_second", second)):
        if piece.fresh and piece.axes == axes:
            return Piece(f"{name}({function}, {first.code}, {second.code})", ATOM, axes, True)
    if function not in OPERATORS:
        return Piece(f"{function}({first.code}, {second.code})", ATOM, axes, True)
    sign, binding, right = OPERATORS[function]
    return Piece(f"{first.at(binding)} {sign} {second.at(right)}", binding, axes, True)


class Reuser:
    """Writes sums, products and extremes over `axes` of named sizes; `write` gives the source of all else.

    `over` names the quantities that may be written over; `sliced` is an axis of which there is one row at a time.
    """

    def __init__(
        self,
        axes: Mapping[str, frozenset[str]],
        sizes: Mapping[str, int],
        sliced: str,
        write: Callable[[Expression], Code],
    ) -> None:
        self.axes, self.sizes, self.sliced, self.write = axes, sizes, sliced, write
        self.over: Collection[str] = ()

    def piece(self, x: Expression) -> Piece:
        """An expression as a piece."""
        if isinstance(x, sp.Add):
            return self._sum(x)
        if isinstance(x, sp.Mul):
            return self._product(x)
        if isinstance(x, nodes.Extreme):
            function = "maximum" if isinstance(x, nodes.largest) else "minimum"
            return self._folded([self.piece(argument) for argument in x.args], lambda a, b: joined(function, a, b))
        return Piece(*self.write(x), self.runs_over(x), x.is_Symbol and x.name in self.over)

    def runs_over(self, x: Expression) -> frozenset[str]:
        """The axes of an expression, all columns as one and without the one that is sliced."""
        along = axes_of(x, self.axes) - {self.sliced}
        product = along & self.sizes.keys()
        return product | {ROWS} if along - product else product

    def _size(self, axes: frozenset[str]) -> int:
        return prod(LIKELY_ROWS if axis == ROWS else self.sizes[axis] or LIKELY_LABELS for axis in axes)

    def _folded(self, pieces: Sequence[Piece], join: Callable[[Piece, Piece], Piece]) -> Piece:
        """All pieces joined, at each time the two that together run over least."""
        left = list(pieces)
        while len(left) > 1:
            pairs = [(i, j) for j in range(len(left)) for i in range(j)]
            i, j = min(pairs, key=lambda pair: self._size(left[pair[0]].axes | left[pair[1]].axes))
            second = left.pop(j)
            left[i] = join(left[i], second)
        return left[0]

    def _sum(self, x: Expression) -> Piece:
        """Terms with a minus sign are summed for themselves and taken away at the end, unless one can be taken away earlier."""
        terms = x.as_ordered_terms()
        minus = [t.could_extract_minus_sign() for t in terms]
        pieces = [(self.piece(-t if less else t), less) for t, less in zip(terms, minus, strict=True)]
        while len(pieces) > 1:
            pairs = [(i, j) for j in range(len(pieces)) for i in range(j)]
            i, j = min(pairs, key=lambda pair: self._size(pieces[pair[0]][0].axes | pieces[pair[1]][0].axes))
            second, second_less = pieces.pop(j)
            first, first_less = pieces[i]
            if first_less == second_less:
                pieces[i] = joined("add", first, second), first_less
            else:
                pieces[i] = joined("subtract", *((second, first) if first_less else (first, second))), False
        ((piece, less),) = pieces
        return Piece(f"-{piece.at(ATOM)}", ADD, piece.axes, True) if less else piece

    def _product(self, x: Expression) -> Piece:
        """A product over a product, one division."""
        coefficient, factors = x.as_coeff_mul()
        if coefficient.is_negative:
            piece = self.piece(-x)
            return Piece(f"-{piece.at(ATOM)}", ADD, piece.axes, True)
        above = [f for f in factors if not is_reciprocal(f)]
        below = [1 / f for f in factors if is_reciprocal(f)]
        if coefficient.is_Rational:
            above += [sp.Integer(coefficient.p)] if coefficient.p != 1 or not above else []
            below += [sp.Integer(coefficient.q)] if coefficient.q != 1 else []
        else:
            above.append(coefficient)
        top = self._folded([self.piece(f) for f in above], lambda a, b: joined("multiply", a, b))
        if not below:
            return top
        return joined(
            "divide", top, self._folded([self.piece(f) for f in below], lambda a, b: joined("multiply", a, b))
        )


ARITHMETIC = (sp.Add, sp.Mul, nodes.Extreme)


def usable(own: Sequence[Equation], user: Equation, dead: Collection[str]) -> set[str]:
    """Which of the quantities that nobody needs after `user` may be written over: results of arithmetic that have no other name.

    A choice or a row may hand on an array as it is, which then has two names.
    """
    found = {e.name for e in own if e.name in dead and isinstance(e.expression, ARITHMETIC)}
    for e in own:
        found -= {x.name for x in _handed_on(e.expression)}
    expressions = [x for x in sp.preorder_traversal(user.expression) if x.is_Symbol]
    return {name for name in found if sum(x.name == name for x in expressions) == 1}


def _handed_on(x: Expression) -> list[Expression]:
    """The symbols that stand where no arithmetic makes a new array of them."""
    if x.is_Symbol:
        return [x]
    found = [
        part
        for part in sp.preorder_traversal(x)
        if isinstance(part, nodes.Node) and not isinstance(part, nodes.Extreme)
    ]
    return [argument for part in found for argument in part.args if argument.is_Symbol]
