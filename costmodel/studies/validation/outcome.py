"""What comes of comparing one measured quantity with its prediction; every kind of measurement yields these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """A measured quantity of a row of a published table, in the unit that its name ends in, beside the predicted one.

    `low` and `high` bound the 80 % interval. A row that is not specified enough has no prediction, and `skipped` says why.
    `left_out` is the rule by which a row does not count among the headline rows, and `remark` what is likeliest to make the
    prediction of this row a bad one: what was assumed, or what the equations leave out. Rows of one `sweep` are ranked among each
    other by their quantity over `work`, the tokens of a step and chip. `classes` are those of its error, the narrowest first (see
    costmodel/studies/intervals.py), `error_class` the one whose factors bound it, `unseen` whether nothing was fitted to it.
    """

    kind: str
    id: str
    quantity: str
    measured: float | None
    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    skipped: str = ""
    source: str = ""
    chip: str = ""
    strategy: str = ""
    left_out: str = ""
    remark: str = ""
    work_class: str = ""
    sweep: str = ""
    work: float = 1.0
    classes: tuple[str, ...] = ()
    error_class: str = ""
    unseen: bool = False

    @property
    def error(self) -> float | None:
        """Predicted over measured less one; None where nothing is predicted."""
        return None if self.predicted is None or self.measured is None else self.predicted / self.measured - 1

    @property
    def inside(self) -> bool | None:
        """Whether what was measured lies in the interval; None where there is none."""
        if self.measured is None or self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high

    @property
    def headline(self) -> bool:
        """Whether the row counts: it is predicted, and no rule leaves it out."""
        return self.error is not None and not self.left_out
