"""Measured kernels beside what the equations predict for each: `tables/published/kernels`, or a table of one's own.

Of the published rows those of the part `judge` are compared: the constants were fitted to the others.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from costmodel.catalog.catalog import Catalog, shipped
from costmodel.errors import InputError
from costmodel.generated import kernels_math
from costmodel.runtime import call
from costmodel.studies.kernel_inputs import PEAKS, Kernel, kernel
from costmodel.studies.validation.outcome import Outcome

Row = Mapping[str, str]
FOLDER = "tables/published/kernels"
JUDGED = "judge"

# Column of the table -> input of the equations, for each kind of row.
_SHAPE = {"sequences": "sequences", "heads": "heads", "kv_heads": "kv_heads", "head_size": "head_size"}
_PREFILL = {**_SHAPE, "tokens": "tokens", "context_tokens": "context_tokens", "causal": "causal"}
COLUMNS: dict[str, dict[str, str]] = {
    "matmul": {"groups": "groups", "rows": "M", "columns": "N", "features": "K", "weight_copies": "weight_copies"},
    "prefill": _PREFILL,
    "forward-backward": _PREFILL,
    "decode": {**_SHAPE, "context_tokens": "context_tokens"},
    "experts": {
        "tokens": "tokens",
        "hidden_size": "hidden_size",
        "expert_ffn_size": "expert_ffn_size",
        "experts": "experts",
        "experts_per_token": "chosen",
    },
    "cast": {"rows": "rows", "features": "columns"},
}
FAMILY = {"forward-backward": "backward", "cast": "stream"}
"""The family of constants of a kind, where it is called otherwise."""

_FORMS: dict[str, Callable[..., Mapping[str, float]]] = {
    "matmul": kernels_math.matmul_time,
    "prefill": kernels_math.prefill,
    "forward-backward": kernels_math.forward_backward,
    "decode": kernels_math.decode,
    "experts": kernels_math.experts,
    "cast": kernels_math.stream,
}
_MICROSECOND = 1e-6
_STANDING_IN = {"deepgemm": ""}
"""Implementations that have no constants of their own: those of the precision are taken."""


def outcomes(catalog: Catalog, table: Path | None = None) -> Iterable[Outcome]:
    """One outcome a row: of the published tables those that nothing was fitted to, of `table` all.

    Raises InputError where the file has not the columns that a kind of kernel needs.
    """
    found = published() if table is None else read(table)
    compared = [row for row in found if row.get("part", JUDGED) in {JUDGED, ""}] if table is None else found
    return (outcome(row, catalog) for row in compared)


def published() -> list[Row]:
    """All rows of the shipped tables, those that constants were fitted to among them."""
    folder = shipped("tables") / "published" / "kernels"
    return [row for path in sorted(folder.glob("*.csv")) for row in read(path)]


def read(path: Path) -> list[Row]:
    """The rows of a table; raises InputError for a file that cannot be read or has other columns."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the table {str(path)[:200]!r} cannot be read: {error}") from None
    rows = list(csv.DictReader(text.splitlines()))
    columns = set(rows[0]) if rows else set()
    missing = {"kind", "chip", "precision", "time_us"} - columns
    if missing:
        needed = ", ".join(sorted(missing))
        raise InputError(f"{path.name} has no column {needed}; tables of kernels look as {FOLDER}/matmul.csv does")
    return [{"id": f"{path.stem}-{number}", **row} for number, row in enumerate(rows, 1)]


def outcome(row: Row, catalog: Catalog) -> Outcome:
    """A row compared; a row that does not say enough is skipped with the reason."""
    try:
        measured = _number(row, "time_us")
        found = predicted(row, catalog)
    except InputError as error:
        return Outcome(
            "kernels", row["id"], "time_us", measured_or_nan(row), skipped=str(error), source=row.get("source", "")
        )
    return Outcome(
        "kernels",
        row["id"],
        "time_us",
        measured,
        found["time"] / _MICROSECOND,
        found["low_time"] / _MICROSECOND,
        found["high_time"] / _MICROSECOND,
        source=row.get("source", ""),
        chip=row["chip"],
        strategy=" ".join(part for part in (row["kind"], row["precision"], row.get("implementation", "")) if part),
    )


