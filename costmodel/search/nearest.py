"""The legal layout that is nearest to one that is not."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from typing import TYPE_CHECKING

from costmodel.search.grid import DEGREES, Grid
from costmodel.search.layout import Layout, default_placement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def nearest_legal(grid: Grid, wanted: Layout) -> Layout | None:
    """The legal layout of the grid with the fewest and smallest changes from `wanted`; None when nothing is legal."""
    import numpy as np

    choices = grid.candidates
    degrees = grid.degrees
    distance = sum(np.abs(np.log2(degrees[name] / getattr(wanted, name))) for name in DEGREES)
    along = (
        [abs(log2(size / wanted.micro_batch_size)) for size in choices.micro_batches],
        [abs(log2(v / wanted.virtual_stages)) + (schedule != wanted.schedule) for schedule, v in choices.schedules],
        [float(zero != wanted.zero) for zero in choices.zeros],
        [float(recompute != wanted.recompute) for recompute in choices.recomputes],
        [float(on != wanted.sequence_parallel) for on in choices.sequence_parallel],
        [float(kind != wanted.cp_type) for kind in choices.cp_types],
    )
    whole: NDArray[np.float64] = np.asarray(distance).reshape((1,) * len(along) + (-1,))
    for axis, costs in enumerate(along):
        shape = [1] * (len(along) + 1)
        shape[axis] = -1
        whole = whole + np.asarray(costs).reshape(shape)
    found = grid.best(grid.legal, whole, 1)
    if not found:
        return None
    near = grid.layout(found[0], "")
    return replace(near, placement=default_placement(near.cp))
