"""The search: every placement times every candidate, time and memory both, and the best of them.

The rules are judged first, on degrees; points that none of them rejects are worked out in parts, each one pass over a table of
placements. Memory is decided on the rows of degrees; the time is reduced over the placements of each tuple of degrees, which
leaves a small array to pick from. No layout is left out by rules of thumb.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING, Any

from costmodel.catalog.catalog import Catalog
from costmodel.runtime import Run, Table, keep_freed_memory
from costmodel.runtime_parts import PartRun
from costmodel.search.candidates import Candidates, only
from costmodel.search.layout import Layout
from costmodel.search.possible import Judged, Part, judged, parts, squeezed
from costmodel.search.workload import Workload, scalar_inputs
from costmodel.topology.frameworks import BEST
from costmodel.topology.placements import PlacementTable, reached

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

THREADS = 4
SIZES = ("step_time", "allocated", "device_used")
"""What is kept of every legal layout."""


@dataclass(frozen=True)
class Grid:
    """All layouts of a search, reduced over placements: arrays over the product axes of the candidates and the tuples of degrees.

    `step_time` is that of the best placement; it does not look at memory. Time and memory are infinite where a rule is broken.
    `order` holds the rows of the table of placements whose degrees have a legal layout, sorted by degrees, and `rows_of` numbers
    their tuples of degrees. `broken` counts, for each rule, the layouts that broke it first. Of the layouts `searched`, time and
    memory of those `evaluated` were worked out: the rules let no other pass, or the search was interrupted after this `share`.
    """

    workload: Workload
    candidates: Candidates
    scalars: Mapping[str, float]
    placed: PlacementTable
    order: NDArray[np.int64]
    rows_of: NDArray[np.int64]
    step_time: Array
    allocated: Array
    device_used: Array
    legal: NDArray[np.bool_]
    host_left: Array
    broken: dict[str, int]
    searched: int
    evaluated: int
    share: float = 1.0

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Where a layout is legal and surely fits the memory, of the chip and of its host."""
        return self.legal & (self.device_used <= self.capacity) & (self.host_left >= 0)

    @property
    def capacity(self) -> float:
        """Bytes of memory on a chip."""
        return self.workload.machine.chip.memory_capacity.value

    def count(self, where: NDArray[np.bool_]) -> int:
        """How many layouts of the full grid, each placement counted, a condition on degrees holds for."""
        import numpy as np

        weight = np.bincount(self.rows_of)
        return int((where.sum(axis=tuple(range(where.ndim - 1))) * weight).sum())

    @cached_property
    def degrees(self) -> dict[str, Array]:
        """The degree of each axis, one a tuple."""
        import numpy as np

        first = np.flatnonzero(np.diff(self.rows_of, prepend=-1))
        return {name: self.placed.columns[name][self.order][first] for name in self.workload.degrees}

    def layout(self, index: Sequence[int], placement: str) -> Layout:
        """The layout at a position, with a placement."""
        *point, tuple_of_degrees = index
        return self.candidates.layout(point, {name: d[tuple_of_degrees] for name, d in self.degrees.items()}, placement)

    def settled(self, index: Sequence[int]) -> Layout:
        """The layout at a position, on the fastest of its placements."""
        import numpy as np

        rows = self.order[np.flatnonzero(self.rows_of == index[-1])]
        return fastest(self.workload, self.layout(index, ""), self.scalars, self.placed, rows)

    def best(self, where: NDArray[np.bool_], key: Array, most: int) -> list[tuple[int, ...]]:
        """Positions of the smallest values of `key` where a condition holds, smallest first; of equals the one with less memory."""
        import numpy as np

        values = np.where(where, key, np.inf).ravel()
        few = min(most, values.size)
        limit = np.partition(values, few - 1)[few - 1]
        near = np.flatnonzero(values <= limit)
        near = near[np.lexsort((self.device_used.ravel()[near], values[near]))][:few]
        return [tuple(map(int, np.unravel_index(i, where.shape))) for i in near if np.isfinite(values[i])]

    def front(self, least: float, most: int) -> list[tuple[int, ...]]:
        """Positions that fit and that no other beats in both step time and memory, fastest first.

        Of those whose step times differ by less than the share `least` the fastest stays; `most` of them at most.
        """
        import numpy as np

        where = np.flatnonzero(self.fits.ravel())
        if not len(where):
            return []
        times, sizes = self.step_time.ravel()[where], self.device_used.ravel()[where]
        order = np.lexsort((sizes, times))
        lightest = np.minimum.accumulate(sizes[order])
        shown: list[int] = []
        for i in order[np.flatnonzero(np.diff(lightest, prepend=np.inf) < 0)]:
            if not shown or times[i] > times[shown[-1]] * (1 + least):
                shown.append(int(i))
        return [tuple(map(int, np.unravel_index(where[i], self.fits.shape))) for i in shown[:most]]


