"""Many outcomes in little memory: numbers in arrays, and what rows have in common told once."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any, overload

from costmodel.studies.validation.outcome import Outcome

_NAMES = tuple(field.name for field in fields(Outcome))
_NUMBERS = ("measured", "predicted", "low", "high")
_SHARED = tuple(name for name in _NAMES if name not in {"id", *_NUMBERS})
_LONGEST = 15
"""Digits of a number at the end of a name; one with more is kept as text."""


class Gathered(Sequence[Outcome]):
    """The outcomes of one kind in their order. A million and more of whole tables take some fifty bytes each."""

    def __init__(self, outcomes: Iterable[Outcome] = ()) -> None:
        self._numbers = {name: array("d") for name in _NUMBERS}
        self._shared: dict[tuple[object, ...], int] = {}
        self._which = array("l")
        self._beginnings: dict[str, int] = {}
        self._beginning, self._number = array("l"), array("q")
        for one in outcomes:
            self.append(one)

    def append(self, one: Outcome) -> None:
        """Keep one more."""
        for name, column in self._numbers.items():
            value = getattr(one, name)
            column.append(math.nan if value is None else value)
        shared = tuple(getattr(one, name) for name in _SHARED)
        self._which.append(self._shared.setdefault(shared, len(self._shared)))
        beginning, number = _parted(one.id)
        self._beginning.append(self._beginnings.setdefault(beginning, len(self._beginnings)))
        self._number.append(number)

    def __len__(self) -> int:
        return len(self._which)

    def __iter__(self) -> Iterator[Outcome]:
        makers, beginnings = [_maker(shared) for shared in self._shared], list(self._beginnings)
        return (self._at(place, makers, beginnings) for place in range(len(self)))

    @overload
    def __getitem__(self, place: int) -> Outcome: ...
    @overload
    def __getitem__(self, place: slice) -> list[Outcome]: ...
    def __getitem__(self, place: int | slice) -> Outcome | list[Outcome]:
        """The outcome at a place."""
        every = list(self)
        return every[place]

    def _at(self, place: int, makers: Sequence[Callable[..., Outcome]], beginnings: Sequence[str]) -> Outcome:
        number = self._number[place]
        name = beginnings[self._beginning[place]] + (str(number) if number >= 0 else "")
        values = (column[place] for column in self._numbers.values())
        return makers[self._which[place]](name, *(None if math.isnan(value) else value for value in values))


def _parted(name: str) -> tuple[str, int]:
    """A name without the number that it ends in, and that number; -1 where it ends in none that can be told again."""
    beginning = name.rstrip("0123456789")
    digits = name[len(beginning) :]
    if not digits.isascii() or not digits or len(digits) > _LONGEST or (digits[0] == "0" and len(digits) > 1):
        return name, -1
    return beginning, int(digits)


def _maker(shared: tuple[object, ...]) -> Callable[..., Outcome]:
    """Makes outcomes of what some rows have in common, of the name and the numbers of one."""
    known: dict[str, Any] = dict(zip(_SHARED, shared, strict=True))
    kind, quantity = known.pop("kind"), known.pop("quantity")

    def made(
        name: str, measured: float | None, predicted: float | None, low: float | None, high: float | None
    ) -> Outcome:
        return Outcome(kind, name, quantity, measured, predicted, low, high, **known)

    return made
