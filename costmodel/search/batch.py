"""How many sequences a step holds, when a person gave tokens, nothing, or a count that a layout must divide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt

from costmodel.catalog.entries import Number
from costmodel.catalog.units import parse_count
from costmodel.errors import InputError
from costmodel.search.layout import Layout

MOST_TRIED = 6
_SUFFIXES = "kKMGTBi"


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as asked for. `sequences` is exact; otherwise `tokens` may be rounded to sequences that divide well."""

    sequences: int = 0
    tokens: int = 0

    def rounded_for(self, layout: Layout, sequence_length: int) -> int:
        """The nearest number of sequences that the layout divides; exact counts are left for the rules to judge."""
        if self.sequences:
            return self.sequences
        unit = layout.dp * layout.micro_batch_size * (layout.pp if layout.schedule != "1f1b" else 1)
        return max(1, round(self.tokens / sequence_length / unit)) * unit

    def candidates(self, chips: int, sequence_length: int, slack: float) -> list[int]:
        """Numbers of sequences to search with, those that share most with the chips first; one when the count is exact."""
        if self.sequences:
            return [self.sequences]
        wanted = self.tokens / sequence_length
        low, high = max(1, round(wanted * (1 - slack))), max(1, round(wanted * (1 + slack)))
        near: list[int] = []
        for shared in _divisors(chips):
            middle = round(wanted / shared)
            multiples = (shared * (middle + step) for step in range(-2 * MOST_TRIED, 2 * MOST_TRIED + 1))
            near += sorted((n for n in multiples if low <= n <= high and n not in near), key=lambda n: abs(n - wanted))
            if len(near) >= MOST_TRIED:
                break
        return near[:MOST_TRIED]

    def note(self, sequences: int, sequence_length: int) -> str:
        """A sentence on how the batch was rounded, or nothing when it was not."""
        if self.sequences or sequences * sequence_length == self.tokens:
            return ""
        return (
            f"batch of {self.tokens:,} tokens rounded to {counted(sequences)} of {sequence_length:,} "
            f"= {sequences * sequence_length:,} tokens"
        )


def _divisors(number: int) -> list[int]:
    """What divides a number, largest first."""
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)}, reverse=True)


def counted(sequences: int) -> str:
    """So many sequences, in words."""
    return f"{sequences:,} sequence{'s' if sequences != 1 else ''}"


def parse_batch(text: str | None, sequence_length: int, parameters: int, defaults: Mapping[str, Number]) -> Batch:
    """A batch from the command line: a plain number counts sequences, one with a suffix (`16M`) tokens.

    Without one, the documented default for a model of that size. Raises InputError for anything else.
    """
    if text is None:
        large = parameters >= defaults["large_model_parameters"].value
        return Batch(tokens=int(defaults["batch_tokens_large" if large else "batch_tokens"].value))
    count = parse_count(text, "batch")
    if text.strip()[-1] in _SUFFIXES:
        if count < sequence_length:
            raise InputError(f"batch {text} is {count} tokens, less than one sequence of {sequence_length}")
        return Batch(tokens=count)
    return Batch(sequences=count)
