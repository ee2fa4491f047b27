"""`plan`: the fastest layouts of a model on a machine, among all that are legal, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from time import perf_counter

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Model
from costmodel.codes import INTERRUPTED
from costmodel.errors import InputError
from costmodel.report import Record, Scalar, Table, human
from costmodel.search.grid import Grid, search
from costmodel.search.layout import Layout
from costmodel.search.recomputation import check_layers, recomputations
from costmodel.search.routing import ExpertRouting
from costmodel.search.software import Software
from costmodel.search.splits import best_split
from costmodel.studies.differences import why
from costmodel.studies.estimate import Estimate, estimate
from costmodel.studies.question import Question, ask, require_legal, searched
from costmodel.studies.ties import TIE, count_ties
from costmodel.studies.train import LEAST_GAIN, assumptions
from costmodel.studies.training_tables import details
from costmodel.studies.tried import expert_overlap, offloads, reshards
from costmodel.topology.frameworks import BEST
from costmodel.topology.machine import parse_machine

FRONT_STEP = 0.02
"""Along the Pareto front, a layout is shown when its step is this much slower than that of the one before."""
MOST_OF_FRONT = 8
MOST_SHOWN = 100
MOST_CHIPS = 64
"""Up to how many times the chips are tried when nothing fits."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A rule and how many layouts broke it first."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class TooBig:
    """A fast layout that does not fit, and by how much."""

    layout: Layout
    step_time_s: float
    short_bytes: float


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """The best layouts, fastest first, and what the search saw beside them.

    `ties` counts the layouts within `TIE` of the best; `front` trades step time for memory; `too_big` are faster but do not fit;
    `remedy` says what would fit when nothing does. `inside_domain` is the best with tensor parallelism inside one fast domain,
    as nearly everybody runs it, when the best of all spreads it further. Where only what one `placement` reaches was searched,
    `best_placed` is the best on any placement. `share_searched` is less than 1 where the search was interrupted: all else is then of what
    had been looked at, and there is no `best_placed`.
    """

    best: tuple[Estimate, ...]
    placement: str
    best_placed: Estimate | None
    inside_domain: Estimate | None
    ties: int
    front: tuple[Estimate, ...]
    too_big: tuple[TooBig, ...]
    rejected: tuple[Rejected, ...]
    searched: int
    evaluated: int
    legal: int
    fitting: int
    search_seconds: float
    share_searched: float
    remedy: str
    notes: tuple[str, ...]
    assumptions: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """1 when nothing fits; that of an interrupt, whatever was found before it."""
        return INTERRUPTED if self.share_searched < 1 else int(self.fitting == 0)

    def records(self) -> Sequence[Record]:
        """One row a layout, fastest first."""
        return [{"rank": rank, **self._standing(found), **found.record()} for rank, found in enumerate(self.best, 1)]

    def long_records(self) -> Sequence[Record]:
        """One row an item of time or memory of each layout."""
        return [{"rank": rank, **item} for rank, found in enumerate(self.best, 1) for item in found.items()]

    def results(self) -> Sequence[Mapping[str, object]]:
        """One object a layout, fastest first."""
        return [{**found.result(), **self._standing(found), **self._search()} for found in self.best]

    def extras(self) -> Mapping[str, object]:
        """What was searched, and what was rejected and why."""
        return {
            **self._search(),
            "ties": self.ties,
            "placement": self.placement,
            "best_placed": _short(self.best_placed) if self.best_placed else None,
            "inside_domain": _short(self.inside_domain) if self.inside_domain else None,
            "pareto": [_short(found) for found in self.front],
            "too_big": [
                {"layout": str(x.layout), "step_time_s": x.step_time_s, "short_bytes": x.short_bytes}
                for x in self.too_big
            ],
            "remedy": self.remedy or None,
            "notes": list(self.notes),
            "assumptions": list(self.assumptions),
        }

    def tables(self) -> Sequence[Table]:
        """The best in detail, then the others, the front, what was rejected."""
        first = self.best[0]
        shown = [*details(first, self.notes)]
        shown.insert(1, self._others())
        if len(self.front) > 1:
            rows = [
                (f.layout.without_placement, human.seconds(f.step_time_s), human.size(f.device_used_bytes))
                for f in self.front
            ]
            shown.append(Table("Less memory for more time", ("layout", "step", "memory"), rows))
        if self.too_big:
            rows = [
                (x.layout.without_placement, human.seconds(x.step_time_s), human.size(x.short_bytes))
                for x in self.too_big
            ]
            shown.append(Table("Faster, but too big", ("layout", "step", "short of"), rows))
        shown.append(self._rejections())
        return [*shown, Table("Assumptions", notes=self.assumptions)]

    def _others(self) -> Table:
        best = self.best[0].step_time_s
        rows = [
            (
                rank,
                found.layout.without_placement,
                human.seconds(found.step_time_s),
                f"{100 * (found.step_time_s / best - 1):+.1f}%",
                human.percent(found.mfu),
                human.size(found.device_used_bytes),
            )
            for rank, found in enumerate(self.best, 1)
        ]
        columns = ("", "layout", "step", "slower", "MFU", "memory")
        if self.remedy:
            return Table("Smallest layouts, none of which fits", columns, rows, (self.remedy,))
        tied = f"{self.ties:,} layouts lie within {TIE:.0%} of the best: such a model does not tell them apart"
        notes = [tied if self.ties > 1 else f"no other layout lies within {TIE:.0%} of the best"]
        notes += [] if len(self.best) < 2 else [why(self.best)]
        if self.best_placed:
            notes.append(self._gain(self.best_placed))
        if self.inside_domain:
            inside = self.inside_domain
            slower = f"+{100 * (inside.step_time_s / best - 1):.1f}%"
            notes.append(
                "the best spreads tensor parallelism over several fast domains; the fastest that keeps it inside one takes "
                f"{human.seconds(inside.step_time_s)} ({slower}): {inside.layout.without_placement}"
            )
        return Table("Fastest layouts", columns, rows, notes)

    def _gain(self, any_placement: Estimate) -> str:
        """What the best of all placements would gain over the one asked for."""
        gain = 1 - any_placement.step_time_s / self.best[0].step_time_s
        if gain <= LEAST_GAIN:
            return f"no other placement is faster than what {self.placement} reaches"
        return (
            f"only what {self.placement} reaches was searched; the best of all placements takes "
            f"{human.seconds(any_placement.step_time_s)}, {100 * gain:.1f}% less: {any_placement.layout}"
        )

    def _rejections(self) -> Table:
        rows: list[tuple[Scalar, ...]] = [(f"{r.count:,}", r.reason) for r in self.rejected if r.count]
        note = (
            f"{self.searched:,} layouts in {human.seconds(self.search_seconds)}: {self.legal:,} legal, {self.fitting:,} fit; "
            f"time and memory of {self.evaluated:,}, {human.rate(self.evaluated / self.search_seconds, ' layouts/s')}"
        )
        return Table("Rejected, by the first rule broken", ("layouts", "rule"), rows, (note,))

    def _standing(self, found: Estimate) -> dict[str, Scalar]:
        slower = found.step_time_s / self.best[0].step_time_s - 1
        return {"slower_than_best": slower, "tie": slower <= TIE}

    def _search(self) -> dict[str, object]:
        return {
            "searched": self.searched,
            "evaluated": self.evaluated,
            "legal": self.legal,
            "fitting": self.fitting,
            "search_seconds": self.search_seconds,
            "share_searched": self.share_searched,
            "rejected": [{"reason": r.reason, "count": r.count} for r in self.rejected],
        }


