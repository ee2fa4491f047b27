"""Readings of memory beside the predicted ones: of published training runs, and of Megatron-LM's functional tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.studies.intervals import of_memory
from costmodel.studies.validation import megatron, runs
from costmodel.studies.validation.headline import memory_left_out
from costmodel.studies.validation.outcome import Outcome
from costmodel.studies.validation.prepared import Prepared, Preparing
from costmodel.studies.validation.rows import published, read_table
from costmodel.studies.validation.runs import PublishedRun, Unread

KIND = "memory"
QUANTITIES = {
    "allocated_bytes": "allocated",
    "reserved_bytes": "reserved",
    "device_used_bytes": "device_used",
    "between_steps_bytes": "between_steps",
}
"""The quantities of memory that sources print, and the equation of each; those of Megatron-LM's tests are of the last stage."""


def knows(columns: tuple[str, ...]) -> bool:
    """Whether a table with these columns holds readings of memory."""
    return runs.knows(columns) or megatron.knows(columns)


def outcomes(catalog: Catalog, table: Path | None = None, models: Path | None = None) -> Iterator[Outcome]:
    """One outcome a reading; runs without one give none.

    Raises InputError for a table or a file of models that cannot be read.
    """
    preparing = Preparing(catalog, models)
    if table is None:
        yield from _of_runs(published("training"), preparing)
        yield from megatron.outcomes(published("megatron_memory"), preparing)
    elif megatron.knows(read_table(table)[0]):
        yield from megatron.outcomes(table, preparing)
    else:
        yield from _of_runs(table, preparing)


def _of_runs(table: Path, preparing: Preparing) -> Iterator[Outcome]:
    for run in runs.read_runs(table):
        if not isinstance(run, Unread) and run.memory_bytes is not None:
            yield _outcome(run, run.memory_bytes, preparing)


def _outcome(run: PublishedRun, measured: float, preparing: Preparing) -> Outcome:
    chip, prepared = run.chip, None
    known = run.memory_quantity in QUANTITIES
    reason = "" if known else f"which memory {run.framework} prints is not known"
    try:
        chip = preparing.machines.chip(run.chip)
        prepared = preparing.prepare(run, for_memory=True) if known else None
    except InputError as error:
        reason = str(error)
    return Outcome(
        KIND,
        run.id,
        run.memory_quantity if known else "allocated_bytes",
        measured,
        predicted=prepared.values[QUANTITIES[run.memory_quantity]] if prepared else None,
        skipped=reason,
        source=run.source,
        chip=chip,
        strategy=prepared.strategy if prepared else "",
        left_out=memory_left_out(run),
        remark=_remark(prepared) if prepared else "",
        classes=_classes(run, prepared) if prepared else (),
    )


def _classes(run: PublishedRun, one: Prepared) -> tuple[str, ...]:
    """The classes of its error."""
    workload = one.workload
    quantity = QUANTITIES[run.memory_quantity]
    return of_memory(quantity, workload.machine.chip, experts=workload.model.experts is not None)


def _remark(one: Prepared) -> str:
    if one.run.memory_quantity == "device_used_bytes":
        return "the device's use holds buffers of libraries that no equation gives"
    if one.layout.zero == 3 and one.layout.pp > 1:
        return "how much FSDP keeps whole under pipelines depends on the version"
    return one.assumed[0] if one.assumed else ""
