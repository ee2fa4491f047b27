"""Which rows no constant is fitted to: by their ids alone, so that every fit holds back the same ones."""

from __future__ import annotations

from zlib import crc32

PARTS = 4
"""Parts of equal size that rows fall into, the first of which is held back."""


def part(name: str) -> int:
    """Which of the parts a row of that id is in."""
    return crc32(name.encode()) % PARTS


def held_back(name: str) -> bool:
    """Whether the fits do not look at a row of that id."""
    return part(name) == 0
