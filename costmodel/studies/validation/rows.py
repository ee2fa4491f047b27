"""A table of measurements as it comes in a file: checked text, one mapping a row, read with reasons and never with a traceback."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from costmodel.catalog.catalog import shipped
from costmodel.errors import InputError

LARGEST_TABLE = 64 * 2**20
"""Bytes; the largest published table has two."""
LARGEST_CELL = 100_000


class UnreadError(InputError):
    """A field of a row that cannot be read: the row is skipped with this reason."""


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one line by the names of their columns."""

    cells: Mapping[str, str]
    where: str

    def text(self, column: str) -> str:
        """The cell, without space around it; empty where there is no such column."""
        return (self.cells.get(column) or "").strip()

    def number(self, column: str) -> float | None:
        """The cell as a positive finite number, None where it is empty. Raises UnreadError for anything else."""
        text = self.text(column)
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value > 0):
            raise UnreadError(f"{column} is {text[:40]!r}, not a number above 0")
        return value

    def whole(self, column: str) -> int | None:
        """The cell as a whole number of 1 or more, None where it is empty. Raises UnreadError for anything else."""
        value = self.number(column)
        if value is None:
            return None
        if value != int(value) or value > 2**53:
            raise UnreadError(f"{column} is {self.text(column)[:40]!r}, not a whole number")
        return int(value)


def published(name: str) -> Path:
    """The shipped table of that name in tables/published."""
    return shipped("tables") / "published" / f"{name}.csv"


def read_table(path: Path) -> tuple[tuple[str, ...], list[Row]]:
    """The columns and the rows of a CSV file. Raises InputError, with the line, for a file that is no such table."""
    shown = str(path)[:200]
    try:
        if path.stat().st_size > LARGEST_TABLE:
            raise InputError(f"the table {shown!r} is larger than {LARGEST_TABLE // 2**20} MiB")
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read the table {shown!r}: {error.strerror}") from None
    except (UnicodeDecodeError, ValueError):
        raise InputError(f"the table {shown!r} is not text in UTF-8") from None
    lines = _lines(text, shown)
    columns = tuple(name.strip() for name in next(lines, (0, [""]))[1])
    if not any(columns):
        raise InputError(f"the table {shown!r} is empty: its first line names the columns")
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise InputError(f"{shown}:1: the column {twice[:40]!r} is there twice")
    rows = []
    for number, cells in lines:
        if len(cells) != len(columns):
            raise InputError(f"{shown}:{number}: {len(cells)} cells, but the table has {len(columns)} columns")
        rows.append(Row(dict(zip(columns, cells, strict=True)), f"{shown}:{number}"))
    return columns, rows


def id_of(row: Row) -> str:
    """What a row is called: its id, or the test of Megatron-LM that it is of, with where that ran."""
    return row.text("id") or "/".join(
        row.text(key) for key in ("test", "environment", "platform", "chips") if row.text(key)
    )


def check_ids(path: Path) -> None:
    """Raise InputError, with both lines, for a table in which two rows have the same `id`: a run would count twice."""
    seen: dict[str, str] = {}
    for row in read_table(path)[1]:
        name, line = row.text("id"), row.where.rpartition(":")[2]
        if name and name in seen:
            raise InputError(
                f"{row.where}: the id {name[:60]!r} is that of line {seen[name]} too, and a row must not count twice: "
                f"remove one of the two, or rename it"
            )
        seen[name] = line


def _lines(text: str, shown: str) -> Iterator[tuple[int, Sequence[str]]]:
    """The lines that hold anything, with their numbers."""
    csv.field_size_limit(LARGEST_CELL)
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        raise InputError(f"{shown}:{reader.line_num}: {error}") from None
