"""How far predictions are from what was measured: median and 90th percentile of the error, and its bias."""

from __future__ import annotations

import heapq
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from statistics import median

from costmodel.report import Scalar
from costmodel.studies.validation.outcome import Outcome

ALL = "all"
GROUPINGS: Mapping[str, Callable[[Outcome], str]] = {
    "source": lambda outcome: outcome.source,
    "chip": lambda outcome: outcome.chip,
    "strategy": lambda outcome: outcome.strategy,
    "class": lambda outcome: outcome.work_class,
}
"""What rows can be grouped by, beside the quantity."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of one group of rows of a kind, as shares of what was measured; None where no row of it is predicted."""

    kind: str
    group: str
    n: int
    median_abs_error: float | None
    p90_abs_error: float | None
    bias: float | None

    def record(self) -> dict[str, Scalar]:
        """The summary as one flat row."""
        return {
            "kind": self.kind,
            "group": self.group,
            "n": self.n,
            "median_abs_error": self.median_abs_error,
            "p90_abs_error": self.p90_abs_error,
            "bias": self.bias,
        }


def summary(kind: str, group: str, outcomes: Iterable[Outcome]) -> Summary:
    """The errors of those outcomes that are predicted."""
    return _summary(kind, group, [outcome.error for outcome in outcomes if outcome.error is not None])


def _summary(kind: str, group: str, errors: Sequence[float]) -> Summary:
    if not errors:
        return Summary(kind, group, 0, None, None, None)
    sizes = sorted(map(abs, errors))
    return Summary(kind, group, len(errors), median(sizes), quantile(sizes, 0.9), median(errors))


def quantile(ordered: Sequence[float], share: float) -> float:
    """Of numbers in ascending order, the one below which that share of them lies; between two it is interpolated."""
    place = share * (len(ordered) - 1)
    low = min(floor(place), len(ordered) - 1)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def summaries(kind: str, outcomes: Iterable[Outcome], by: str | None) -> list[Summary]:
    """All rows of a kind, then its quantities where there are several, or its groups; the largest first.

    The outcomes are gone through once, and of each no more than its error is kept.
    """
    key = GROUPINGS[by] if by is not None else lambda outcome: outcome.quantity
    groups: dict[str, tuple[list[int], array[float]]] = defaultdict(lambda: ([0], array("d")))
    for outcome in outcomes:
        rows, errors = groups[key(outcome) or "-"]
        rows[0] += 1
        if outcome.error is not None:
            errors.append(outcome.error)
    parts = sorted(groups.items(), key=lambda item: (-item[1][0][0], item[0]))
    every = array("d", (error for _, (_, errors) in parts for error in errors))
    each = [_summary(kind, group, errors) for group, (_, errors) in parts] if by is not None or len(parts) > 1 else []
    return [_summary(kind, ALL, every), *each]


def worst(outcomes: Iterable[Outcome], count: int) -> list[Outcome]:
    """Those furthest from what was measured, the worst first; too low counts as much as too high by the same factor."""
    return heapq.nlargest(count, (outcome for outcome in outcomes if outcome.error is not None), key=_distance)


def _distance(outcome: Outcome) -> float:
    ratio = 1 + (outcome.error or 0)
    return max(ratio, 1 / ratio) if ratio > 0 else float("inf")