def plan(
    model: str | Model,
    on: str,
    *,
    slices: int = 1,
    sequence_length: int | str | None = None,
    batch: int | str | None = None,
    tokens: int | str | None = None,
    dtype: str | None = None,
    recipe: str | None = None,
    software: Software | None = None,
    routing: str | ExpertRouting | None = None,
    document_length: int | str | None = None,
    loss_chunks: int = 1,
    multi_token_prediction: int = 0,
    placement: str = BEST,
    offload: str | None = None,
    reshard: str | None = None,
    ep_overlap: str | None = None,
    recompute: str | None = None,
    top: int = 5,
    catalog: Catalog | Path | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> PlanAnswer:
    """The fastest layouts of a model on a machine; arguments as those of `train`, `top` says how many.

    `placement` keeps to those that a framework of that name reaches, an order, or the one written out. `offload` lets hosts keep
    states, weights or activations in their memory (`host`), states on their drives too (`nvme`); nothing without it. `recompute`
    lists what may be run again, as `recompute` of a layout; without it what searches try. `reshard` lets FSDP keep gathered weights to
    the backward pass (`backward`), or to the end of the step too (`step`); without it as the recipe has it. `ep_overlap` says what
    exchanges of experts hide behind; nothing without it.
    `progress` is told the share of the search that is done. Raises InputError, with the nearest valid choice, for anything
    that cannot be used, and when no layout at all is legal.
    """
    if not 1 <= top <= MOST_SHOWN:
        raise InputError(f"--top {top} is out of range: from 1 to {MOST_SHOWN}")
    opened = Catalog.of(catalog)
    machine = parse_machine(on, slices, opened)
    question = ask(
        model,
        machine,
        opened,
        sequence_length=sequence_length,
        batch=batch,
        tokens=tokens,
        dtype=dtype,
        recipe=recipe,
        software=software,
        routing=routing,
        document_length=document_length,
        loss_chunks=loss_chunks,
        multi_token_prediction=multi_token_prediction,
    )
    question = replace(question, placement=placement, offloads=offloads(machine, offload), reshards=reshards(reshard))
    if ep_overlap is not None:
        question = replace(question, ep_overlap=expert_overlap(question, ep_overlap))
    if recompute is not None:
        question = replace(question, recomputes=recomputations(recompute))
    for named in question.recomputes:
        check_layers(named, question.workload.model.layers)
    start = perf_counter()
    grid = searched(question, opened, progress, so_far=True)
    seconds = perf_counter() - start
    return _answer(grid, question, opened, top, seconds)


def _answer(grid: Grid, question: Question, catalog: Catalog, top: int, seconds: float) -> PlanAnswer:
    require_legal(grid)
    fits = grid.fits

    def full(index: tuple[int, ...]) -> Estimate:
        layout = best_split(grid.workload, grid.settled(index), grid.scalars)
        return estimate(grid.workload, layout, catalog, question.train_tokens)

    remedy = ""
    whole = grid.share == 1
    if fits.any():
        positions = grid.best(fits, grid.step_time, top)
    else:
        positions = grid.best(grid.legal, grid.device_used, top)
        least = float(grid.device_used[positions[0]])
        remedy = _remedy(grid, question, catalog, least) if whole else "nothing fits of what was looked at"
    best = tuple(full(index) for index in positions)
    if fits.any():
        best = tuple(sorted(best, key=lambda found: found.step_time_s))
    limit = best[0].step_time_s if fits.any() else 0.0
    too_big = grid.best(grid.legal & ~fits & (grid.step_time < limit), grid.step_time, 3)
    narrowed = whole and question.placement != BEST
    anywhere = _on_any_placement(grid, question, catalog) if fits.any() and narrowed else None
    inside = _inside_domain(grid, positions[0]) if fits.any() else None
    fitting = grid.count(fits)
    legal = grid.count(grid.legal)
    rejected = [Rejected(rule, count) for rule, count in grid.broken.items()]
    rejected.append(
        Rejected("the memory of a chip holds it, with what the runtime and its buffers need", legal - fitting)
    )
    notes = question.said(grid.workload.global_batch)
    if not whole:
        rejected.append(Rejected("not looked at", grid.searched - legal - sum(grid.broken.values())))
        notes = (f"interrupted after {human.percent(grid.share)} of the search: the best so far", *notes)
    return PlanAnswer(
        best=best,
        placement=question.placement,
        best_placed=anywhere,
        inside_domain=None if inside is None else full(inside),
        ties=count_ties(grid, positions, [found.step_time_s for found in best]) if fits.any() else 0,
        front=tuple(full(index) for index in grid.front(FRONT_STEP, MOST_OF_FRONT)),
        too_big=tuple(
            TooBig(grid.settled(i), float(grid.step_time[i]), float(grid.device_used[i] - grid.capacity))
            for i in too_big
        ),
        rejected=tuple(sorted(rejected, key=lambda r: -r.count)),
        searched=grid.searched,
        evaluated=grid.evaluated,
        legal=legal,
        fitting=fitting,
        search_seconds=seconds,
        share_searched=grid.share,
        remedy=remedy,
        notes=notes,
        assumptions=assumptions(best[0]),
    )


def _on_any_placement(grid: Grid, question: Question, catalog: Catalog) -> Estimate:
    """The best of the same candidates and batch over all placements."""
    wider = search(grid.workload, catalog, grid.candidates)
    found = best_split(grid.workload, wider.settled(wider.best(wider.fits, wider.step_time, 1)[0]), grid.scalars)
    return estimate(grid.workload, found, catalog, question.train_tokens)


def _inside_domain(grid: Grid, best: tuple[int, ...]) -> tuple[int, ...] | None:
    """Position of the best layout whose tensor-parallel ranks share a fast domain; None when the best is such a one."""
    domain = prod(dimension.size for dimension in grid.workload.machine.fast)
    degrees = grid.degrees["tp"]
    if degrees[best[-1]] <= domain:
        return None
    found = grid.best(grid.fits & (degrees <= domain), grid.step_time, 1)
    return found[0] if found else None


def _remedy(grid: Grid, question: Question, catalog: Catalog, least: float) -> str:
    """By how much nothing fits, and on how many chips it would."""
    machine = grid.workload.machine
    short = f"nothing fits: the smallest layout is {human.size(least - grid.capacity)} over the memory of a chip"
    name = machine.cluster.name
    chips = machine.chips
    while chips < MOST_CHIPS * machine.chips:
        chips *= 2
        try:
            larger = parse_machine(f"{name}:{chips}", 1, catalog)
            workload = replace(question.workload, machine=larger)
            if searched(replace(question, workload=workload), catalog).fits.any():
                return f"{short}; {name}:{chips} would hold it"
        except InputError:
            continue  # not every number of chips can be had
    return f"{short}; a shorter sequence, a smaller model or a chip with more memory would help"


def _short(found: Estimate) -> dict[str, object]:
    return {
        "layout": str(found.layout),
        "step_time_s": found.step_time_s,
        "device_used_bytes": found.device_used_bytes,
        "allocated_bytes": found.allocated_bytes,
    }
