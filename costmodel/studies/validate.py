"""`validate`: how far the predictions are from what people measured, by kind of measurement, with the worst rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.report import Record, Scalar, Table, human
from costmodel.studies.validation import coverage, kinds
from costmodel.studies.validation.gathered import Gathered
from costmodel.studies.validation.outcome import Outcome
from costmodel.studies.validation.ranking import Ranking, rankings
from costmodel.studies.validation.records import Rows
from costmodel.studies.validation.rows import check_ids
from costmodel.studies.validation.statistics import GROUPINGS, Summary, summaries, worst

MOST_WORST = 5
"""Rows that are told of each kind, those furthest from what was measured."""
RANKING_NOTES = (
    "time of a token and chip; spread: slowest over fastest, as measured, of the median sweep",
    "in top 3: sweeps whose fastest as measured is among the three that are predicted fastest",
    "regret: what the one that is predicted fastest takes longer than the fastest, as measured",
)
MOST_REASONS = 4
"""Reasons told for rows that are not predicted."""
ERROR = "error: predicted over measured, less one; bias: its median with its sign"
OF_KINDS = ("kind", "n", "median", "90th\npercentile", "bias", "not\ncounted", "not\npredicted")


@dataclass(frozen=True, slots=True)
class ValidateAnswer:
    """The outcomes of each kind in the order asked, and their statistics."""

    outcomes: Mapping[str, Sequence[Outcome]]
    by: str | None
    each_row: bool
    all_rows: bool
    whole: bool = False

    @property
    def exit_code(self) -> int:
        """0: an error that is told is an answer."""
        return 0

    def counted(self, kind: str) -> Iterator[Outcome]:
        """The outcomes that the statistics are of: headline rows, or all that are predicted."""
        return (one for one in self.outcomes[kind] if (one.error is not None if self.all_rows else one.headline))

    def summaries(self, kind: str) -> list[Summary]:
        """All counted rows of a kind, then its groups."""
        return summaries(kind, self.counted(kind), self.by)

    def rankings(self, kind: str) -> list[Ranking]:
        """How well the sweeps among the counted rows of a kind are ranked."""
        return rankings(self.counted(kind))

    def coverages(self, kind: str) -> list[coverage.Coverage]:
        """What the 80 % intervals of each class of error hold of the counted rows of a kind."""
        return coverage.coverages(kind, self.counted(kind))

    def records(self) -> Sequence[Record]:
        """One row a group, or a row and quantity with `each_row`."""
        if self.each_row:
            return Rows(self.outcomes)
        return [summary.record() for kind in self.outcomes for summary in self.summaries(kind)]

    def long_records(self) -> Sequence[Record]:
        """One row a row and quantity."""
        return Rows(self.outcomes)

    def results(self) -> Sequence[Mapping[str, object]]:
        """The same as the records."""
        return list(self.records())

    def extras(self) -> Mapping[str, object]:
        """How well each kind of sweep is ranked, and what 80 % intervals hold."""
        return {
            "ranking": [one.record() for kind in self.outcomes for one in self.rankings(kind)],
            "coverage": [one.record() for kind in self.outcomes for one in self.coverages(kind)],
        }

    def tables(self) -> Sequence[Table]:
        """All kinds side by side where there are several, then the errors of each, with the worst rows; or every row."""
        if self.each_row:
            return [table for kind in self.outcomes for table in self._every(kind)]
        kinds_of = [Table("Error of predictions", OF_KINDS, [self._kind(kind) for kind in self.outcomes], (ERROR,))]
        each = [table for kind in self.outcomes for table in self._errors(kind)]
        return [*(kinds_of if len(self.outcomes) > 1 else []), *each]

    def _kind(self, kind: str) -> tuple[Scalar, ...]:
        every, *_ = self.summaries(kind)
        skipped = sum(bool(one.skipped) for one in self.outcomes[kind])
        errors = (human.percent(every.median_abs_error), human.percent(every.p90_abs_error), _signed(every.bias))
        return (kind, every.n, *errors, len(self.outcomes[kind]) - skipped - every.n, skipped)

    def _every(self, kind: str) -> list[Table]:
        rows = [
            (one.id, one.quantity, one.measured, one.predicted, _signed(one.error), one.skipped or one.left_out)
            for one in self.outcomes[kind]
        ]
        return [
            Table(
                f"Measured and predicted: {kind}",
                ("row", "quantity", "measured", "predicted", "error", "not counted"),
                rows,
            )
        ]

    def _errors(self, kind: str) -> list[Table]:
        rows = [
            (one.group, one.n, human.percent(one.median_abs_error), human.percent(one.p90_abs_error), _signed(one.bias))
            for one in self.summaries(kind)
        ]
        found = [
            Table(
                f"Error of predictions: {kind}",
                (self.by or "rows", "n", "median", "90th\npercentile", "bias"),
                rows,
                self._notes(kind),
            )
        ]
        found += coverage.table(kind, self.coverages(kind))
        ranked = [
            (
                one.source,
                one.varied,
                one.groups,
                f"{one.spread:.2f}",
                f"{one.spearman:.2f}",
                human.percent(one.top / one.groups),
                human.percent(one.median_regret),
                human.percent(one.worst_regret),
            )
            for one in self.rankings(kind)
        ]
        if ranked:
            columns = ("source", "what varies", "sweeps", "spread", "Spearman", "in top 3", "regret", "worst\nregret")
            found.append(Table(f"Ranking within sweeps: {kind}", columns, ranked, RANKING_NOTES))
        bad = [
            (one.id, _signed(one.error), one.quantity, one.source, one.remark or "-")
            for one in worst(self.counted(kind), MOST_WORST)
        ]
        if bad:
            found.append(
                Table(
                    f"Furthest from what was measured: {kind}",
                    ("row", "error", "quantity", "source", "likeliest reason"),
                    bad,
                )
            )
        return found

    def _notes(self, kind: str) -> list[str]:
        left: Counter[str] = Counter()
        skipped: Counter[str] = Counter()
        for one in self.outcomes[kind]:
            if one.skipped:
                skipped[one.skipped] += 1
            elif one.left_out:
                left[one.left_out] += 1
        said = [ERROR]
        if left and not self.all_rows:
            are = "" if self.whole else "are predicted but "
            said.append(f"{left.total():,} more {are}do not count (--all): {_reasons(left)}")
        if skipped:
            said.append(f"{skipped.total():,} are not predicted: {_reasons(skipped)}")
        return said


def validate(
    kind: str | None = None,
    *,
    table: Path | None = None,
    models: Path | None = None,
    by: str | None = None,
    each_row: bool = False,
    all_rows: bool = False,
    whole: bool = False,
    catalog: Catalog | Path | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> ValidateAnswer:
    """Predict every row of published tables that is specified enough, and say how far the predictions are from it.

    Args:
        kind: training, memory, collectives or kernels; all that there are, or those that a table is of, when it is left out.
        table: a CSV of measurements in place of the shipped ones, in their columns or those of their sources.
        models: a CSV of the shapes of models that the catalog does not have.
        by: source, chip, strategy or class, to group the errors.
        each_row: one record a row and quantity in place of the statistics.
        whole: the whole tables of the package aiconfigurator-core, of collectives and kernels, in place of the shipped samples; where
            it is not installed, one row that says so.
        all_rows: statistics over all rows that are predicted, also those that no headline rule keeps.
        catalog: an open catalog, or a folder of entries to lay over the shipped one.
        progress: called with the number of rows that are done.

    Raises InputError, with the nearest valid choice, for anything that cannot be used.

    """
    opened = Catalog.of(catalog)
    if whole and (table is not None or models is not None):
        raise InputError("--whole takes the tables of an installed package: give it, or --table and --models")
    if by is not None and by not in GROUPINGS:
        raise InputError.unknown("grouping", by, GROUPINGS)
    if kind is not None:
        kinds.module(kind)
        asked: tuple[str, ...] = (kind,)
        if table is not None and kind not in kinds.of_table(table):
            raise InputError(
                f"{str(table)[:200]!r} holds no {kind}: its columns are those of {' and '.join(kinds.of_table(table))}"
            )
    elif whole:
        asked = kinds.WITH_WHOLE
    else:
        asked = kinds.offered() if table is None else kinds.of_table(table)
    if table is not None:
        check_ids(table)
    found: dict[str, Sequence[Outcome]] = {}
    done = 0
    for name in asked:
        rows = Gathered()
        for one in (
            kinds.whole(name, opened, every=each_row or all_rows)
            if whole
            else kinds.outcomes(name, opened, table, models)
        ):
            rows.append(one)
            done += 1
            progress(done)
        found[name] = rows
    return ValidateAnswer(found, by, each_row, all_rows, whole)


def _signed(share: float | None) -> str:
    return human.UNKNOWN if share is None else f"{100 * share:+.1f}%"


def _reasons(counts: Counter[str]) -> str:
    told = [f"{reason} ({count:,})" for reason, count in counts.most_common(MOST_REASONS)]
    more = sum(counts.values()) - sum(count for _, count in counts.most_common(MOST_REASONS))
    return "; ".join([*told, *([f"others ({more:,})"] if more else [])])