def search(
    workload: Workload,
    catalog: Catalog,
    candidates: Candidates,
    progress: Callable[[float], None] = lambda _: None,
    *,
    placement: str = BEST,
    all_levels: bool = False,
    so_far: bool = False,
) -> Grid:
    """Evaluate every layout of the candidates on the machine; `progress` is told the share that is done.

    `placement` leaves those that a framework, an order or a placement reaches, and `all_levels` tells placements apart even
    where levels of the network have the same bandwidth. With `so_far` an interrupt leaves what was evaluated before it, unless that
    is nothing.
    """
    import numpy as np

    keep_freed_memory()
    placed = reached(placement, workload.machine, limits=candidates.limits, all_levels=all_levels)
    if workload.has_experts:
        placed = placed.with_experts(candidates.experts, candidates.etp)
    scalars = scalar_inputs(workload, catalog)
    found = judged(workload, placed, {**scalars, **candidates.inputs()}, candidates.shape)
    order, rows_of, passing = _ordered(found)
    arrays = {name: np.full((*candidates.shape, passing[0].shape[1]), np.inf) for name in SIZES}
    legal = np.zeros((*candidates.shape, passing[0].shape[1]), bool)
    module = generated(workload, candidates)
    table = Table({name: placed.columns[name][order] for name in _columns(module, placed)})
    some = tuple(np.flatnonzero(passes.any(axis=1)) for passes in passing)
    own = candidates.subset(rows.tolist() for rows in some)
    whole = Run(module, table, {**scalars, **own.inputs()}).shared()
    runs = [_Started(whole, some, part, rows_of) for part in parts(passing, np.bincount(rows_of))]
    possible = sum(run.points for run in runs)
    done: list[int] = []

    def timed(block: tuple[_Started, slice]) -> None:
        started, rows = block
        done.append(started.times(rows, arrays["step_time"]))

    # numpy works outside the interpreter's lock, so threads share the parts and their blocks; no two write the same points.
    try:
        with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as threads:
            list(threads.map(lambda run: run.on_degrees(arrays, legal), runs))
            blocks = [(run, rows) for run in runs for rows in run.blocks()]
            for _ in threads.map(timed, blocks):
                progress(sum(done) / possible)
    except KeyboardInterrupt:
        legal &= np.isfinite(arrays["step_time"])
        if not so_far or not legal.any():
            raise
    arrays["step_time"][~legal] = np.inf
    return Grid(
        workload=workload,
        candidates=candidates,
        scalars=scalars,
        placed=placed,
        order=order,
        rows_of=rows_of,
        **arrays,
        legal=legal,
        host_left=_host_left(workload, candidates, placed, scalars, order, rows_of),
        broken=found.broken,
        searched=int(np.prod(candidates.shape)) * len(placed),
        evaluated=sum(done),
        share=sum(done) / possible if possible else 1.0,
    )


class _Started:
    """One part of a search: its points worked out on degrees, then on placements block by block."""

    def __init__(self, whole: Run, some: Sequence[NDArray[np.int64]], part: Part, rows_of: NDArray[np.int64]) -> None:
        import numpy as np

        mine = np.flatnonzero(np.isin(rows_of, part.tuples))
        self.tuples = np.searchsorted(part.tuples, rows_of[mine])
        self.starts = np.flatnonzero(np.diff(self.tuples, prepend=-1))
        self.part = part
        self.run = PartRun(whole, mine, [np.searchsorted(*rows) for rows in zip(some, part.kept, strict=True)])
        self.each = prod(len(kept) for kept in part.kept)
        self.points = self.each * len(mine)

    def on_degrees(self, arrays: Mapping[str, Array], legal: NDArray[np.bool_]) -> None:
        """All levels but the last; memory and legality are decided there, and written where they belong."""
        import numpy as np

        self.run.coarse()
        place = place_of(*self.part.kept, self.part.tuples)
        shape = tuple(len(kept) for kept in (*self.part.kept, self.part.tuples))
        where = np.broadcast_to(self._of_tuples("legal") > 0, shape)
        legal[place] = where
        for name in SIZES[1:]:
            arrays[name][place] = np.where(where, np.broadcast_to(self._of_tuples(name), shape), np.inf)

    def _of_tuples(self, name: str) -> Array:
        """A quantity of degrees in the order of the part's tuples."""
        values, level = squeezed(self.run.values[name]), self.run.module.LEVEL[name]
        if values.shape[-1] == 1:
            return values
        found: Array = values.take(self.run.index(level, self.run.finest)[self.starts], axis=-1)
        return found

    def blocks(self) -> list[slice]:
        """Rows of placements that are worked out together."""
        return self.run.cut(self.starts.tolist())

    def times(self, rows: slice, least: Array) -> int:
        """The step time of the fastest placement of each tuple of degrees in these rows, written where it belongs."""
        import numpy as np

        inside = self.starts[(self.starts >= rows.start) & (self.starts < rows.stop)]
        tuples = self.part.tuples[self.tuples[inside]]
        sliced = self.run.module.ORDER.index(self.run.module.SLICED)
        for at, found in self.run.slices(rows):
            kept = [*self.part.kept]
            kept[sliced] = kept[sliced][at]
            times = squeezed(found["step_time"])
            whole = np.broadcast_to(times, (*map(len, kept), rows.stop - rows.start))
            least[place_of(*kept, tuples)] = np.minimum.reduceat(whole, inside - rows.start, axis=-1)
        return self.each * int(rows.stop - rows.start)


