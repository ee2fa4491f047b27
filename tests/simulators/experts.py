"""Which ranks and nodes a token's experts are on, by listing every choice; no closed form for the distinct count."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations


def choices(experts: int, chosen: int, groups: int = 1, allowed_groups: int = 1) -> Iterator[tuple[int, ...]]:
    """All equally likely sets of chosen experts; with a limit, each set of allowed groups and each choice within it."""
    size = experts // groups
    for picked in combinations(range(groups), allowed_groups):
        yield from combinations(
            [expert for group in picked for expert in range(group * size, (group + 1) * size)], chosen
        )


def distinct_places(
    picks: Iterator[tuple[int, ...]], experts_per_place: int, *, besides: int | None = None
) -> Fraction:
    """Mean number of places (ranks, nodes) that hold a chosen expert; `besides` leaves out the token's own place."""
    total = count = 0
    for picked in picks:
        places = {expert // experts_per_place for expert in picked}
        total += len(places - {besides})
        count += 1
    return Fraction(total, count)


def copies(picks: Iterator[tuple[int, ...]], experts_per_place: int, *, besides: int | None = None) -> Fraction:
    """Mean number of copies sent when every chosen expert gets its own."""
    total = count = 0
    for picked in picks:
        total += sum(expert // experts_per_place != besides for expert in picked)
        count += 1
    return Fraction(total, count)
