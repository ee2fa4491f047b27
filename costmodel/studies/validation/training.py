"""Step times of published training runs beside the predicted ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.generated import published_math
from costmodel.generated.labels import CHOICES
from costmodel.runtime import call
from costmodel.search.precision import HALF
from costmodel.studies.intervals import of_step
from costmodel.studies.validation import runs
from costmodel.studies.validation.headline import left_out
from costmodel.studies.validation.outcome import Outcome
from costmodel.studies.validation.prepared import Prepared, Preparing
from costmodel.studies.validation.ranking import sweep
from costmodel.studies.validation.rows import published
from costmodel.studies.validation.runs import PublishedRun, Unread

KIND = "training"
QUANTITY = "step_time_s"
MANY_RANKS, FEW = 8, 2
TERA = 1e12
"""What TFLOP/s are in FLOP/s."""
SHORT_STEP_S = 1.0
"""Steps under a second are often bound by what the equations leave out: launches, data, the host."""

knows = runs.knows


def outcomes(catalog: Catalog, table: Path | None = None, models: Path | None = None) -> Iterator[Outcome]:
    """One outcome a row that has a step time, printed or from throughput or FLOPs; rows without one are skipped.

    Raises InputError for a table or a file of models that cannot be read.
    """
    preparing = Preparing(catalog, models)
    for run in runs.read_runs(table or published(KIND)):
        yield _unread(run) if isinstance(run, Unread) else _outcome(run, preparing)


def _unread(row: Unread) -> Outcome:
    return Outcome(KIND, row.id, QUANTITY, row.step_time_s, skipped=row.reason, source=row.source, chip=row.chip)


def _outcome(run: PublishedRun, preparing: Preparing) -> Outcome:
    measured = run.step_time_s or run.throughput_step_time_s
    chip = run.chip
    reason, prepared = "", None
    try:
        chip = preparing.machines.chip(run.chip)
        prepared = preparing.prepare(run)
        if measured is None:
            measured = time_from_flops(run, prepared.values)
    except InputError as error:
        reason = str(error)
    if measured is None and not reason:
        reason = "no step time is stated, and none follows from the FLOPs"
    known = prepared if not reason else None
    return Outcome(
        KIND,
        run.id,
        QUANTITY,
        measured,
        predicted=known.values["step_time"] if known else None,
        skipped=reason,
        source=run.source,
        chip=chip,
        strategy=known.strategy if known else "",
        left_out=left_out(run),
        remark=remark(known) if known else "",
        work_class=work_class(known) if known else "",
        sweep=sweep(run) if known else "",
        classes=of_run(known) if known else (),
        work=known.workload.step_tokens / known.workload.machine.chips if known else 1.0,
    )


def of_run(one: Prepared) -> tuple[str, ...]:
    """The classes of its error."""
    workload = one.workload
    return of_step(workload.machine.chip, workload.dtype, experts=workload.model.experts is not None)


def work_class(one: Prepared) -> str:
    """What kind of run it is, as far as the error depends on it."""
    if one.workload.model.experts is not None:
        return "experts"
    bits = "16 bits" if one.workload.dtype in HALF else "8 or 4 bits"
    return f"dense, {bits}{', TPU' if one.workload.machine.chip.kind == 'tpu' else ''}"


def time_from_flops(run: PublishedRun, values: Mapping[str, Any]) -> float | None:
    """Seconds of a step by a printed rate of FLOPs a chip, as its source counts them; None where that cannot be told."""
    return step_time_of_rate(run.chip_tflops, run.flops_counted, values) if run.chip_tflops else None


def step_time_of_rate(chip_tflops: float, counted: str, values: Mapping[str, Any]) -> float | None:
    """Seconds of a step that runs at so many TFLOP/s a chip, counted in such a way; None for a way that is not known."""
    ways = CHOICES["flops_counted"]
    if counted not in ways:
        return None
    printed = {"flops_counted": ways.index(counted), "printed_rate": chip_tflops * TERA}
    return float(call(published_math.printed_rate, {**values, **printed})["printed_step_time"])


REMARKS: tuple[tuple[str, Callable[[Prepared], bool]], ...] = (
    (
        "a step of about a second: what the host, data and logging take of it is a guess",
        lambda one: one.values["step_time"] < SHORT_STEP_S,
    ),
    ("activations go to the host and back", lambda one: "offload" in one.run.traits),
    (
        "layers of experts, whose code differs by up to a factor of two between releases",
        lambda one: one.workload.model.experts is not None,
    ),
    (
        "code of before 2023 with small micro-batches under tp: slower than anything counted explains",
        lambda one: (
            "before-2023" in one.run.traits and one.layout.tp >= MANY_RANKS and one.layout.micro_batch_size <= FEW
        ),
    ),
)
"""What the equations leave out, the gravest first."""


def remark(one: Prepared) -> str:
    """What is likeliest to make this prediction a bad one."""
    known = next((words for words, holds in REMARKS if holds(one)), "")
    return known or (one.assumed[0] if one.assumed else "")
