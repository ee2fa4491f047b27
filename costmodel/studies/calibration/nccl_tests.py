"""What nccl-tests and rccl-tests print: all_reduce_perf and its like, one run or several after each other, whole or cut off.

Columns are taken from the header that each run prints, so that old and new versions are read alike. A line that begins as a
result and does not go on as one is an error; the last line of a file that was cut off is left out and said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import NoReturn

from costmodel.errors import InputError

OPERATIONS = {
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "all_reduce": "all-reduce",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "sendrecv": "send-recv",
}
"""By the name of the program without `_perf`; longer names first where one holds another."""
_PROGRAM = re.compile(rf"\b({'|'.join(OPERATIONS)})_perf\b")
_FILE = re.compile(rf"(?:^|[^a-z])({'|'.join(name.replace('_', '[_-]?') for name in OPERATIONS)})(?:$|[^a-z])")
_PREFIX = re.compile(r"^\s*(?:\[[0-9]+,[0-9]+\]<std(?:out|err)>:|[0-9]+:(?=\s))")
"""What mpirun --tag-output and srun --label put before a line."""
_HEADER = re.compile(r"#\s+size\s+count\b")
_RANK = re.compile(r"#\s+Rank\s+(\d+)\b.*?\bon\s+(\S+)\s+device")
_RUN = re.compile(r"#\s*nThread\b|#\s*Collective test starting")
_WHOLE = re.compile(r"\d+")
TYPES = {"int8": "int8", "uint8": "int8", "int32": "int32", "uint32": "int32", "int64": "int32", "uint64": "int32"}
"""Elements that switches do not add, as `collective` names them."""
MICROSECOND = 1e-6
WRONG, EMPTY = "wrong", "empty"
"""Results that are none to fit to: found wrong, or of no bytes."""


@dataclass(frozen=True, slots=True)
class Result:
    """One line: seconds out of place, or in place where the operation has no other; `ranks` and `hosts` are 0 where not told."""

    where: str
    operation: str
    size: int
    time_s: float
    ranks: int = 0
    hosts: int = 0
    dtype: str = "bf16"
    in_place_s: float | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """The results of one file, and what was left out of it."""

    results: tuple[Result, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Run:
    operation: str = ""
    ranks: frozenset[int] = frozenset()
    hosts: frozenset[str] = frozenset()
    columns: tuple[str, ...] = ()


def knows(text: str) -> bool:
    """Whether this is the output of nccl-tests: the header of its columns is there."""
    return any(_HEADER.match(_PREFIX.sub("", line).lstrip()) for line in text.splitlines())


def read(text: str, file: str, operation: str = "") -> Log:
    """The results of a file of that name; `operation` is what ran where neither the output nor the name tells.

    Raises InputError with file and line for a result that cannot be read, and where the operation is not known.
    """
    named = _FILE.search(file.rpartition("/")[2].lower().removesuffix("_perf"))
    by_name = _operation(named[1]) if named else ""
    run, found, notes, wrong, started = _Run(), [], [], 0, True
    lines = text.splitlines()
    for number, raw in enumerate(lines, 1):
        line, where = _PREFIX.sub("", raw).strip(), f"{file}:{number}"
        program = _PROGRAM.search(line)
        if not started and (program or _RUN.match(line)):
            run, started = _Run(), True
        if program:
            run = replace(run, operation=OPERATIONS[program[1]])
        if rank := _RANK.match(line):
            run = replace(run, ranks=run.ranks | {int(rank[1])}, hosts=run.hosts | {rank[2]})
        elif _HEADER.match(line):
            run, started = replace(run, columns=tuple(line.lstrip("# ").split())), False
        elif run.columns and _is_result(line):
            last = number == len(lines) and not text.endswith("\n")
            result = _result(line.split(), run, where, cut_off=last)
            if result is None:
                notes.append(f"{where} is cut off and left out")
            elif isinstance(result, str):
                wrong += result == WRONG
            else:
                chosen = operation or run.operation or by_name or _by_rates(line.split(), run, result)
                found.append(replace(result, operation=chosen or _unsaid(where)))
    if wrong:
        notes.append(f"{file}: {wrong} results that nccl-tests found wrong are left out")
    if not found:
        raise InputError(f"{file} has the header of nccl-tests and no result below it")
    return Log(tuple(found), tuple(notes))


def _operation(matched: str) -> str:
    return OPERATIONS[next(name for name in OPERATIONS if name.replace("_", "") == re.sub("[_-]", "", matched))]


def _is_result(line: str) -> bool:
    words = line.split()
    return len(words) >= 2 and bool(_WHOLE.fullmatch(words[0])) and bool(_WHOLE.fullmatch(words[1]))


def _result(words: Sequence[str], run: _Run, where: str, *, cut_off: bool) -> Result | str | None:
    """A line as a result; None where it was cut off, a word where it is none to fit to. Raises InputError for any other."""
    if len(words) < len(run.columns):
        if cut_off:
            return None
        raise InputError(f"{where}: {len(words)} values, but the header above has {len(run.columns)} columns")
    named: dict[str, list[str]] = {}
    for column, word in zip(run.columns, words, strict=False):
        named.setdefault(column, []).append(word)
    if "time" not in named:
        raise InputError(f"{where}: the header above names no column `time`")
    if any(_is_wrong(word) for word in named.get("#wrong", [])):
        return WRONG
    size = int(words[0]) if len(words[0]) < 19 else 0
    times = [None if word == "N/A" else _time(word, where) for word in named["time"]]
    told = [time for time in times if time is not None]
    if not told:
        raise InputError(f"{where}: no time is given")
    if size < 1:
        return EMPTY if words[0] == "0" else _refuse(f"{where}: {words[0][:30]} is no size in bytes")
    kind = named.get("type", [""])[0]
    return Result(
        where,
        "",
        size,
        told[0] * MICROSECOND,
        len(run.ranks),
        len(run.hosts),
        TYPES.get(kind, "bf16"),
        times[1] * MICROSECOND if len(times) > 1 and times[0] is not None and times[1] is not None else None,
    )


def _is_wrong(word: str) -> bool:
    try:
        return float(word) > 0
    except ValueError:
        return False  # N/A where nothing was checked


def _time(word: str, where: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = 0.0
    if not (isfinite(value) and value > 0):
        _refuse(f"{where}: the time is {word[:30]!r}, not a number of microseconds above 0")
    return value


def _refuse(message: str) -> NoReturn:
    raise InputError(message)


def _unsaid(where: str) -> NoReturn:
    known = ", ".join(dict.fromkeys(OPERATIONS.values()))
    raise InputError(
        f"{where}: the output does not say which operation ran: name it with --operation, or in the file's name ({known})"
    )


def _by_rates(words: Sequence[str], run: _Run, result: Result) -> str:
    """The operation by what is added and by the rate of the bus over that of the algorithm; empty where several are alike."""
    cells = dict(zip(reversed(run.columns), reversed(words[: len(run.columns)]), strict=True))
    try:
        ratio = float(cells["busbw"]) / float(cells["algbw"])
    except (KeyError, ValueError, ZeroDivisionError):
        return ""
    adds = cells.get("redop", "none") != "none"
    rooted = cells.get("root", "-1") not in {"-1", ""}
    n = result.ranks
    if adds:
        if rooted:
            return "reduce"
        if n > 2 or (n == 0 and ratio > 1.05):
            return "all-reduce" if ratio > 1.05 else "reduce-scatter"
        return ("all-reduce" if ratio > 0.75 else "reduce-scatter") if n == 2 else ""
    return "broadcast" if rooted and ratio > 0.98 else ""


def spread(results: Iterable[Result]) -> float | None:
    """The median of in place over out of place, where both are told."""
    from statistics import median

    ratios = [one.in_place_s / one.time_s for one in results if one.in_place_s is not None]
    return median(ratios) if ratios else None


__all__ = ["Log", "Result", "knows", "read", "spread"]
