"""CSV for scripts and spreadsheets: quoted as in RFC 4180, plain numbers, lines ending in a line feed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from costmodel.report.answer import Record, Scalar, plain

# What a spreadsheet may take for a formula, the full-width twins of = + - @ included.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_QUOTED = re.compile(r'[",\r\n]|^\s|\s$')


def render(records: Sequence[Record]) -> str:
    """All lines of the file."""
    return "".join(lines(records))


def lines(records: Sequence[Record]) -> Iterator[str]:
    """One header row, then one row a record, each as it is asked for; columns in the order in which they first appear, None left empty."""
    columns = list(dict.fromkeys(name for record in records for name in record))
    yield ",".join(map(_text, columns)) + "\n"
    for record in records:
        yield ",".join(_text(record.get(name)) for name in columns) + "\n"


def defused(text: str) -> str:
    """`text` with a leading ' where a spreadsheet would read a formula; plain numbers stay as they are."""
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def _text(value: Scalar) -> str:
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    text = defused(value)
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED.search(text) else text
