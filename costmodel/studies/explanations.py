"""What `explain` answers: a tree of definitions, a quantity as an expression of a few others, or what there is to explain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from costmodel.report import Record, Table

if TYPE_CHECKING:
    from costmodel.symbolic.explain import Quantity

Form = Literal["text", "latex", "markdown"]

WIDTH = 80
"""Columns of a tree as text."""


@dataclass(frozen=True, slots=True)
class Regime:
    """A quantity as an expression of a few others; of one alone, exact while that one, `now`, is from `low` to `high`."""

    quantity: str
    unit: str
    value: float
    kept: tuple[str, ...]
    expression: str
    latex: str
    now: float | None = None
    low: float | None = None
    high: float | None = None

    def record(self) -> Record:
        """As one flat row."""
        return {
            "quantity": self.quantity,
            "of": " ".join(self.kept),
            "expression": self.expression,
            "value": self.value,
            "unit": self.unit,
            "now": self.now,
            "exact_from": self.low,
            "exact_to": self.high,
        }

    def said(self) -> list[str]:
        """In sentences, the expression first."""
        from costmodel.symbolic.text import plain

        value = plain(self.value, self.unit)
        said = [f"{self.quantity} = {self.expression}" + (f"   [{self.unit}]" if self.unit else "")]
        if self.now is None or self.low is None or self.high is None:
            return [*said, f"{value} now; exact while every formula takes the branch that it takes now."]
        below = f"from {plain(self.low)}" if self.low else ""
        above = f"up to {plain(self.high)}" if math.isfinite(self.high) else ""
        span = " ".join(part for part in (below, above) if part) or "a million times up or down"
        where = f"{self.kept[0]} {span}, now {plain(self.now)}"
        return [*said, f"{value} now; exact while every formula takes the branch that it takes now: {where}."]


@dataclass(frozen=True, slots=True)
class ExplainAnswer:
    """The tree of definitions under a quantity, or the quantity as an expression of a few others."""

    title: str
    tree: Quantity
    regime: Regime | None = None
    notes: tuple[str, ...] = ()
    form: Form = "text"
    exit_code: int = 0

    def records(self) -> Sequence[Record]:
        """One row a quantity of the tree, in reading order; one row in all for a regime."""
        from costmodel.symbolic.render import as_records

        return [self.regime.record()] if self.regime else as_records(self.tree)

    def long_records(self) -> Sequence[Record]:
        """The same rows."""
        return self.records()

    def results(self) -> Sequence[Mapping[str, object]]:
        """The tree, nested, or the regime."""
        from costmodel.symbolic.render import as_nested

        return [{**self.regime.record(), "latex": self.regime.latex}] if self.regime else [as_nested(self.tree)]

    def extras(self) -> Mapping[str, object]:
        """What was assumed."""
        return {"notes": list(self.notes)}

    def tables(self) -> Sequence[Table]:
        """The tree as text, LaTeX or Markdown; the regime in sentences."""
        return [Table(self.title, notes=[*self.told(), *self.notes])]

    def told(self) -> Sequence[str]:
        """The tree or the regime, in the form asked for."""
        from costmodel.symbolic.render import as_latex, as_markdown, as_text

        if self.regime:
            formula, *rest = self.regime.said()
            return [formula if self.form == "text" else self.regime.latex, *rest]
        if self.form == "text":
            return [as_text(self.tree, WIDTH)]
        return [as_latex(self.tree) if self.form == "latex" else as_markdown(self.tree)]


@dataclass(frozen=True, slots=True)
class Quantities:
    """What can be explained: subject, name, unit and meaning of every answer."""

    rows: tuple[tuple[str, str, str, str], ...]
    subjects: Mapping[str, str]
    exit_code: int = 0

    def records(self) -> Sequence[Record]:
        """One row a quantity."""
        return [dict(zip(("subject", "quantity", "unit", "meaning"), row, strict=True)) for row in self.rows]

    def long_records(self) -> Sequence[Record]:
        """The same rows."""
        return self.records()

    def results(self) -> Sequence[Mapping[str, object]]:
        """The same rows."""
        return self.records()

    def extras(self) -> Mapping[str, object]:
        """Nothing beside."""
        return {}

    def tables(self) -> Sequence[Table]:
        """One table a subject."""
        return [
            Table(
                f"{subject}: {what}",
                ["quantity", "unit", "meaning"],
                [row[1:] for row in self.rows if row[0] == subject],
            )
            for subject, what in self.subjects.items()
        ]
