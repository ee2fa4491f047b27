"""Write the factors of 80 % intervals from published rows, one pair a class of error: `python scripts/fit_intervals.py [--write]`.

Run it after any fit that moves predictions. A factor is the tenth or ninetieth percentile of measured over predicted in the rows of
the fitting part (three in four, by the hash of their ids), in which no source counts as more than so many rows. Steps count with the
error that they have when their own source is left out of the fit of shares (scripts/fit_training.py); on chips that training was not
measured on, with that under the mean share of peak of the other classes of chips.

Printed for each class is the coverage: on the rows held back, on each quarter by the factors of the other three, and on each source by
the factors of all others. With --write factors go into hardware/assumptions/errors-*.yaml, coverage into
tests/published/accepted_coverage.csv.
"""

from __future__ import annotations

import csv
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import fit_training

from costmodel.catalog.catalog import Catalog, shipped
from costmodel.errors import InputError
from costmodel.studies.collective import collective
from costmodel.studies.intervals import CLASSES, trained_on
from costmodel.studies.validation import collectives, kernels, memory, training
from costmodel.studies.validation.collective_rows import Row, rows_of
from costmodel.studies.validation.coverage import with_interval
from costmodel.studies.validation.held_back import PARTS, held_back, part
from costmodel.studies.validation.outcome import Outcome

ROOT = Path(__file__).resolve().parent.parent
ACCEPTED = ROOT / "tests/published/accepted_coverage.csv"
SHARES = (0.1, 0.9)
FULL_WEIGHT = 50
"""A source counts as no more than so many rows of a class."""
FEWEST = 20
"""Rows of the fitting part that a class needs; a wider one stands in for it below that."""
DIGITS = 4
HELD, TOLERANCE = 0.8, 0.04
FEWEST_UNSEEN = 30
"""Rows of sources that others judge, below which that says nothing."""
WIDER = [0.7 + n / 50 for n in range(51)]
"""How far the ends may lie from the median, in logarithms and of what the percentiles say."""
MEANING = {
    "training": "how far step times of published runs lie from the predicted ones, by class of run",
    "memory": "how far readings of memory lie from the predicted ones, by quantity",
    "collectives": "how far measured collectives lie from the predicted ones, by place and size",
}


@dataclass(frozen=True)
class Sample:
    """A row: measured over predicted as predictions are, and as they would be had nobody seen its source."""

    id: str
    source: str
    kind: str
    classes: tuple[str, ...]
    ratio: float
    unseen: float


@dataclass(frozen=True)
class Fitted:
    """A class: its factors, and the rows inside of those that were looked at in each of the three ways."""

    kind: str
    name: str
    n: int
    sources: int
    low: float
    high: float
    held_back: tuple[int, int]
    in_turn: tuple[int, int]
    unseen: tuple[int, int]

    def record(self) -> dict[str, str | int]:
        """A row of the table of accepted coverage; a share is empty where there is nothing to judge by."""
        shares = {"held_back": self.held_back, "in_turn": self.in_turn, "unseen_sources": self.unseen}
        told = {
            key: value
            for name, (inside, n) in shares.items()
            for key, value in ((f"{name}_n", n), (name, f"{inside / n:.3f}" if n else ""))
        }
        return {"kind": self.kind, "class": self.name, **told}


def main(arguments: Sequence[str]) -> int:
    """Print factors and coverage, write them if asked to, and give 0; 2 for an argument that is none."""
    if set(arguments) - {"--write"}:
        print(__doc__, file=sys.stderr)
        return 2
    catalog = Catalog.open()
    samples = [*of_training(catalog), *of_memory(catalog), *of_collectives(catalog)]
    found = [one for kind in MEANING for one in fitted(kind, [s for s in samples if s.kind == kind])]
    every = [*found, *of_kernels(catalog)]
    for one in every:
        of = (
            "" if one.kind == "kernels" else f"{one.low:.3g} to {one.high:.3g}, {one.n} rows of {one.sources} sources; "
        )
        counts = {"held back": one.held_back, "in turn": one.in_turn, "unseen sources": one.unseen}
        told = ", ".join(f"{way} {inside / n:.0%} of {n}" for way, (inside, n) in counts.items() if n)
        print(f"{one.kind} {one.name}: {of}{told}")
    if "--write" in arguments:
        for kind in MEANING:
            path = ROOT / "hardware/assumptions" / f"errors-{kind}.yaml"
            path.write_text(text(kind, [one for one in found if one.kind == kind]), "utf-8")
        with ACCEPTED.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(every[0].record()), lineterminator="\n")
            writer.writeheader()
            writer.writerows(one.record() for one in every)
    return 0


