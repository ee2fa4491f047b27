"""Which answers are too close to be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from costmodel.search.grid import Grid

TIE = 0.05
"""Times that differ by this share or less are not told apart: no model of this kind is nearer to measurements."""


def count_ties(grid: Grid, listed: Sequence[tuple[int, ...]], times: Sequence[float]) -> int:
    """Layouts of a search that are not told apart from the best.

    Those at the positions `listed` count with their `times`, the fastest first, which other layers of the ends may have made shorter.
    """
    limit = times[0] * (1 + TIE)
    near = grid.fits & (grid.step_time <= limit)
    return int(near.sum()) - sum(bool(near[position]) for position in listed) + sum(time <= limit for time in times)
