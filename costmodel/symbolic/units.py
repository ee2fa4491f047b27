"""Dimensions of a quantity: exponents of (second, byte, floating-point operation, dollar, joule).

Bytes, operations and money are dimensions of their own here, so that a time is never added to a payload;
counts (ranks, tokens, layers, shares) have none.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Unit(NamedTuple):
    """Exponents of the base units."""

    second: Fraction = Fraction(0)
    byte: Fraction = Fraction(0)
    operation: Fraction = Fraction(0)
    dollar: Fraction = Fraction(0)
    joule: Fraction = Fraction(0)

    def times(self, other: Unit) -> Unit:
        """The unit of a product."""
        return Unit(*(a + b for a, b in zip(self, other, strict=True)))

    def power(self, exponent: Fraction) -> Unit:
        """The unit of a power."""
        return Unit(*(a * exponent for a in self))

    @property
    def label(self) -> str:
        """As printed after a number: `B/s`, `s`, or nothing for a count."""
        above = [_term(name, e) for name, e in zip(_NAMES, self, strict=True) if e > 0]
        below = [_term(name, -e) for name, e in zip(_NAMES, self, strict=True) if e < 0]
        return "*".join(above or ["1"] * bool(below)) + "".join("/" + name for name in below)


_NAMES = ("s", "B", "FLOP", "USD", "J")


def _term(name: str, exponent: Fraction) -> str:
    return name if exponent == 1 else f"{name}^{exponent}"


count = Unit()
seconds = Unit(second=Fraction(1))
bytes_ = Unit(byte=Fraction(1))
flop = Unit(operation=Fraction(1))
dollars = Unit(dollar=Fraction(1))
joules = Unit(joule=Fraction(1))
per_second = Unit(second=Fraction(-1))
bytes_per_second = Unit(second=Fraction(-1), byte=Fraction(1))
flop_per_byte = Unit(byte=Fraction(-1), operation=Fraction(1))
flop_per_second = Unit(second=Fraction(-1), operation=Fraction(1))
watts = Unit(second=Fraction(-1), joule=Fraction(1))
dollars_per_second = Unit(second=Fraction(-1), dollar=Fraction(1))
dollars_per_joule = Unit(dollar=Fraction(1), joule=Fraction(-1))