def of_training(catalog: Catalog) -> Iterator[Sample]:
    """Steps of the headline rows, and the same again as if training had not been measured on their chips."""
    cases = fit_training.cases(catalog)
    chips = {kind: catalog.chip(names[0]) for kind, names in fit_training.CLASSES.items()}
    present = {kind: chip.attainable["training_matmul"].value for kind, chip in chips.items()}
    left_out = {case.id: 1 + error for case, error in fit_training.unseen(cases, catalog)}
    by_id = {case.id: case for case in cases}
    for one in training.outcomes(catalog):
        if not one.headline:
            continue
        ratio = over(one)
        yield Sample(one.id, one.source, "training", one.classes, ratio, 1 / left_out.get(one.id, 1 / ratio))
        case = by_id.get(one.id)
        if case is not None and trained_on(catalog.chip(one.chip)):
            others = [math.log(share) for kind, share in present.items() if kind != case.kind]
            share = math.exp(sum(others) / len(others))
            guessed = 1 / (1 + case.error(share, present[case.kind]))
            names = ("unmeasured_experts", "unmeasured") if one.classes[0] == "experts" else ("unmeasured",)
            yield Sample(one.id, case.kind, "training", names, guessed, guessed)


def of_memory(catalog: Catalog) -> Iterator[Sample]:
    """Readings of memory."""
    for one in memory.outcomes(catalog):
        if one.headline:
            yield Sample(one.id, one.source, "memory", one.classes, over(one), over(one))


def of_collectives(catalog: Catalog) -> Iterator[Sample]:
    """Collectives that no constant is fitted to, as the library runs them and as the links alone would."""
    for name in collectives.TABLES:
        for row in rows_of(shipped("tables") / "published" / "collectives" / f"{name}.csv", catalog):
            if row.part == collectives.FITTED:
                continue
            one = collectives.outcome(row, catalog)
            if one.headline:
                yield Sample(one.id, one.source, "collectives", one.classes, over(one), over(one))
            alone = by_links(row, catalog)
            if alone is not None:
                yield alone


def by_links(row: Row, catalog: Catalog) -> Sample | None:
    """A row beside what the links alone would allow; None where that is not known."""
    try:
        answer = collective(
            row.operation, row.payload, row.machine, axes=row.axes, dtype=row.dtype, library="none", catalog=catalog
        )
    except InputError:
        return None
    best = answer.timings[0]
    if row.time_s:
        ratio = row.time_s / best.time_s
    elif row.busbw_bytes_per_s and best.busbw_bytes_per_s:
        ratio = best.busbw_bytes_per_s / row.busbw_bytes_per_s
    else:
        return None
    names = best.interval.names if best.interval else ()
    return Sample(row.id, row.source, "collectives", names, ratio, ratio)


def of_kernels(catalog: Catalog) -> Iterator[Fitted]:
    """What the intervals of kernels hold, whose factors scripts/fit_kernels.py writes."""
    rows = [with_interval(one, catalog, shipped=True) for one in kernels.outcomes(catalog) if one.headline]
    for name in sorted({one.error_class for one in rows}):
        inside = [bool(one.inside) for one in rows if one.error_class == name]
        none = (0, 0)
        yield Fitted("kernels", name, len(inside), 0, math.nan, math.nan, (sum(inside), len(inside)), none, none)


def over(one: Outcome) -> float:
    """Measured over predicted time or size; of a rate predicted over measured, which is that of its time."""
    ratio = 1 + (one.error or 0.0)
    return ratio if one.quantity.endswith("_per_s") else 1 / ratio


def fitted(kind: str, samples: Sequence[Sample]) -> Iterator[Fitted]:
    """The classes of a kind that have enough rows, with their factors and what these hold."""
    for name in CLASSES[kind]:
        rows = [one for one in samples if name in one.classes]
        fitting = [one for one in rows if not held_back(one.id)]
        if len(fitting) < FEWEST:
            continue
        wider = widening(fitting)
        low, high = (float(f"{end:.{DIGITS}g}") for end in factors(fitting, wider))
        yield Fitted(
            kind,
            name,
            len(fitting),
            len({one.source for one in fitting}),
            low,
            high,
            inside((low, high), (one.ratio for one in rows if held_back(one.id))),
            in_turn(rows, wider),
            by_other_sources(rows, wider),
        )


