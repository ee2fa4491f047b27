"""The search: every placement times every candidate, time and memory both, and the best of them.

One pass over a table of placements. Legality and memory are decided on the rows of degrees and enter the time as a mask of
zeros and infinities; the time is then reduced over the placements of each tuple of degrees, which leaves a small array to pick
from. No layout is left out by rules of thumb.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from costmodel.catalog.catalog import Catalog
from costmodel.runtime import Run, Table
from costmodel.search.candidates import Candidates, only
from costmodel.search.layout import Layout
from costmodel.search.workload import Workload, scalar_inputs
from costmodel.topology.frameworks import BEST
from costmodel.topology.placements import PlacementTable, reached

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

THREADS = 4
PRODUCT_AXES = 7  # of the candidates; the axes inside a layer, a stage or a step are reduced by then


@dataclass(frozen=True)
class Grid:
    """All layouts of a search, reduced over placements: arrays over the product axes of the candidates and the tuples of degrees.

    `step_time` is that of the best placement, infinite where a rule is broken; it does not look at memory. `order` holds the rows
    of the table of placements whose degrees have a legal layout, sorted by degrees, and `rows_of` numbers their tuples of degrees.
    `broken` counts, for each rule, the layouts that broke it first. Of the layouts `searched`, time and memory of those `evaluated`
    were worked out: the others stand on degrees that no rule lets pass.
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
) -> Grid:
    """Evaluate every layout of the candidates on the machine; `progress` is told the share that is done.

    `placement` leaves those that a framework, an order or a placement reaches, and `all_levels` tells placements apart even
    where levels of the network have the same bandwidth.
    """
    import numpy as np

    module = generated(workload, candidates)
    placed = reached(placement, workload.machine, limits=candidates.limits, all_levels=all_levels)
    if workload.has_experts:
        placed = placed.with_experts(candidates.experts, candidates.etp)
    inputs = {**scalar_inputs(workload, catalog), **candidates.inputs()}
    possible, broken = _judged(workload, placed, inputs, candidates.shape)
    table, order, rows_of = _ordered(workload, placed, module, possible)
    run = Run(module, table, inputs).coarse()
    shape = (*candidates.shape, int(rows_of.max()) + 1)
    legal = np.broadcast_to(_squeezed(run.values["legal"]) > 0, shape)
    step_time = _least(run, rows_of, shape, progress)
    step_time[~legal] = np.inf
    return Grid(
        workload=workload,
        candidates=candidates,
        scalars=scalar_inputs(workload, catalog),
        placed=placed,
        order=order,
        rows_of=rows_of,
        step_time=step_time,
        allocated=np.broadcast_to(_squeezed(run.values["allocated"]), shape),
        device_used=np.broadcast_to(_squeezed(run.values["device_used"]), shape),
        legal=legal,
        host_left=_host_left(workload, candidates, placed, inputs, order, rows_of),
        broken=broken,
        searched=int(np.prod(candidates.shape)) * len(placed),
        evaluated=int(np.prod(candidates.shape)) * table.size,
    )


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
    times = np.concatenate([_squeezed(out["step_time"]).ravel() for _, out in run.blocks()])
    return replace(layout, placement=str(placed.placement(int(rows[times.argmin()]))))


def _least(run: Run, rows_of: NDArray[np.int64], shape: tuple[int, ...], progress: Callable[[float], None]) -> Array:
    """The step time of the fastest placement of each tuple of degrees."""
    import numpy as np

    starts = np.flatnonzero(np.diff(rows_of, prepend=-1))
    least = np.empty(shape)

    def evaluate(rows: slice) -> int:
        inside = starts[(starts >= rows.start) & (starts < rows.stop)] - rows.start
        times = np.minimum.reduceat(_squeezed(run.block(rows)["step_time"]), inside, axis=-1)
        least[..., rows_of[rows.start] : rows_of[rows.stop - 1] + 1] = times
        return int(rows.stop - rows.start)

    done = 0
    # numpy works outside the interpreter's lock, so threads share the blocks; no two write the same tuples.
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as threads:
        for rows in threads.map(evaluate, run.cut(starts.tolist())):
            done += rows
            progress(done / len(rows_of))
    return least


