"""Measured kernels beside what the equations predict for each: `tables/published/kernels`, or a table of one's own.

Of the published rows those of the part `judge` count: the constants were fitted to the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from costmodel.catalog.catalog import Catalog, shipped
from costmodel.errors import InputError
from costmodel.generated import kernels_math
from costmodel.generated.labels import CHOICES
from costmodel.runtime import call
from costmodel.studies.kernel_inputs import PEAKS, Kernel, interval, kernel
from costmodel.studies.kernel_shapes import LARGEST
from costmodel.studies.validation.kernel_collection import THEIRS, translated
from costmodel.studies.validation.outcome import Outcome
from costmodel.studies.validation.rows import Row, UnreadError, read_table

OURS = frozenset({"kind", "chip", "precision", "time_us"})
"""The columns by which a table of kernels is known; each kind has those of its shape besides."""
FITTED = "the constants were fitted to it"
QUANTITY = "time_us"

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
        "gated": "gated",
    },
    "cast": {"rows": "rows", "features": "columns"},
}
MAY_BE_ZERO = frozenset({"context_tokens", "causal", "gated"})
"""Columns of a shape in which 0 means none of it."""
USUAL = {"gated": "1"}
"""What a column is where a table does not have it."""
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


def knows(columns: tuple[str, ...]) -> bool:
    """Whether a table with these columns is one of kernels: ours, or the collection of published kernels."""
    return set(columns) >= OURS or set(columns) >= THEIRS


def outcomes(catalog: Catalog, table: Path | None = None) -> Iterator[Outcome]:
    """One outcome a row; raises InputError for a file that is no such table."""
    return (outcome(row, catalog) for row in (published_rows() if table is None else rows_of(table)))


def published_rows() -> list[Row]:
    """All rows of the shipped tables, those that constants were fitted to among them."""
    folder = shipped("tables") / "published" / "kernels"
    return [row for path in sorted(folder.glob("*.csv")) for row in rows_of(path)]


def rows_of(path: Path) -> list[Row]:
    """The rows of a table in our columns; raises InputError for a file that has neither ours nor those of the collection."""
    columns, found = read_table(path)
    if not knows(columns):
        missing = ", ".join(sorted(OURS - set(columns)))
        raise InputError(f"{path.name} has no column {missing}; tables of kernels look as tables/published/kernels do")
    return [translated(row) if set(columns) >= THEIRS else row for row in found]


def outcome(row: Row, catalog: Catalog) -> Outcome:
    """A row compared; a row that does not say enough is skipped with the reason."""
    name = row.text("id") or row.where.rpartition("/")[2]
    words = (row.text("kind"), row.text("precision"), row.text("implementation"))
    source, chip, strategy = row.text("source"), row.text("chip"), " ".join(filter(None, words))
    measured = None
    try:
        measured = row.number(QUANTITY)
        if measured is None:
            raise UnreadError("no time is stated")
        found = predicted(row, catalog)
    except InputError as error:
        return Outcome(
            "kernels", name, QUANTITY, measured, skipped=str(error), source=source, chip=chip, strategy=strategy
        )
    time, low, high = (found[key] / _MICROSECOND for key in ("time", "low_time", "high_time"))
    left_out = FITTED if row.text("part") == "fit" else ""
    return Outcome(
        "kernels",
        name,
        QUANTITY,
        measured,
        time,
        low,
        high,
        source=source,
        chip=chip,
        strategy=strategy,
        left_out=left_out,
    )


def predicted(row: Row, catalog: Catalog) -> Mapping[str, float]:
    """Time and interval in seconds; raises InputError for a row that does not say enough."""
    return _predicted(_words(row), row.text("cast_included"), _shape(row), catalog=catalog)


@lru_cache(maxsize=2**16)
def _predicted(
    words: tuple[str, str, str, str], cast_included: str, shape: tuple[float, ...], *, catalog: Catalog
) -> Mapping[str, float]:
    """Of one shape; frameworks time the same products."""
    names = COLUMNS[words[1]].values()
    found = call(_FORMS[words[1]], {**_setting(words, cast_included, catalog), **dict(zip(names, shape, strict=True))})
    low, high = interval(_known(*words, catalog=catalog), found)
    return {"time": found["time"], "low_time": low, "high_time": high}


def setting(row: Row, catalog: Catalog) -> dict[str, float]:
    """What the equations are given for a row that does not depend on its shape; raises InputError, as `predicted` does."""
    return _setting(_words(row), row.text("cast_included"), catalog)


def _shape(row: Row) -> tuple[float, ...]:
    kind = row.text("kind")
    if kind not in COLUMNS:
        raise InputError.unknown("kind of kernel", kind, COLUMNS)
    return tuple(_count(row, column, 0 if column in MAY_BE_ZERO else 1) for column in COLUMNS[kind])


def _words(row: Row) -> tuple[str, str, str, str]:
    """Chip, kind, precision and implementation; no implementation where constants do not depend on it."""
    chip, kind, precision, implementation = (
        row.text(column) for column in ("chip", "kind", "precision", "implementation")
    )
    return chip, kind, precision, "" if FAMILY.get(kind, kind) in {"matmul", "stream"} else implementation


def _setting(words: tuple[str, str, str, str], cast_included: str, catalog: Catalog) -> dict[str, float]:
    cast = CHOICES["row_operation"].index("cast")
    again = {"cache_copies": 1.0, "array_copies": 1.0, "weight_copies": 1.0, "window": 0.0}
    inside = {"cast_size": 0.0} if cast_included == "no" else {}
    return {**_known(*words, catalog=catalog).inputs, **again, **inside, "row_operation": float(cast)}


@cache
def _known(chip: str, kind: str, precision: str, implementation: str, *, catalog: Catalog) -> Kernel:
    family = FAMILY.get(kind, kind)
    if precision not in PEAKS:
        raise InputError.unknown("precision of a kernel", precision, PEAKS)
    of = "bf16" if kind == "cast" else precision
    return kernel(catalog.chip(chip), family, catalog, precision=of, implementation=implementation or None)


def _count(row: Row, column: str, least: int) -> float:
    """A number from `least` to what the command takes."""
    text = row.text(column) or USUAL.get(column, "")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value <= LARGEST:
        raise UnreadError(f"{column} is {text[:30]!r}, not a number from {least} to 2**40")
    return value


def whole(catalog: Catalog, each: int | None = None, *, every: bool = True) -> Iterator[Outcome]:
    """Every kernel of the whole tables of aiconfigurator-core, or `each` of a table spread evenly; one skipped outcome without it.

    Those count whose shapes nothing was fitted to, of the kernels that constants were fitted to; others are predicted where `every`
    is true.
    """
    from costmodel.studies.validation import kernel_whole
    from costmodel.studies.validation.kernel_packages import MISSING, installed

    root = installed()
    if root is None:
        yield Outcome("kernels", "whole", QUANTITY, None, skipped=MISSING)
        return
    taken: Counter[Path] = Counter()
    for table in kernel_whole.whole_tables(root):
        found = kernel_whole.found_in(root, table, catalog.chip(table.chip).details["l2_capacity"].value)
        taken[table.path] += len(found)
        step = 1 if each is None else max(1, len(found) // each)
        for number, one in enumerate(found[::step], 1):
            name = f"{table.system}/{table.kind}/{table.precision}/{one.source.partition(', ')[2]}-{number}"
            row = Row({**one.row, "source": one.source}, name)
            if every or not one.left_out:
                yield replace(outcome(row, catalog), left_out=one.left_out, unseen=not one.left_out)
            else:
                yield Outcome("kernels", name, QUANTITY, row.number(QUANTITY), source=one.source, left_out=one.left_out)
    for other in (*kernel_whole.unlike(root), *kernel_whole.rest(root, taken)):
        yield Outcome("kernels", other.name, QUANTITY, None, skipped=other.why_not, source=other.source)