def place_of(*rows: NDArray[np.int64]) -> tuple[Any, ...]:
    """The index of these rows of each axis; as slices where they can be said so, which numpy writes to far faster."""
    import numpy as np

    said = [_evenly(one) for one in rows]
    if sum(one is None for one in said) > 1:
        return np.ix_(*rows)
    return tuple(one if even is None else even for one, even in zip(rows, said, strict=True))


def _evenly(rows: NDArray[np.int64]) -> slice | None:
    """The slice that holds these rows, which rise, or nothing where their steps differ."""
    step = int(rows[1] - rows[0]) if len(rows) > 1 else 1
    even = bool((rows[1:] - rows[:-1] == step).all())
    return slice(int(rows[0]), int(rows[-1]) + 1, step) if even else None


def fastest(
    workload: Workload,
    layout: Layout,
    scalars: Mapping[str, float],
    placed: PlacementTable,
    rows: NDArray[np.int64],
) -> Layout:
    """The layout on the fastest of these rows of a table of placements, all of which have its degrees."""
    import numpy as np

    alone = only(layout)
    module = generated(workload, alone)
    table = Table({name: placed.columns[name][rows] for name in _columns(module, placed)})
    run = Run(module, table, {**scalars, **alone.inputs()}).coarse()
    times = np.concatenate([squeezed(out["step_time"]).ravel() for _, out in run.blocks()])
    return replace(layout, placement=str(placed.placement(int(rows[times.argmin()]))))


def _host_left(
    workload: Workload,
    candidates: Candidates,
    placed: PlacementTable,
    scalars: Mapping[str, float],
    order: NDArray[np.int64],
    rows_of: NDArray[np.int64],
) -> Array:
    """What is left of a host's memory, or of its drives, for each tuple of degrees; all of it where nothing is kept there."""
    import numpy as np

    from costmodel.generated import host_memory_numpy

    if not candidates.hosted:
        return np.zeros((1,) * (len(candidates.shape) + 1))
    first = np.flatnonzero(np.diff(rows_of, prepend=-1))
    degrees = Table({name: placed.columns[name][order][first] for name in workload.degrees})
    run = Run(host_memory_numpy, degrees, {**scalars, **candidates.inputs()}).coarse()
    left = np.empty((*candidates.shape, len(first)))
    for rows, found in run.blocks():
        left[..., rows] = squeezed((run.values | found)["host_left"])
    return left


def generated(workload: Workload, candidates: Candidates) -> ModuleType:
    """The numpy module of the training equations for the kind of machine and model.

    Where hosts may keep something, modules predict further tokens or what is run again is named, it is the one that takes none of
    these for granted.
    """
    whole = candidates.is_rare or workload.multi_token_modules > 0
    kind = f"{workload.machine.fabric}_with_hosts" if whole else workload.kind
    return import_module(f"costmodel.generated.training_on_{kind}_numpy")


def _columns(module: ModuleType, placed: PlacementTable) -> list[str]:
    """The columns that a module takes of a table of placements, which has none of experts where the model has none."""
    return [name for name in module.LEVELS["layouts"] if name in placed.columns]


def _ordered(found: Judged) -> tuple[NDArray[np.int64], NDArray[np.int64], tuple[NDArray[np.bool_], ...]]:
    """The placements whose degrees have a legal layout, those of equal degrees together; each one's number of degrees.

    Beside them what passes of each product axis, for the tuples of degrees that are left.
    """
    import numpy as np

    left = found.possible
    order = np.argsort(found.numbers, kind="stable")
    order = order[left[found.numbers][order]]
    numbers = (np.cumsum(left) - 1)[found.numbers[order]]
    return order, numbers, tuple(passes[:, left] for passes in found.passing)
