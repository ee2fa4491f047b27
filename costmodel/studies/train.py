"""`train`: what a training step costs, item by item, under a given layout or the best one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Model
from costmodel.errors import InputError
from costmodel.report import Record, Table, human
from costmodel.search.batch import counted
from costmodel.search.candidates import ASYNCHRONOUS, TRIED, candidates, tried_recomputes, with_host, with_modules
from costmodel.search.evaluate import evaluate, math_module
from costmodel.search.grid import Grid, search
from costmodel.search.host import check_host, unknown_of_host
from costmodel.search.layout import OFFLOADS, Layout, parse_layout
from costmodel.search.nearest import Change, changes_that_fit, legal_degrees, nearest_legal
from costmodel.search.placing import on_fastest_placement, written_out
from costmodel.search.recomputation import check_layers
from costmodel.search.routing import ExpertRouting
from costmodel.search.software import Software
from costmodel.search.splits import best_split
from costmodel.search.workload import Workload, scalar_inputs
from costmodel.studies.estimate import Estimate, estimate
from costmodel.studies.gap import Gap, gap, measured_seconds
from costmodel.studies.question import Question, ask, batches, require_legal, searched
from costmodel.studies.stages import stages_table
from costmodel.studies.training_tables import changes_table, comparison, details
from costmodel.topology.frameworks import BEST
from costmodel.topology.machine import parse_machine

MOST_CHANGES = 4
"""Changes that are told when a layout does not fit."""
FINEST_CP = 64
"""Context-parallel ranks up to which legal numbers are told, whether or not a search would try them."""
LEAST_GAIN = 0.001
"""By what share of a step a placement has to be faster than another to be told."""


@dataclass(frozen=True, slots=True)
class Faster:
    """A given layout on the fastest placement of its degrees, or with the best split of its layers, and its step time."""

    layout: Layout
    step_time_s: float

    def split_said(self, step_time_s: float) -> str:
        """In a sentence, beside the step time with balanced stages."""
        longer = 100 * (step_time_s / self.step_time_s - 1)
        best = f"first={self.layout.first} last={self.layout.last} ({human.seconds(self.step_time_s)})"
        return f"with stages as even as they can be a step takes {longer:.1f}% longer than with {best}"

    def said(self, step_time_s: float) -> str:
        """In a sentence, beside the step time with the placement that was given."""
        longer = 100 * (step_time_s / self.step_time_s - 1)
        best = f"the best of the same degrees, {self.layout.placement} ({human.seconds(self.step_time_s)})"
        return f"with this placement a step takes {longer:.1f}% longer than with {best}"


@dataclass(frozen=True, slots=True)
class TrainAnswer:
    """Estimates, one a model in the order asked, with what was assumed of each.

    `changes` are those with which a given layout that does not surely fit would, the cheapest first; None where it fits.
    `faster` are given layouts on a placement of the same degrees that is faster; None where there is none. `split` are given
    layouts with other numbers of layers in the first and the last stage that are faster.
    """

    estimates: tuple[Estimate, ...]
    notes: tuple[tuple[str, ...], ...]
    assumptions: tuple[str, ...]
    changes: tuple[tuple[Change, ...] | None, ...]
    faster: tuple[Faster | None, ...]
    split: tuple[Faster | None, ...]
    by_stage: bool = False
    """Whether tables show what each stage holds in each phase."""
    gap: Gap | None = None

    @property
    def exit_code(self) -> int:
        """1 when any of them surely does not fit."""
        return int(any(found.fits == "no" for found in self.estimates))

    def records(self) -> Sequence[Record]:
        """One row a model."""
        return [found.record() for found in self.estimates]

    def long_records(self) -> Sequence[Record]:
        """One row an item of time or memory."""
        return [item for found in self.estimates for item in found.items()]

    def results(self) -> Sequence[Mapping[str, object]]:
        """One object a model."""
        return [
            found.result()
            | {
                "notes": list(notes),
                "changes_to_fit": _told(changes),
                "faster_placement": _short(faster),
                "faster_split": _short(split),
            }
            for found, notes, changes, faster, split in zip(
                self.estimates, self.notes, self.changes, self.faster, self.split, strict=True
            )
        ]

    def extras(self) -> Mapping[str, object]:
        """What all of them assume."""
        measured = {"measured": self.gap.result()} if self.gap is not None else {}
        return {"assumptions": list(self.assumptions), **measured}

    def tables(self) -> Sequence[Table]:
        """A comparison when there are several, then the details of each."""
        several = [comparison(self.estimates)] if len(self.estimates) > 1 else []
        each = [
            table
            for found, notes, changes in zip(self.estimates, self.notes, self.changes, strict=True)
            for table in [
                *details(found, notes),
                *([stages_table(found.stages)] if self.by_stage else []),
                *changes_table(found, changes),
            ]
        ]
        beside = self.gap.tables() if self.gap is not None else []
        return [*several, *each, *beside, Table("Assumptions", notes=self.assumptions)]


def train(
    models: str | Model | Sequence[str | Model],
    on: str,
    *,
    layout: str | Layout | None = None,
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
    stages: bool = False,
    measured: str | float | None = None,
    catalog: Catalog | Path | None = None,
) -> TrainAnswer:
    """The cost of a training step of each model on a machine.

    Args:
        models: names, sizes such as `70B`, paths of config.json, or records of the catalog.
        on: the machine, such as `dgx-h100:512` or `tpu-v5p:8x16x16`.
        layout: words such as `tp=8 pp=16`, as docs/reference/layout-grammar.md has them; each model's fastest layout that fits
            when it is left out.
        slices: torus slices of that shape, joined by the data-center network.
        sequence_length: tokens of a sequence.
        batch: sequences of a step, or tokens with a suffix such as `16M`.
        tokens: of the whole run, for days and money.
        dtype: of the weight products: bf16, fp16, fp8, fp8-delayed, fp8-rowwise, fp8-block, mxfp8 or nvfp4.
        recipe: what framework and optimizer store of a weight, a name in hardware/recipes such as `torchtitan-fsdp2`.
        routing: how tokens go to experts, in words such as `imbalance=1.2 dispatch=fp8`.
        software: the code: attention kernel, who launches kernels, what overlaps on purpose, kernels of experts.
        document_length: tokens of the document that a token is in, on the mean over tokens, where sequences pack several.
        loss_chunks: pieces of a micro-batch in which head and loss are computed.
        multi_token_prediction: modules that predict further tokens and are trained, on the stage with the head.
        stages: whether tables show what each stage holds in each phase.
        measured: seconds of a step of that layout, or text such as `12.3s`: what could explain the difference is told.
        catalog: an open catalog, or a folder of entries to lay over the shipped one.

    Raises InputError, with the nearest valid choice, for anything that cannot be used.

    """
    opened = Catalog.of(catalog)
    took = measured_seconds(measured) if measured is not None else None
    if took is not None and layout is None:
        raise InputError('a measured step is one of a layout: give --layout, such as --layout "tp=8 pp=4"')
    machine = parse_machine(on, slices, opened)
    InputError.unless(models, (str, Model, Sequence), "models are names, or a list of them")
    several = [models] if isinstance(models, str | Model) else list(models)
    if not several:
        raise InputError("no model was given: name one, such as llama-3-8b or 7B")
    if took is not None and len(several) > 1:
        raise InputError("a measured step is one of a model: name one beside --measured")
    beside: Gap | None = None
    found, notes, changes, faster, split = [], [], [], [], []
    for model in several:
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
        workload, chosen = settle(question, layout, opened)
        found.append(estimate(workload, chosen, opened, question.train_tokens))
        beside = gap(took, workload, chosen, opened) if took is not None else None
        stale = (f"{chosen.schedule} takes gradients of older weights: it changes the mathematics of the training",)
        faster.append(faster_placement(workload, chosen, opened) if layout is not None else None)
        split.append(faster_split(workload, chosen, opened) if layout is not None else None)
        notes.append(
            question.said(workload.global_batch)
            + (stale if chosen.schedule in ASYNCHRONOUS else ())
            + ((faster[-1].said(found[-1].step_time_s),) if faster[-1] else ())
            + ((split[-1].split_said(found[-1].step_time_s),) if split[-1] else ())
        )
        short = layout is not None and found[-1].fits != "yes"
        changes.append(cheapest_changes(workload, chosen, opened) if short else None)
    return TrainAnswer(
        tuple(found), tuple(notes), assumptions(found[0]), tuple(changes), tuple(faster), tuple(split), stages, beside
    )


def settle(question: Question, layout: str | Layout | None, catalog: Catalog) -> tuple[Workload, Layout]:
    """The workload with its batch, and the layout: as given, if it keeps the rules, or the best."""
    if layout is None:
        grid = searched(question, catalog)
        return grid.workload, best_split(grid.workload, best_layout(grid), grid.scalars)
    chips = question.workload.machine.chips
    unsaid = BEST if question.workload.machine.is_torus else ""
    experts = question.workload.model.experts is not None
    named = (
        parse_layout(layout, chips, unsaid, experts=experts)
        if isinstance(layout, str)
        else replace(layout, has_experts=experts)
    )
    if not experts and named.says_of_experts:
        raise InputError(
            f"layout: ep, etp, ep_overlap and dispatch are for experts, and {question.workload.model.name} has none; "
            "leave them out"
        )
    if named.chips != chips:
        raise InputError(f"the layout takes {named.chips} chips, the machine has {chips}")
    check_host(question.workload.machine, named.offload)
    check_layers(named.recompute, question.workload.model.layers)
    nearest = question.batch.rounded_for(named, question.workload.sequence_length)
    given = written_out(question.with_sequences(nearest), named, catalog)
    workload, broken = _judged(question, given, catalog)
    if broken:
        near = _nearest_legal(question, workload, given, catalog)
        none = f"no layout of this model is legal on this machine with {counted(workload.global_batch)}"
        hint = f'the nearest legal one is "{near}"{_degrees_said(question, given, catalog)}' if near else none
        rules = "the rule" if len(broken) == 1 else "the rules"
        raise InputError(f"illegal layout, it breaks {rules} that {' and that '.join(broken)}; {hint}")
    return workload, written_out(workload, named, catalog)


def faster_placement(workload: Workload, layout: Layout, catalog: Catalog) -> Faster | None:
    """The layout on the fastest placement of its degrees; None when that is not faster by as much as would be seen."""
    best = on_fastest_placement(workload, layout, catalog)
    given, least = (evaluate(workload, one, catalog)["step_time"] for one in (layout, best))
    return Faster(best, least) if given > least * (1 + LEAST_GAIN) else None


def faster_split(workload: Workload, layout: Layout, catalog: Catalog) -> Faster | None:
    """The layout with the best split of its layers; None where it names one, or none is faster."""
    best = best_split(workload, layout, scalar_inputs(workload, catalog))
    return None if best == layout else Faster(best, evaluate(workload, best, catalog)["step_time"])


def _judged(question: Question, layout: Layout, catalog: Catalog) -> tuple[Workload, list[str]]:
    """The workload with the batch that a layout gets, and the rules that it breaks there.

    The batch is the one that a search would take first, so that a layout that `plan` printed costs here what it cost there.
    """
    for sequences in batches(question, catalog):
        workload = question.with_sequences(sequences)
        if not broken_rules(workload, layout, catalog):
            return workload, []
    workload = question.with_sequences(question.batch.rounded_for(layout, question.workload.sequence_length))
    return workload, broken_rules(workload, layout, catalog)


def _nearest_legal(question: Question, workload: Workload, wanted: Layout, catalog: Catalog) -> Layout | None:
    """The legal layout nearest to `wanted` that is still legal with the batch that it gets itself."""
    split = best_split(workload, written_out(workload, wanted, catalog), scalar_inputs(workload, catalog))
    if split != wanted and not _judged(question, split, catalog)[1]:
        return split
    for sequences in dict.fromkeys((workload.global_batch, *batches(question, catalog))):
        near = nearest_legal(_all_layouts(question.with_sequences(sequences), wanted, catalog), wanted)
        if near is not None and not _judged(question, near, catalog)[1]:
            return near
    return None


def _degrees_said(question: Question, wanted: Layout, catalog: Catalog) -> str:
    """The degrees that can be had in place of those of `wanted` that cannot, with the batch that divides best."""
    grid = _all_layouts(question.with_sequences(batches(question, catalog)[0]), wanted, catalog, most_cp=FINEST_CP)
    said = (f"; {name} can be {_any_of(known)} here" for name, known in legal_degrees(grid, wanted).items())
    return "".join(said)


def _any_of(values: Sequence[int]) -> str:
    """Numbers in words: 1, 2 or 4."""
    *most, last = map(str, values)
    return f"{', '.join(most)} or {last}" if most else last


def cheapest_changes(workload: Workload, layout: Layout, catalog: Catalog) -> tuple[Change, ...]:
    """The changes that cost least time of those with which a layout fits; none where no layout does.

    They are as few as can be; letting the host keep something counts as one, where enough is known of it.
    """
    grids = [_all_layouts(workload, layout, catalog), search(workload, catalog, with_modules(layout))]
    if not unknown_of_host(workload.machine, OFFLOADS[1]):
        grids.append(search(workload, catalog, with_host(layout)))
    found = [change for grid in grids for change in changes_that_fit(grid, layout, MOST_CHANGES)]
    fewest = min((change.kinds for change in found), default=0)
    few = {str(change.layout): change for change in found if change.kinds == fewest}
    return tuple(sorted(few.values(), key=lambda change: change.step_time_s)[:MOST_CHANGES])


def _all_layouts(workload: Workload, wanted: Layout, catalog: Catalog, most_cp: int = 1) -> Grid:
    """Those that `plan` tries, and those with the pipeline schedule, recomputation and context parallelism of `wanted`."""
    schedules = tuple(dict.fromkeys((*TRIED, wanted.schedule)))
    recomputes = tuple(dict.fromkeys((*tried_recomputes(workload.software), wanted.recompute)))
    tried = candidates(
        workload.model.layers,
        workload.global_batch,
        workload.sequence_length,
        schedules,
        recomputes,
        experts=workload.routed_experts,
        offloads=tuple(dict.fromkeys((OFFLOADS[0], wanted.offload))),
        shards=workload.shards,
    )
    tried = replace(tried, ep_overlap=wanted.ep_overlap, dispatch=wanted.dispatch)
    if wanted.cp > 1:
        kinds = tuple(dict.fromkeys((*tried.cp_types, wanted.cp_type)))
        tried = replace(tried, cp_types=kinds, most_cp=max(tried.most_cp, wanted.cp, most_cp))
    return search(workload, catalog, tried.beside(wanted))


def _short(faster: Faster | None) -> dict[str, object] | None:
    return None if faster is None else {"layout": str(faster.layout), "step_time_s": faster.step_time_s}


def _told(changes: Sequence[Change] | None) -> list[dict[str, object]] | None:
    if changes is None:
        return None
    return [
        {
            "change": change.words,
            "layout": str(change.layout),
            "step_time_s": change.step_time_s,
            "device_used_bytes": change.device_used_bytes,
        }
        for change in changes
    ]


def best_layout(grid: Grid) -> Layout:
    """The fastest layout that fits; where none does, the legal one that is nearest to fitting.

    Raises InputError when no layout is legal.
    """
    require_legal(grid)
    fitting = grid.best(grid.fits, grid.step_time, 1)
    return grid.settled(fitting[0] if fitting else grid.best(grid.legal, grid.device_used, 1)[0])


def broken_rules(workload: Workload, layout: Layout, catalog: Catalog) -> list[str]:
    """What each rule that a layout breaks asks for."""
    values = evaluate(workload, layout, catalog)
    meaning = math_module(workload).MEANING
    return [meaning[name] for name, value in values.items() if name.startswith("rule_") and value <= 0]


def assumptions(found: Estimate) -> tuple[str, ...]:
    """What every estimate of this kind takes for given, with dates."""
    price = found.price
    lines = [
        f"weight products in {found.dtype} at the share of peak that training sustains ({found.chip}); see `costmodel hardware show {found.chip}`",
        found.software,
        found.recipe.said(),
        f"80 % interval, {found.errors.time.said()}",
        *dict.fromkeys(f"80 % interval, {one.said()}" for _, one in found.errors.memory),
        "all overlapped to none: the step with all communication hidden where it can be, and with none",
        "failures, restarts and checkpoints by hardware/assumptions/reliability.yaml; goodput from the worst to the best fleets",
        "no evaluation, no data stalls",
    ]
    if price:
        number = price.usd_per_chip_hour
        lines.append(
            f"price {number.value:g} USD a chip and hour: {price.provider}, {price.kind}, {number.date} ({number.confidence})"
        )
    else:
        lines.append(f"no list price is known for {found.on.split(':')[0]}")
    return tuple(lines)