def measured_or_nan(row: Row) -> float:
    """The measured time, or not a number where the row has none."""
    try:
        return _number(row, "time_us")
    except InputError:
        return float("nan")


def predicted(row: Row, catalog: Catalog) -> Mapping[str, float]:
    """Time and interval in seconds; raises InputError for a row that does not say enough."""
    kind = row["kind"]
    found = call(_FORMS[kind], inputs(row, catalog)) if kind in _FORMS else None
    if found is None:
        raise InputError.unknown("kind of kernel", kind, COLUMNS)
    constants = _kernel(row, catalog).constants
    return {**found, **call(kernels_math.interval, {**constants, "time": found["time"]})}


def inputs(row: Row, catalog: Catalog) -> dict[str, float]:
    """What the equations are given for a row; raises InputError, as `predicted` does."""
    kind = row["kind"]
    if kind not in COLUMNS:
        raise InputError.unknown("kind of kernel", kind, COLUMNS)
    shape = {name: _number(row, column) for column, name in COLUMNS[kind].items()}
    return {**setting(row, catalog), **shape}


def setting(row: Row, catalog: Catalog) -> dict[str, float]:
    """Of these, what does not depend on the shape."""
    kernel = _kernel(row, catalog)
    own = {"row_operation": float(kernel_operation("cast"))} if row["kind"] == "cast" else {}
    cast = {"cast_size": 0.0} if row.get("cast_included") == "no" else {}
    again = {"cache_copies": 1.0, "array_copies": 1.0, "weight_copies": 1.0, "window": 0.0}
    return {**kernel.inputs, **again, **own, **cast}


def kernel_operation(name: str) -> int:
    """The number of an elementwise operation in the equations."""
    from costmodel.generated.labels import CHOICES

    return CHOICES["row_operation"].index(name)


def _kernel(row: Row, catalog: Catalog) -> Kernel:
    return _known(row["chip"], row["kind"], row["precision"], row.get("implementation", ""), catalog)


@cache
def _known(chip: str, kind: str, precision: str, implementation: str, catalog: Catalog) -> Kernel:
    family = FAMILY.get(kind, kind)
    if precision not in PEAKS:
        raise InputError.unknown("precision of a kernel", precision, PEAKS)
    named = None if family in {"matmul", "stream"} else _STANDING_IN.get(implementation, implementation) or None
    return kernel(
        catalog.chip(chip), family, catalog, precision="bf16" if kind == "cast" else precision, implementation=named
    )


def _number(row: Row, column: str) -> float:
    text = row.get(column) or ""
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{row['id']}: {column} is {text[:30]!r}, not a number") from None
    if not value >= 0 or value == float("inf"):
        raise InputError(f"{row['id']}: {column} is {text[:30]!r}: expected a finite number of 0 or more")
    return value


def deep(catalog: Catalog, limit: int | None = None) -> Iterator[Outcome]:
    """Every row of the whole tables of aiconfigurator-core, or `limit` of each spread evenly; one skipped outcome without it."""
    from costmodel.studies.validation.kernel_packages import PACKAGE, installed, rows, tables

    root = installed()
    if root is None:
        why = f"{PACKAGE} is not installed: pip install 'roofline-costmodel[deep]'"
        yield Outcome("kernels", "deep", "time_us", float("nan"), skipped=why)
        return
    for table in tables(root):
        found = rows(table, catalog.chip(table.chip).details["l2_capacity"].value)
        step = 1 if limit is None else max(1, len(found) // limit)
        for number, row in enumerate(found[::step], 1):
            yield outcome({"id": f"{table.source}-{number}", **row, "source": table.source}, catalog)
