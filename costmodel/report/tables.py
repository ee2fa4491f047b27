"""Tables for a terminal, at home in 80 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from itertools import chain, groupby, zip_longest

from tabulate import tabulate

from costmodel.report import human
from costmodel.report.answer import Answer, Scalar, Table, plain

WIDTH = 80
_GAP = 2
_NARROWEST = 12
_NUMERIC = re.compile(r"[-+~<>=]*\s?[$]?\d[\d,.]*(e[-+]?\d+)?\s?(%|\S{0,10}/s|[A-Za-z]{0,6})")
_CONTROLS = dict.fromkeys((*range(9), *range(11, 32), 127, *range(128, 160)), "?") | {9: " "}


def render(answer: Answer, width: int = WIDTH) -> str:
    """All tables of `answer` as text; lines are kept within `width` columns wherever wrapping text can do it."""
    return "\n\n".join(_table(table, width) for table in answer.tables()) + "\n"


def cell(value: Scalar) -> str:
    """One cell as text: numbers with three digits, None as `-`, control characters made harmless."""
    value = plain(value)
    if value is None:
        return human.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return human.number(value)
    return value.translate(_CONTROLS)


def alignments(rows: Sequence[Sequence[str]]) -> list[str]:
    """`right` for each column in which every cell is a number, a quantity or unknown, else `left`."""
    columns = zip_longest(*rows, fillvalue=human.UNKNOWN)
    return ["right" if all(_is_quantity(text) for text in column) else "left" for column in columns]


def _is_quantity(text: str) -> bool:
    return text in {"", human.UNKNOWN} or _NUMERIC.fullmatch(text) is not None


def _table(table: Table, width: int) -> str:
    """The title on what comes first, the grid or a note; empty lines between grid, lists of notes, and texts."""
    title = [_hanging(table.title.translate(_CONTROLS), "", width)] if table.title else []
    grid = [_grid(table, width)] if table.headers or table.rows else []
    notes = _notes([note.translate(_CONTROLS) for note in table.notes], width)
    first = grid or notes[:1]
    return "\n\n".join(["\n".join([*title, *first]), *notes[0 if grid else 1 :]])


def _notes(notes: Sequence[str], width: int) -> list[str]:
    """Texts of several lines as they are, runs of sentences each as one list."""
    blocks: list[str] = []
    for whole, run in groupby(notes, key=lambda note: "\n" in note):
        texts = list(run)
        blocks += texts if whole else ["\n".join(_hanging(text, "- ", width) for text in texts)]
    return blocks


def _hanging(text: str, first: str, width: int) -> str:
    """`text` with what its first line starts with; the path of a file stays whole, to be copied."""
    return textwrap.TextWrapper(width, first, "  ", break_on_hyphens=False, break_long_words=False).fill(text)


def _grid(table: Table, width: int) -> str:
    """Rows under a header and a rule; the header is a row to tabulate, which would widen its column by two."""
    rows = [[cell(value) for value in row] for row in table.rows]
    sides = alignments(rows) or ["left"] * len(table.headers)
    header = [list(table.headers)] if any(table.headers) else []
    widths = _fit([*header, *rows], sides, width)
    wrapped = [[_lines(text, limit) for text, limit in zip(row, widths, strict=False)] for row in [*header, *rows]]
    text = tabulate(
        [["\n".join(lines) for lines in row] for row in wrapped],
        tablefmt="plain",
        disable_numparse=True,
        preserve_whitespace=True,
        colalign=sides,
    )
    lines = [line.rstrip() for line in text.splitlines()]
    if header:
        rule = (" " * _GAP).join(
            "-" * max(len(line) for line in chain(*column)) for column in zip_longest(*wrapped, fillvalue=[""])
        )
        lines.insert(max(len(heading) for heading in wrapped[0]), rule)
    return "\n".join(lines)


def _fit(rows: Sequence[Sequence[str]], sides: Sequence[str], width: int) -> list[int]:
    """Column widths that sum to `width` or less: the widest columns of text give way, numbers do not."""
    columns = zip_longest(*rows, fillvalue="")
    widths = [max(len(line) for text in column for line in (text.split("\n"))) for column in columns]
    soft = [place for place, side in enumerate(sides) if side == "left"]
    while sum(widths) + _GAP * (len(widths) - 1) > width:
        widest = max(soft, key=lambda place: widths[place], default=None)
        if widest is None or widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _lines(text: str, limit: int) -> list[str]:
    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())][: limit // 2]
        lines += textwrap.wrap(
            line, limit, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=bool(line.strip())
        ) or [""]
    return lines
