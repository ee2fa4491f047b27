"""Where an answer goes: rendered in one of the formats, to standard output or whole into a file."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from costmodel.errors import InputError
from costmodel.report.answer import Answer


class Format(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"


ENDINGS = {".csv": Format.CSV, ".json": Format.JSON, ".md": Format.MARKDOWN, ".txt": Format.TABLE}


def write(
    answer: Answer,
    format: Format | None = None,  # noqa: A002 - the name of the option
    output: Path | None = None,
    *,
    long: bool = False,
    catalog_hash: Callable[[], str] = str,
) -> None:
    """Write `answer` to the file `output`, or to standard output when there is none.

    Without `format` the ending of `output` decides, and standard output gets tables. A file appears whole or not at
    all. `long` asks for one CSV row an item; `catalog_hash` is called for JSON alone.

    Raises InputError when the ending is not known or the place cannot be written; nothing when a pipe is closed.
    """
    chosen = chosen_format(format, output)
    width = _terminal_width() if output is None else None
    text: str | Iterable[str]
    if chosen is Format.CSV:
        from costmodel.report import csv

        text = csv.lines(answer.long_records() if long else answer.records())
    else:
        text = render(answer, chosen, long=long, catalog_hash=catalog_hash, width=width)
    if output is None:
        to_standard_output(text)
    else:
        to_file(text, output)


def chosen_format(format: Format | None, output: Path | None) -> Format:  # noqa: A002
    """The format asked for, else the one that the ending of `output` means, else tables."""
    if format is not None or output is None:
        return format or Format.TABLE
    try:
        return ENDINGS[output.suffix.lower()]
    except KeyError:
        known = ", ".join(ENDINGS)
        message = f"cannot tell the format of {str(output)!r}: end its name in one of {known}, or give --format"
        raise InputError(message) from None


def render(
    answer: Answer,
    format: Format,  # noqa: A002
    *,
    long: bool = False,
    catalog_hash: Callable[[], str] = str,
    width: int | None = None,
) -> str:
    """`answer` as text in `format`; each format's module is loaded when it is used."""
    if format is Format.CSV:
        from costmodel.report import csv

        return csv.render(answer.long_records() if long else answer.records())
    if format is Format.JSON:
        from costmodel.report import json

        return json.render(answer, catalog_hash())
    if format is Format.MARKDOWN:
        from costmodel.report import markdown

        return markdown.render(answer)
    from costmodel.report import tables

    return tables.render(answer, width or tables.WIDTH)


def to_standard_output(text: str | Iterable[str]) -> None:
    """Print `text`, or its lines as they come; when the reader has gone away (`| head`), stop without a word."""
    try:
        if sys.stdout is None:
            raise InputError("cannot write to standard output: it is closed")
        sys.stdout.writelines(_pieces(text))
        sys.stdout.flush()
    except BrokenPipeError:
        silence_standard_output()
    except OSError as error:
        silence_standard_output()
        raise InputError(f"cannot write to standard output: {error.strerror}") from None


def silence_standard_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not complain about it when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def to_file(text: str | Iterable[str], output: Path) -> None:
    """Write `text`, or its lines as they come, to `output` whole or not at all; a device or a pipe is written in place.

    Raises InputError when the place cannot be written.
    """
    data = (piece.encode("utf-8", "backslashreplace") for piece in _pieces(text))
    try:
        if output.is_dir():
            raise IsADirectoryError(0, "it is a directory")
        if output.exists() and not output.is_file():
            with output.open("wb") as file:
                file.writelines(data)
        else:
            _replace(output.resolve(), data)
    except OSError as error:
        raise InputError(f"cannot write {str(output)!r}: {error.strerror}") from None
    except (ValueError, RuntimeError) as error:  # a null byte in the name, or links that lead to one another
        raise InputError(f"cannot write {str(output)!r}: {error}") from None


def _pieces(text: str | Iterable[str]) -> Iterable[str]:
    return (text,) if isinstance(text, str) else text


def _replace(output: Path, data: Iterable[bytes]) -> None:
    temporary = output.with_name(f".{output.name[:100]}.{os.getpid()}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(data)
        if output.exists():
            temporary.chmod(stat.S_IMODE(output.stat().st_mode))
        temporary.replace(output)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _terminal_width() -> int | None:
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return max(80, min(shutil.get_terminal_size().columns, 120))
