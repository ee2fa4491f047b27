"""Measured collectives beside what `collective` says of them, as the library of the machine runs them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from costmodel.catalog.catalog import Catalog, shipped
from costmodel.errors import InputError
from costmodel.studies.collective import collective
from costmodel.studies.timings import Timing
from costmodel.studies.validation.collective_rows import Row, knows, rows_of
from costmodel.studies.validation.outcome import Outcome

KIND = "collectives"
TABLES = ("in_node", "published")
SMALLEST_CHOICE = 2**16
"""Bytes from which more than one protocol is near; below, start-up is all."""
FITTED = "fit"
"""The part of a shipped table that constants are fitted to: it is no judge of them."""
ITS_SHAPE = "constants were fitted to this collective, in the newest version of the library"


def outcomes(catalog: Catalog, table: Path | None = None) -> Iterable[Outcome]:
    """Every measured collective beside its prediction: of the shipped tables those that no constant is fitted to, or all of `table`.

    A row that does not say enough is skipped with its reason. Raises InputError for a table that cannot be read.
    """
    tables = (
        [table]
        if table is not None
        else [shipped("tables") / "published" / "collectives" / f"{name}.csv" for name in TABLES]
    )
    for path in tables:
        for row in rows_of(path, catalog):
            if row.part != FITTED:
                yield outcome(row, catalog)


def whole(catalog: Catalog, *, every: bool = True) -> Iterator[Outcome]:
    """Every collective of the whole tables of aiconfigurator-core; one skipped outcome without it.

    Those count whose operation, type, ranks and payload no constant is fitted to, in any version of the library. A table of another
    library than NCCL is one skipped outcome. They are few enough that all are predicted, whatever `every` says.
    """
    del every
    from costmodel.studies.validation import collective_packages
    from costmodel.studies.validation.kernel_packages import MISSING, installed

    root = installed()
    if root is None:
        yield Outcome(KIND, "whole", "time_s", None, skipped=MISSING)
        return
    for table in collective_packages.tables(root):
        if table.why_not:
            yield Outcome(KIND, table.name, "time_s", None, skipped=table.why_not, source=table.name.partition("/")[2])
            continue
        for row in collective_packages.rows(table):
            why = ITS_SHAPE if row.part == FITTED else ""
            yield replace(outcome(row, catalog), left_out=why, unseen=row.part == collective_packages.NOT_DRAWN)


def outcome(row: Row, catalog: Catalog) -> Outcome:
    """One row beside its prediction: its time where that is told, else its bus bandwidth."""
    quantity, measured = "time_s", row.time_s
    if measured is None:
        quantity, measured = "busbw_bytes_per_s", row.busbw_bytes_per_s
    told = Outcome(KIND, row.id, quantity, measured, skipped=row.skipped, source=row.source)
    if row.skipped:
        return told
    try:
        ran = predicted(row, catalog)
    except InputError as error:
        return replace(told, skipped=str(error))
    value = ran.time_s if quantity == "time_s" else ran.busbw_bytes_per_s
    chip = catalog.cluster(row.machine.partition(":")[0]).chip
    return replace(
        told,
        predicted=value,
        chip=chip,
        strategy=f"{row.operation} {ran.algorithm} {ran.protocol}".strip(),
        remark=_likeliest_reason(row),
        classes=ran.interval.names if ran.interval else (),
    )


def _likeliest_reason(row: Row) -> str:
    """What is likeliest to make the prediction of a row a bad one."""
    if row.started_by is not None:
        return f"what {row.started_by} adds differs from host to host"
    if row.machine.startswith("tpu"):
        return "times of short programs hold the start from the host"
    if row.machine.startswith("rtx"):
        return "which cards share a PCIe switch is not told"
    if ":1x" not in row.machine:
        return "the network of the publisher; curves are read off figures"
    if row.operation == "send-recv":
        return "constants are those of an all-to-all"
    return "the library's own choice of protocol" if row.payload > SMALLEST_CHOICE else "the host and the clock"


def predicted(row: Row, catalog: Catalog) -> Timing:
    """What ran: the fastest algorithm of the family that is told; raises InputError where the catalog has no such thing."""
    message = row.operation == "send-recv"
    answer = collective(
        row.operation,
        row.payload,
        row.machine,
        axes=row.axes,
        dtype=row.dtype,
        started_by=row.started_by,
        catalog=catalog,
    )
    competing = answer.timings
    if message:
        return next(timing for timing in competing if timing.algorithm != "host")
    if row.family:
        competing = tuple(t for t in competing if t.algorithm == row.family)
    elif row.no_in_switch:
        competing = tuple(timing for timing in competing if not timing.algorithm.startswith("nvls"))
    if not competing:
        raise InputError(f"{row.family} is no algorithm of {row.operation} on {row.machine}")
    return competing[0]


__all__ = ["knows", "outcome", "outcomes", "predicted", "whole"]