def _judged(
    workload: Workload, placed: PlacementTable, inputs: Mapping[str, Any], shape: tuple[int, ...]
) -> tuple[NDArray[np.bool_], dict[str, int]]:
    """The placements whose degrees have a legal layout, and for each rule how many layouts it was the first to reject.

    The first placement stays where none has one, so that there is a grid to speak of.
    """
    import numpy as np

    module = import_module(f"costmodel.generated.legality{'_with_experts' if workload.has_experts else ''}_numpy")
    degrees = Table({name: placed.columns[name] for name in workload.degrees})
    first, numbers = degrees.unique(workload.degrees)
    run = Run(module, Table({name: values[first] for name, values in degrees.columns.items()}), inputs).coarse()
    weight, product = np.bincount(numbers), tuple(range(PRODUCT_AXES))
    broken = {module.MEANING[rule]: 0 for rule in rules(module)}
    possible = np.empty(len(first), bool)
    for rows, found in run.blocks():
        judged = run.values | found
        standing = np.ones((*shape, rows.stop - rows.start), bool)
        for rule in rules(module):
            holds = _squeezed(judged[rule]) > 0
            failing = (standing & ~holds).sum(axis=product)
            broken[module.MEANING[rule]] += int((failing * weight[rows]).sum())
            standing = standing & holds
        possible[rows] = standing.any(axis=product)
    possible[0] |= not possible.any()
    return possible[numbers], broken


def _host_left(
    workload: Workload,
    candidates: Candidates,
    placed: PlacementTable,
    inputs: Mapping[str, Any],
    order: NDArray[np.int64],
    rows_of: NDArray[np.int64],
) -> Array:
    """What is left of a host's memory, or of its drives, for each tuple of degrees; all of it where nothing is kept there."""
    import numpy as np

    from costmodel.generated import host_memory_numpy

    if not candidates.hosted:
        return np.zeros((1,) * (PRODUCT_AXES + 1))
    first = np.flatnonzero(np.diff(rows_of, prepend=-1))
    degrees = Table({name: placed.columns[name][order][first] for name in workload.degrees})
    run = Run(host_memory_numpy, degrees, inputs).coarse()
    shape = (*candidates.shape, len(first))
    left = np.empty(shape)
    for rows, found in run.blocks():
        left[..., rows] = _squeezed((run.values | found)["host_left"])
    return left


def generated(workload: Workload, candidates: Candidates) -> ModuleType:
    """The numpy module of the training equations for the kind of machine and model, or for hosts that may keep something."""
    kind = f"{workload.machine.fabric}_with_hosts" if candidates.hosted else workload.kind
    return import_module(f"costmodel.generated.training_on_{kind}_numpy")


def rules(module: ModuleType) -> list[str]:
    """The rules of legality, in the order in which the first broken one is named."""
    return [name for name in module.MEANING if name.startswith("rule_")]


def _ordered(
    workload: Workload, placed: PlacementTable, module: ModuleType, kept: NDArray[np.bool_]
) -> tuple[Table, NDArray[np.int64], NDArray[np.int64]]:
    """The table of the placements that are kept, those of equal degrees together; their rows, and each one's number of degrees."""
    import numpy as np

    degrees = Table({name: placed.columns[name] for name in workload.degrees})
    numbers = degrees.unique(workload.degrees)[1]
    order = np.argsort(numbers, kind="stable")
    order = order[kept[order]]
    numbers = np.unique(numbers[order], return_inverse=True)[1]
    return Table({name: placed.columns[name][order] for name in _columns(module, placed)}), order, numbers


def _columns(module: ModuleType, placed: PlacementTable) -> list[str]:
    """The columns that a module takes of a table of placements, which has none of experts where the model has none."""
    return [name for name in module.LEVELS["layouts"] if name in placed.columns]


def _squeezed(values: Array) -> Array:
    """A quantity over the product axes of the candidates and its rows; the other axes have been reduced."""
    return values.reshape(*values.shape[:PRODUCT_AXES], values.shape[-1])
