"""A quantity of a point as an expression of a few others, and what cannot be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from costmodel.errors import InputError
from costmodel.studies.explanations import Regime

if TYPE_CHECKING:
    from costmodel.symbolic import EquationSystem
    from costmodel.symbolic.point import Point

UTILISATIONS = ("mfu", "mfu_causal", "hfu")
"""Shares of the peak: none is above 1 where numbers go together."""


def beyond_the_peak(point: Point, name: str) -> tuple[str, ...]:
    """A sentence where a share of the peak comes out above 1, as with a step time that was set too short."""
    if name not in UTILISATIONS or float(point.values[name]) <= 1:
        return ()
    return (f"{name} above 1 cannot be: no chip computes faster than its peak, so a number that was set is off",)


def named(system: EquationSystem, text: str) -> str:
    """The quantity of that name; raises InputError with the nearest one."""
    name = text.strip().replace("-", "_")
    if name not in system.equations:
        raise InputError.unknown("quantity", text, system.equations)
    return name


def regime_of(point: Point, name: str, only: Sequence[str], rows: Mapping[str, str] | None) -> Regime:
    """A quantity of a point in terms of a few others, and how far that reaches; raises InputError for names that are none."""
    from costmodel.symbolic.latex import latex, symbol
    from costmodel.symbolic.regime import reach, regime
    from costmodel.symbolic.text import TextWriter

    kept = tuple(dict.fromkeys(named(point.system, text) for text in only))
    formula = regime(point, name, kept, rows)
    at = point.bind(name, rows or {})
    value = float(point.row(name, point.values[name], at))
    e = point.system[name]
    found = Regime(name, e.unit.label, value, kept, TextWriter().write(formula), f"{symbol(name)} = {latex(formula)}")
    if len(kept) > 1:
        return found
    low, high = reach(point, name, kept[0], rows)
    return replace(found, now=float(point.row(kept[0], point.values[kept[0]], at)), low=low, high=high)
