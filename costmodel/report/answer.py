"""What a study hands to the reports: an `Answer` that can be told as rows, as JSON and as tables.

A study returns frozen records of SI numbers. Units are in the names of the fields (`step_time_s`, `capacity_bytes`);
human units appear only in `tables`, through costmodel.report.human.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

Scalar = str | int | float | bool | None
Record = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people: cells that are text are printed as they are, numbers with three digits.

    `notes` are sentences under the table; a note that holds line breaks is printed line by line as it is.
    A table without rows and headers is its title and notes alone.
    """

    title: str
    headers: Sequence[str] = ()
    rows: Sequence[Sequence[Scalar]] = ()
    notes: Sequence[str] = ()


class Answer(Protocol):
    """What every study returns to whoever reports it."""

    @property
    def exit_code(self) -> int:
        """0 when the question is answered, 1 when the answer is that it does not fit or that a check failed."""

    def records(self) -> Sequence[Record]:
        """One flat row an answer, units in the names."""

    def long_records(self) -> Sequence[Record]:
        """One flat row an item of each answer (a kernel, a collective, a part of memory)."""

    def results(self) -> Sequence[Mapping[str, object]]:
        """The array `results` of the JSON object, nested where that reads better than flat rows."""

    def extras(self) -> Mapping[str, object]:
        """Further keys of the JSON object, beside `results`."""

    def tables(self) -> Sequence[Table]:
        """What a person reads, most important first."""


def plain(value: object) -> Scalar:
    """`value` as a plain Python scalar: numpy scalars unwrapped, numbers that are not finite become None."""
    item = getattr(value, "item", None)
    if item is not None:
        value = item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(f"a report cannot hold {type(value).__name__} {value!r}")