def widening(rows: Sequence[Sample]) -> float:
    """With which rows in turn and rows of unseen sources are on the mean held as they should be, the former within a few percent."""

    def key(wider: float) -> tuple[bool, float, float]:
        counts = [in_turn(rows, wider), by_other_sources(rows, wider)]
        shares = [held / n for held, n in counts if n >= FEWEST_UNSEEN] or [counts[0][0] / counts[0][1]]
        off = abs(sum(shares) / len(shares) - HELD)
        return abs(counts[0][0] / counts[0][1] - HELD) > TOLERANCE, round(off, 3), abs(wider - 1)

    return min(WIDER, key=key)


def in_turn(rows: Sequence[Sample], wider: float) -> tuple[int, int]:
    """Rows of each part inside by the factors of the others, and how many there are."""
    return total(
        inside(factors((s for s in rows if part(s.id) != n), wider), (s.ratio for s in rows if part(s.id) == n))
        for n in range(PARTS)
        if any(part(s.id) != n for s in rows)
    )


def by_other_sources(rows: Sequence[Sample], wider: float) -> tuple[int, int]:
    """Rows of each source inside by the factors of all others, where these have enough rows."""
    left = {source: [s for s in rows if s.source != source] for source in sorted({s.source for s in rows})}
    return total(
        inside(factors(others, wider), (s.unseen for s in rows if s.source == source))
        for source, others in left.items()
        if len(others) >= FEWEST
    )


def inside(ends: tuple[float, float], ratios: Iterable[float]) -> tuple[int, int]:
    """How many of the ratios lie between the factors, and how many there are."""
    found = [ends[0] <= ratio <= ends[1] for ratio in ratios]
    return sum(found), len(found)


def total(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """The sums of both."""
    several = list(counts)
    return sum(one for one, _ in several), sum(n for _, n in several)


def factors(rows: Iterable[Sample], wider: float) -> tuple[float, float]:
    """The tenth and the ninetieth percentile, so much further from the median."""
    several = list(rows)
    counts = Counter(one.source for one in several)
    weighted = sorted((one.unseen, min(1.0, FULL_WEIGHT / counts[one.source])) for one in several)
    low, middle, high = (percentile(weighted, share) for share in (SHARES[0], 0.5, SHARES[1]))
    return middle * (low / middle) ** wider, middle * (high / middle) ** wider


def percentile(weighted: Sequence[tuple[float, float]], share: float) -> float:
    """Of values in ascending order with weights; each stands in the middle of its weight, between two it is interpolated."""
    whole, before = sum(weight for _, weight in weighted), 0.0
    places = []
    for value, weight in weighted:
        places.append(((before + weight / 2) / whole, value))
        before += weight
    above = next((n for n, (place, _) in enumerate(places) if place >= share), len(places) - 1)
    (left, lower), (right, upper) = places[max(above - 1, 0)], places[above]
    return (
        upper if right == left or share > right else lower + (upper - lower) * max(0.0, share - left) / (right - left)
    )


def text(kind: str, found: Iterable[Fitted]) -> str:
    """The file of a kind."""
    lines = [
        "# Written by scripts/fit_intervals.py: between `low` and `high` lie four of five of measured over predicted.",
        f"name: errors-{kind}",
        f"meaning: {MEANING[kind]}",
        "constants:",
    ]
    for one in found:
        words = CLASSES[kind][one.name]
        note = f"of {one.n} rows of {one.sources} {ORIGIN[one.name.partition('_')[0] == 'unmeasured']}, three in four of all"
        for end, meaning, value, unit in (
            ("low", "10th percentile of measured over predicted", one.low, "ratio"),
            ("high", "90th percentile of measured over predicted", one.high, "ratio"),
            ("rows", "rows that the factors are of", one.n, "count"),
        ):
            lines += [
                f"  {one.name}_{end}: {{value: {value:g}, unit: {unit}, source: interval-fit, confidence: fitted,",
                f'      meaning: "{meaning}: {words}",',
                f'      note: "{note}"}}',
            ]
    return "\n".join(lines) + "\n"


ORIGIN: Mapping[bool, str] = {
    False: "sources",
    True: "classes of chips, each as if unmeasured",
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
