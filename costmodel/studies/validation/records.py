"""Outcomes as flat rows, made as they are asked for: those of whole tables would fill the memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from costmodel.report import Record
from costmodel.studies.validation.outcome import Outcome


class Rows(Sequence[Record]):
    """A record a row and quantity of all kinds."""

    def __init__(self, outcomes: Mapping[str, Sequence[Outcome]]) -> None:
        self.outcomes = outcomes

    def __len__(self) -> int:
        return sum(map(len, self.outcomes.values()))

    def __iter__(self) -> Iterator[Record]:
        return (record(one) for rows in self.outcomes.values() for one in rows)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        """The record at a place."""
        every = list(self)
        return every[place]


def record(one: Outcome) -> Record:
    """One outcome."""
    return {
        "kind": one.kind,
        "id": one.id,
        "quantity": one.quantity,
        "measured": one.measured,
        "predicted": one.predicted,
        "low": one.low,
        "high": one.high,
        "error_class": one.error_class or None,
        "unseen": one.unseen,
        "error": one.error,
        "skipped": one.skipped or None,
        "headline": one.headline,
        "left_out": one.left_out or None,
        "source": one.source,
        "chip": one.chip,
        "strategy": one.strategy,
        "remark": one.remark or None,
    }
