"""What comes of comparing one measured quantity with its prediction; every kind of measurement yields these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """A measured quantity of a row of a published table, in the unit that its name ends in, beside the predicted one.

    `low` and `high` bound the 80 % interval. A row that is not specified enough has no prediction, and `skipped` says why.
    """

    kind: str
    id: str
    quantity: str
    measured: float
    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    skipped: str = ""
    source: str = ""
    chip: str = ""
    strategy: str = ""

    @property
    def error(self) -> float | None:
        """Predicted over measured less one; None where nothing is predicted."""
        return None if self.predicted is None else self.predicted / self.measured - 1
