"""How well layouts are told apart: sweeps of one source, ranked by what was measured and by what is predicted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from costmodel.studies.validation.outcome import Outcome
from costmodel.studies.validation.runs import PublishedRun

LEAST = 3
"""Rows of a sweep, below which there is nothing to rank."""
TOP = 3
"""The best that was measured is looked for among so many of the best predicted."""

SWEEPS: Mapping[str, tuple[str, Callable[[PublishedRun], tuple[object, ...]]]] = {
    "llm-foundry": ("sequence and batch of a model on a chip", lambda run: (run.model, run.chip)),
    "zero-bubble2024": ("schedules", lambda run: (run.model, run.chips, run.global_batch)),
    "megatron-bridge-perf": (
        "chips and layouts of a release",
        lambda run: (run.model, run.framework, run.sequence_length),
    ),
    "bigscience-tr11-prequel": ("layouts of a shape", lambda run: (run.model, run.chips)),
}
"""By source: what its sweeps vary, and what all rows of one have in common."""


def sweep(run: PublishedRun) -> str:
    """The sweep that a row belongs to, empty where it is of none."""
    if run.source not in SWEEPS:
        return ""
    return " ".join(str(part) for part in (run.source, *SWEEPS[run.source][1](run)))


@dataclass(frozen=True, slots=True)
class Ranking:
    """All sweeps of one kind. Regret is what the layout that was predicted best takes more than the best, as measured."""

    source: str
    varied: str
    groups: int
    rows: int
    spread: float
    spearman: float
    top: int
    median_regret: float
    worst_regret: float

    def record(self) -> dict[str, str | float]:
        """As one flat row."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class _Ranked:
    spread: float
    spearman: float
    in_top: bool
    regret: float
    rows: int


def rankings(outcomes: Iterable[Outcome]) -> list[Ranking]:
    """One ranking a source that has sweeps, then one of all of them; none where no row is of a sweep."""
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        if one.sweep and one.error is not None:
            groups[one.sweep].append(one)
    ranked: dict[str, list[_Ranked]] = defaultdict(list)
    for rows in groups.values():
        if len(rows) >= LEAST:
            ranked[rows[0].source].append(_ranked(rows))
    found = [_together(source, SWEEPS[source][0], ranked[source]) for source in SWEEPS if ranked[source]]
    if len(found) > 1:
        found.append(_together("all", "", [one for source in SWEEPS for one in ranked[source]]))
    return found


def _ranked(rows: Sequence[Outcome]) -> _Ranked:
    measured = [(one.measured or 0) / one.work for one in rows]
    predicted = [(one.predicted or 0) / one.work for one in rows]
    best = measured.index(min(measured))
    order = sorted(range(len(rows)), key=predicted.__getitem__)
    return _Ranked(
        max(measured) / min(measured),
        spearman(measured, predicted),
        best in order[:TOP],
        measured[order[0]] / measured[best] - 1,
        len(rows),
    )


def _together(source: str, varied: str, ranked: Sequence[_Ranked]) -> Ranking:
    regrets = [one.regret for one in ranked]
    return Ranking(
        source,
        varied,
        len(ranked),
        sum(one.rows for one in ranked),
        median(one.spread for one in ranked),
        median(one.spearman for one in ranked),
        sum(one.in_top for one in ranked),
        median(regrets),
        max(regrets),
    )


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """The correlation of the ranks, equal values sharing theirs; 0 where all of one are equal."""
    a, b = _ranks(first), _ranks(second)
    mean = (len(a) + 1) / 2
    spread = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return float(sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True)) / spread**0.5) if spread else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values
    ]
