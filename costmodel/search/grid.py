"""The search: every placement times every candidate, time and memory both, and the best of them.

One pass over a table of placements. Legality and memory are decided on the rows of degrees and enter the time as a mask of
zeros and infinities; the time is then reduced over the placements of each tuple of degrees, which leaves a small array to pick
from. No layout is left out by rules of thumb.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from costmodel.catalog.catalog import Catalog
from costmodel.runtime import Run, Table
from costmodel.search.candidates import LIMITS, Candidates
from costmodel.search.layout import Layout
from costmodel.search.workload import Workload, scalar_inputs
from costmodel.topology.placements import PlacementTable, placements

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

DEGREES = ("tp", "pp", "dp")
PRODUCT_AXES = 5  # of the candidates; the axes inside a layer, a stage or a step are reduced by then


@dataclass(frozen=True, slots=True)
class Point:
    """One layout of the grid with what the search knows of it."""

    layout: Layout
    step_time_s: float
    allocated_bytes: float
    device_used_bytes: float


@dataclass(frozen=True)
class Grid:
    """All layouts of a search, reduced over placements: arrays over the product axes of the candidates and the tuples of degrees.

    `step_time` is that of the best placement, infinite where a rule is broken; it does not look at memory.
    """

    workload: Workload
    candidates: Candidates
    placed: PlacementTable
    rows_of: NDArray[np.int64]
    step_time: Array
    allocated: Array
    device_used: Array
    legal: NDArray[np.bool_]
    broken: dict[str, int]
    searched: int

    @property
    def fits(self) -> NDArray[np.bool_]:
        """Where a layout is legal and surely fits the memory."""
        return self.legal & (self.device_used <= self.capacity)

    @property
    def capacity(self) -> float:
        """Bytes of memory on a chip."""
        return self.workload.machine.chip.memory_capacity.value

    def count(self, where: NDArray[np.bool_]) -> int:
        """How many layouts of the full grid, each placement counted, a condition on degrees holds for."""
        import numpy as np

        weight = np.bincount(self.rows_of)
        return int((where.sum(axis=tuple(range(where.ndim - 1))) * weight).sum())

    def best(self, where: NDArray[np.bool_], key: Array, most: int) -> list[tuple[int, ...]]:
        """Positions of the smallest values of `key` where a condition holds, smallest first."""
        import numpy as np

        values = np.where(where, key, np.inf).ravel()
        few = min(most, values.size)
        near = np.argpartition(values, few - 1)[:few] if few < values.size else np.arange(values.size)
        near = near[np.argsort(values[near], kind="stable")]
        return [tuple(map(int, np.unravel_index(i, where.shape))) for i in near if np.isfinite(values[i])]


def search(
    workload: Workload,
    catalog: Catalog,
    candidates: Candidates,
    progress: Callable[[float], None] = lambda _: None,
) -> Grid:
    """Evaluate every layout of the candidates on the machine; `progress` is told the share that is done."""
    import numpy as np

    module = generated(workload)
    placed = placements(workload.machine, limits=LIMITS)
    table, rows_of = _ordered(placed, module)
    run = Run(module, table, {**scalar_inputs(workload, catalog), **candidates.inputs()}).coarse()
    shape = (*candidates.shape, int(rows_of.max()) + 1)
    legal = np.broadcast_to(_squeezed(run.values["legal"]) > 0, shape)
    broken = {}
    standing = np.ones(shape, bool)
    weight = np.bincount(rows_of)
    for rule in rules(module):
        level = module.LEVEL[rule]
        holds = _squeezed(run.values[rule])
        if holds.shape[-1] > 1:
            holds = holds.take(run.index(level, "by_degrees"), axis=-1)
        failing = standing & (holds <= 0)
        broken[module.MEANING[rule]] = int((failing.sum(axis=(0, 1, 2, 3, 4)) * weight).sum())
        standing &= holds > 0
    step_time = np.empty(shape)
    done = 0
    for block, segments, out in _blocks(run, rows_of):
        least = np.minimum.reduceat(_squeezed(out["step_time"]), segments, axis=-1)
        step_time[..., rows_of[block.start] : rows_of[block.stop - 1] + 1] = least
        done += block.stop - block.start
        progress(done / table.size)
    step_time[~legal] = np.inf
    return Grid(
        workload,
        candidates,
        placed,
        rows_of,
        step_time,
        np.broadcast_to(_squeezed(run.values["allocated"]), shape),
        np.broadcast_to(_squeezed(run.values["device_used"]), shape),
        legal,
        broken,
        int(np.prod(candidates.shape)) * table.size,
    )


def generated(workload: Workload) -> ModuleType:
    """The numpy module of the training equations for the kind of machine."""
    if workload.machine.is_torus:
        from costmodel.generated import training_on_torus_numpy as module
    else:
        from costmodel.generated import training_on_switches_numpy as module
    return module


def rules(module: ModuleType) -> list[str]:
    """The rules of legality, in the order in which the first broken one is named."""
    return [name for name in module.MEANING if name.startswith("rule_")]


def _ordered(placed: PlacementTable, module: ModuleType) -> tuple[Table, NDArray[np.int64]]:
    """The table with the rows of equal degrees together, and for each row the number of its tuple of degrees."""
    import numpy as np

    degrees = Table({name: placed.columns[name] for name in DEGREES})
    numbers = degrees.unique(DEGREES)[1]
    order = np.argsort(numbers, kind="stable")
    used = module.LEVELS["layouts"]
    return Table({name: placed.columns[name][order] for name in used}), numbers[order]


def _blocks(run: Run, rows_of: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[np.int64], dict[str, Array]]]:
    """The finest level in blocks of whole tuples of degrees: the rows, where each tuple starts among them, the quantities."""
    import numpy as np

    starts = np.flatnonzero(np.diff(rows_of, prepend=-1))
    for block, out in run.blocks(starts):
        inside = starts[(starts >= block.start) & (starts < block.stop)]
        yield block, inside - block.start, out


def _squeezed(values: Array) -> Array:
    """A quantity over the product axes of the candidates and its rows; the other axes have been reduced."""
    return values.reshape(*values.shape[:PRODUCT_AXES], values.shape[-1])
