"""Layouts near a given one: the legal one that is nearest, and the changes with which it would fit the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import log2
from typing import TYPE_CHECKING, Any

from costmodel.search.candidates import Stages
from costmodel.search.grid import Grid
from costmodel.search.layout import Layout, default_placement

if TYPE_CHECKING:
    from numpy.typing import NDArray


CONTEXT_AXIS = 5
"""Position of the ways of context parallelism among the axes of candidates."""


@dataclass(frozen=True, slots=True)
class Change:
    """A layout that fits, what of it is not as it was, and what it comes to."""

    layout: Layout
    words: str
    step_time_s: float
    device_used_bytes: float
    kinds: int
    """How many kinds of things are not as they were."""


def nearest_legal(grid: Grid, wanted: Layout) -> Layout | None:
    """The legal layout of the grid with the fewest and smallest changes from `wanted`; None when nothing is legal."""
    import numpy as np

    choices = grid.candidates
    degrees = grid.degrees
    distance = sum(np.abs(np.log2(degree / getattr(wanted, name))) for name, degree in degrees.items())
    along = (
        [abs(log2(size / wanted.micro_batch_size)) for size in choices.micro_batches],
        [
            abs(log2(v / wanted.virtual_stages)) + (schedule != wanted.schedule) + (said != Stages.of(wanted)) / 2
            for schedule, v, said in choices.rows
        ],
        [
            (zero != wanted.zero) + (shard != wanted.shard) / 2 + (reshard != wanted.reshard) / 4
            for zero, shard, reshard in choices.sharing
        ],
        [float(recompute != wanted.recompute) for recompute in choices.recomputes],
        [float(on != wanted.sequence_parallel) for on in choices.sequence_parallel],
        [float(kind != wanted.cp_type) for kind in choices.cp_types],
        [float(offload != wanted.offload) for offload in choices.offloads],
    )
    whole = sum(_along(costs, axis, len(along)) for axis, costs in enumerate(along)) + _along(
        distance, len(along), len(along)
    )
    found = grid.best(grid.legal, whole, 1)
    return _placed(grid, found[0]) if found else None


def legal_degrees(grid: Grid, wanted: Layout) -> dict[str, list[int]]:
    """What degrees can be where the `wanted` one is in no legal layout of the grid; cp with the way to share that is wanted.

    dp is left out, which is what the others leave.
    """
    shared = grid.legal
    if wanted.cp > 1 and wanted.cp_type in grid.candidates.cp_types:
        shared = shared.take([grid.candidates.cp_types.index(wanted.cp_type)], axis=CONTEXT_AXIS)
    found = {}
    for name, degrees in grid.degrees.items():
        legal = shared if name == "cp" else grid.legal
        some = legal.any(axis=tuple(range(legal.ndim - 1)))
        found[name] = sorted({int(degree) for degree in degrees[some]}) if name != "dp" else []
    return {name: known for name, known in found.items() if known and getattr(wanted, name) not in known}


def _placed(grid: Grid, index: Sequence[int]) -> Layout:
    """The layout at a position as it would be placed if nothing were said: in the default order, or the fastest on a torus."""
    if grid.workload.machine.is_torus:
        return grid.settled(index)
    near = grid.layout(index, "")
    return replace(near, placement=default_placement(near.cp))


def changes_that_fit(grid: Grid, wanted: Layout, most: int) -> list[Change]:
    """The fastest layouts that fit with the fewest kinds of changes from `wanted`, one for each choice of kinds.

    A kind is the micro-batch, the schedule with its chunks, ZeRO, recomputation, how the model is split over ranks, or what hosts
    keep. None when nothing fits.
    """
    import numpy as np

    choices = grid.candidates
    axes = len(choices.shape)
    others = [degrees != getattr(wanted, name) for name, degrees in grid.degrees.items()]
    split = _along(np.any(others, axis=0), axes, axes)
    split = split | _along([on != wanted.sequence_parallel for on in choices.sequence_parallel], 4, axes)
    split = split | _along([kind != wanted.cp_type for kind in choices.cp_types], CONTEXT_AXIS, axes)
    kinds = (
        _along([size != wanted.micro_batch_size for size in choices.micro_batches], 0, axes),
        _along(
            [found != (wanted.schedule, wanted.virtual_stages, Stages.of(wanted)) for found in choices.rows], 1, axes
        ),
        _along([shared != (wanted.zero, wanted.shard, wanted.reshard) for shared in choices.sharing], 2, axes),
        _along([recompute != wanted.recompute for recompute in choices.recomputes], 3, axes),
        split,
        _along([offload != wanted.offload for offload in choices.offloads], 6, axes),
    )
    for few in range(1, len(kinds) + 1):
        positions = []
        for changed in combinations(range(len(kinds)), few):
            where = grid.fits
            for number, differs in enumerate(kinds):
                where = where & (differs if number in changed else ~differs)
            positions += grid.best(where, grid.step_time, 1)
        if positions:
            positions.sort(key=lambda index: float(grid.step_time[index]))
            return [_change(grid, wanted, index, few) for index in positions[:most]]
    return []


def _change(grid: Grid, wanted: Layout, index: tuple[int, ...], kinds: int) -> Change:
    layout = grid.settled(index)
    before = wanted.without_placement.split()
    after = layout.without_placement.split()
    words = [word for word in after if word not in before]
    left = {word.split("=")[0] for word in before} - {word.split("=")[0] for word in after} - {"cp", "cp_type"}
    told = words + (["without", *sorted(left)] if left else [])
    return Change(layout, " ".join(told), float(grid.step_time[index]), float(grid.device_used[index]), kinds)


def _along(values: Sequence[float] | NDArray[Any], axis: int, axes: int) -> NDArray[Any]:
    """Values along one of the axes of a grid, the last of which is that of the degrees."""
    import numpy as np

    shape = [1] * (axes + 1)
    shape[axis] = -1
    return np.asarray(values).reshape(shape)
