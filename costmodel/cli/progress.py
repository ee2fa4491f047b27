"""Tells a person on standard error how far a slow answer is."""

from __future__ import annotations

import sys
import time

PATIENCE = 1.0
"""Seconds without an answer after which progress is shown."""
BETWEEN = 0.1
"""Seconds between two counts of rows."""


class Progress:
    """Says nothing when standard error is a file or the answer is quick."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.said = self.start
        self.shown = sys.stderr is not None and sys.stderr.isatty()

    def share(self, done: float) -> None:
        """The share of a search that is done."""
        if self._is_late():
            print(f"\rsearching: {100 * done:3.0f} %", end="\n" if done >= 1 else "", file=sys.stderr, flush=True)

    def rows(self, done: int) -> None:
        """The rows of tables that are done."""
        if done % 50 == 0 and self._is_late() and time.monotonic() - self.said > BETWEEN:
            self.said = time.monotonic()
            print(f"\r{done:,} rows", end="", file=sys.stderr, flush=True)

    def parts(self, done: int) -> None:
        """The parts of measurements that were left out in turn."""
        if self._is_late():
            print(f"\r{done:,} parts left out in turn", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """End the line of a count, where one was begun."""
        if self._is_late():
            print(file=sys.stderr)

    def _is_late(self) -> bool:
        return self.shown and time.monotonic() - self.start > PATIENCE
