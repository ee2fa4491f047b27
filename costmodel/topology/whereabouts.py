"""Placements by where each logical axis lies, as people say it: tensor parallelism along x, FSDP along y and z.

    tp:x cp:y fsdp:yz              blanks or commas between the axes; where one word is wanted, tp:x,cp:y,fsdp:yz
    tp:domain fsdp:leaf+spine      dimensions by their names, joined by +; the letters of a torus need none: yz+slices

A dimension that one axis names is whole that axis'. One that several name is split among them, the first to be named innermost.
An axis that is left out has degree 1; every dimension that joins anything is named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from costmodel.errors import InputError
from costmodel.topology.columns import Run
from costmodel.topology.grammar import AXES, LONGEST, check_names, named_runs
from costmodel.topology.machine import AXIS_NAMES, Machine

OTHER_WORDS = {"fsdp": "dp", "data": "dp"}
"""What else the axes are called: FSDP shares weights over the data-parallel ranks."""
WORDS = (*AXES, *OTHER_WORDS)

_START = re.compile(r"\s*([a-z]+):([a-z]*)(?![a-z0-9])")
_AXIS = re.compile(rf"\s*({'|'.join(WORDS)}):\s*[a-z]")
_WORD = re.compile(r"([a-z]+):([a-z0-9+-]+)")
_NAME = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Each axis that is named, as it was called, and the names of the dimensions that it lies on."""

    words: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        return ",".join(f"{axis}:{_joined(names)}" for axis, names in self.words)

    def on(self, name: str) -> tuple[str, ...]:
        """The axes that lie on a dimension, innermost first."""
        return tuple(OTHER_WORDS.get(axis, axis) for axis, names in self.words if name in names)

    def also(self, name: str) -> Whereabouts:
        """The same with the data-parallel ranks on one more dimension."""
        said = [
            (axis, (*names, name)) if OTHER_WORDS.get(axis, axis) == "dp" else (axis, names)
            for axis, names in self.words
        ]
        return Whereabouts(tuple(said) if tuple(said) != self.words else (*self.words, ("dp", (name,))))


def says_where(text: str) -> bool:
    """Whether a placement is meant to say where each axis lies, and not what fills each dimension (x:tp4)."""
    letters = _START.match(text)
    return _AXIS.match(text) is not None or (letters is not None and bool(letters[2]) and letters[2] not in AXES)


def parse_whereabouts(text: str) -> Whereabouts:
    """Where `text` says that each axis lies.

    Raises InputError for what is no axis and its dimensions, and for an axis or a dimension that is named twice.
    """
    if len(text) > LONGEST:
        raise InputError(
            f"placement: longer than {LONGEST} letters; expected axes and where they lie, such as tp:x,fsdp:yz"
        )
    words: list[tuple[str, tuple[str, ...]]] = []
    for word in text.replace(",", " ").split():
        match = _WORD.fullmatch(word)
        if match is None:
            raise InputError(
                f"placement: {word[:40]!r} is not an axis and the dimensions it lies on, such as tp:x or fsdp:leaf+spine"
            )
        axis = match[1]
        if axis not in WORDS:
            raise InputError.unknown("axis in a placement", axis, WORDS)
        names = _names(match[2], axis)
        for earlier, others in words:
            if OTHER_WORDS.get(earlier, earlier) == OTHER_WORDS.get(axis, axis):
                both = f"{earlier}:{_joined(tuple(dict.fromkeys((*others, *names))))}"
                why = "is named twice" if axis == earlier else f"and {earlier} are the same axis"
                raise InputError(f"placement: {axis} {why}; write {both}")
        words.append((axis, names))
    return Whereabouts(tuple(words))


def laid(machine: Machine, where: Whereabouts) -> list[tuple[Run, tuple[str, ...]]]:
    """The dimensions that are filled together, inner first, and the axes that lie on each, innermost first.

    Levels of the network that are left out are filled together with the next one named. Raises InputError, with what would
    do, for a dimension that the machine does not have, and for one that joins something and is not named.
    """
    names = {name for _, some in where.words for name in some}
    check_names(machine, names)
    runs = named_runs(machine, names)
    sizes = [prod(dimension.size for dimension in run) for _, _, run in runs]
    left_out = [
        (spoken, size) for (spoken, named, _), size in zip(runs, sizes, strict=True) if size > 1 and not where.on(named)
    ]
    if left_out:
        would_do = where
        for spoken, _ in left_out:
            would_do = would_do.also(spoken)
        spoken, size = left_out[0]
        raise InputError(
            f"placement: {spoken} joins {size}, and no axis lies there; name every dimension, such as {would_do}"
        )
    return [(run, where.on(named)) for _, named, run in runs]


def _names(text: str, axis: str) -> tuple[str, ...]:
    names: list[str] = []
    for part in text.split("+"):
        if not _NAME.fullmatch(part):
            raise InputError(
                f"placement: {text[:40]!r} does not name dimensions; join them by +, such as {axis}:leaf+spine"
            )
        names += list(part) if set(part) <= set(AXIS_NAMES) else [part]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"placement: {axis} names {twice} twice; write {axis}:{_joined(tuple(dict.fromkeys(names)))}")
    return tuple(names)


def _joined(names: Sequence[str]) -> str:
    """Names of dimensions as they are written: the letters of a torus first and together."""
    letters = "".join(name for name in names if name in AXIS_NAMES)
    return "+".join([*([letters] if letters else []), *(name for name in names if name not in AXIS_NAMES)])
