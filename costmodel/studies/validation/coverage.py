"""Whether 80 % intervals hold what they say: the share of measured rows inside them, by class of error."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from costmodel.catalog.catalog import Catalog
from costmodel.report import Scalar, Table, human
from costmodel.studies.intervals import CLASSES, error_class
from costmodel.studies.validation.held_back import held_back
from costmodel.studies.validation.outcome import Outcome

ALL = "all"
NOTE = "inside: share of rows whose measured value lies in the 80 % interval; unseen: rows that no factor was fitted to"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many rows of a class count, how many are inside their intervals, and the same of those that nothing was fitted to."""

    kind: str
    error_class: str
    n: int
    inside: int
    unseen: int
    unseen_inside: int

    @property
    def share(self) -> float | None:
        """Of all rows that count; None where there are none."""
        return self.inside / self.n if self.n else None

    @property
    def unseen_share(self) -> float | None:
        """Of those that nothing was fitted to."""
        return self.unseen_inside / self.unseen if self.unseen else None

    def record(self) -> dict[str, Scalar]:
        """As one flat row."""
        return {
            "kind": self.kind,
            "error_class": self.error_class,
            "n": self.n,
            "inside": self.share,
            "unseen_n": self.unseen,
            "unseen_inside": self.unseen_share,
        }


def with_interval(one: Outcome, catalog: Catalog, *, shipped: bool) -> Outcome:
    """The outcome with the bounds of its class; one that brings its own, as those of kernels do, keeps them.

    `shipped`: it is of the tables that the factors were fitted to, or comes again under the same id. Raises InputError where the catalog has no factors.
    """
    if one.predicted is None:
        return one
    if not one.classes:
        return replace(one, error_class=one.strategy.partition(" ")[0], unseen=not one.left_out)
    found = error_class(one.kind, one.classes, catalog)
    of = found.rate if one.quantity.endswith("_per_s") else found.time if one.quantity.endswith("_s") else found.size
    low, high = of(one.predicted)
    return replace(one, low=low, high=high, error_class=found.name, unseen=not shipped or held_back(one.id))


def coverages(kind: str, outcomes: Iterable[Outcome]) -> list[Coverage]:
    """Of each class in the order in which they are listed, then of all; nothing where no row has an interval.

    The outcomes are gone through once, and only counted.
    """
    classes: dict[str, Counter[str]] = defaultdict(Counter)
    for one in outcomes:
        if one.inside is not None:
            classes[one.error_class].update(
                {"n": 1, "inside": one.inside, "unseen": one.unseen, "unseen_inside": one.unseen and one.inside}
            )
    order = [*CLASSES.get(kind, ()), *sorted(classes)]
    found = [_coverage(kind, name, classes[name]) for name in dict.fromkeys(order) if name in classes]
    every: Counter[str] = sum(classes.values(), Counter())
    return [*found, _coverage(kind, ALL, every)] if every else []


def _coverage(kind: str, name: str, counts: Counter[str]) -> Coverage:
    return Coverage(kind, name, counts["n"], counts["inside"], counts["unseen"], counts["unseen_inside"])


def table(kind: str, found: Iterable[Coverage]) -> list[Table]:
    """For people."""
    words = CLASSES.get(kind, {})
    rows = [
        (
            words.get(one.error_class, one.error_class),
            one.n,
            human.percent(one.share),
            one.unseen,
            human.percent(one.unseen_share),
        )
        for one in found
    ]
    headers = ("class", "n", "inside", "unseen", "inside")
    return [Table(f"80 % intervals: {kind}", headers, rows, (NOTE,))] if rows else []
