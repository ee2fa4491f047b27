"""Which points of a search can be legal at all: judged first, and cut into parts that hold few others.

The rules look at degrees and choices alone. Of a tuple of degrees they let pass some rows of each product axis: one stage has one
schedule, tensor-parallel ranks with experts have sequence parallelism. Tuples of degrees that let much the same pass are worked
out together, on those rows of the axes alone. Nothing that a rule lets pass is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from costmodel.runtime import Run, Table
from costmodel.search.workload import Workload
from costmodel.topology.placements import PlacementTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PRODUCT_AXES = 7  # of the candidates; the axes inside a layer, a stage or a step are reduced by then
APART = (1, 2, 4, 5)
"""The product axes by which tuples of degrees are told apart: schedules, sharing, sequence and context parallelism."""
PART_POINTS = 100_000
"""Points that cost as much as one more part: the statements of its own levels, each on next to nothing."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the rules say of each tuple of degrees of a table of placements.

    `numbers` is the tuple of each placement; `passing` holds for each product axis which of its rows stand in a legal layout of
    each tuple; `broken` counts for each rule the layouts that broke it first, every placement counted.
    """

    numbers: NDArray[np.int64]
    passing: tuple[NDArray[np.bool_], ...]
    broken: dict[str, int]

    @property
    def possible(self) -> NDArray[np.bool_]:
        """The tuples that have a legal layout."""
        import numpy as np

        return np.asarray(self.passing[0].any(axis=0))


@dataclass(frozen=True, slots=True)
class Part:
    """Tuples of degrees, by number, and the rows of each product axis that are worked out for them."""

    tuples: NDArray[np.int64]
    kept: tuple[NDArray[np.int64], ...]


def judged(workload: Workload, placed: PlacementTable, inputs: Mapping[str, Any], shape: tuple[int, ...]) -> Judged:
    """Every rule on every tuple of degrees.

    Where none has a legal layout, the first point of the first tuple stays, so that there is a grid to speak of.
    """
    import numpy as np

    module = import_module(f"costmodel.generated.legality{'_with_experts' if workload.has_experts else ''}_numpy")
    degrees = Table({name: placed.columns[name] for name in workload.degrees})
    first, numbers = degrees.unique(workload.degrees)
    run = Run(module, Table({name: values[first] for name, values in degrees.columns.items()}), inputs).coarse()
    weight, product = np.bincount(numbers), tuple(range(PRODUCT_AXES))
    broken = {module.MEANING[rule]: 0 for rule in rules(module)}
    passing = tuple(np.zeros((size, len(first)), bool) for size in shape)
    for rows, found in run.blocks():
        values = run.values | found
        # Over the axes that some rule has looked at so far: the others have the same row again and again.
        standing = np.ones((*(1 for _ in shape), rows.stop - rows.start), bool)
        left = weight[rows] * prod(shape)
        for rule in rules(module):
            standing = standing & (squeezed(values[rule]) > 0)
            before, left = left, weight[rows] * _count(standing, shape)
            broken[module.MEANING[rule]] += int((before - left).sum())
        for axis, passes in enumerate(passing):
            passes[:, rows] = standing.any(axis=tuple(other for other in product if other != axis))
    if not passing[0].any():
        for passes in passing:
            passes[0, 0] = True
    return Judged(numbers, passing, broken)


def _count(standing: NDArray[np.bool_], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """How many points of the whole shape stand in each column."""
    import numpy as np

    columns = standing.reshape(-1, standing.shape[-1])
    times = prod(size for size, own in zip(shape, standing.shape, strict=False) if own == 1)
    counted: NDArray[np.int64] = np.add.reduce(columns, axis=0, dtype=np.int64) * times
    return counted


def parts(passing: tuple[NDArray[np.bool_], ...], placements: NDArray[np.int64]) -> Iterator[Part]:
    """The tuples of degrees that have a legal layout, in parts; `placements` counts those of each tuple.

    Tuples that let the same rows pass are together, and with others where working out what a rule rejects costs less than a part.
    """
    import numpy as np

    alike: dict[bytes, list[int]] = {}
    for tuple_of_degrees in np.flatnonzero(passing[0].any(axis=0)).tolist():
        key = b"".join(passing[axis][:, tuple_of_degrees].tobytes() for axis in APART)
        alike.setdefault(key, []).append(tuple_of_degrees)
    groups = [
        _Group(tuples, tuple(_bits(passes[:, tuples]) for passes in passing), int(placements[tuples].sum()))
        for tuples in alike.values()
    ]
    joined: list[_Group] = []
    for group in sorted(groups, key=lambda one: -one.points):
        saved = [(one.points + group.points + PART_POINTS - (one | group).points, i) for i, one in enumerate(joined)]
        most, at = max(saved, default=(0, 0))
        if most > 0:
            joined[at] |= group
        else:
            joined.append(group)
    for group in joined:
        tuples = np.array(sorted(group.tuples))
        yield Part(tuples, tuple(np.flatnonzero(passes[:, tuples].any(axis=1)) for passes in passing))


class _Group(NamedTuple):
    """Tuples of degrees, the rows of each axis that pass in some of them as bits, and their placements."""

    tuples: list[int]
    rows: tuple[int, ...]
    placements: int

    @property
    def points(self) -> int:
        return self.placements * prod(rows.bit_count() for rows in self.rows)

    def __or__(self, other: _Group) -> _Group:
        rows = tuple(one | another for one, another in zip(self.rows, other.rows, strict=True))
        return _Group(self.tuples + other.tuples, rows, self.placements + other.placements)


def _bits(passes: NDArray[np.bool_]) -> int:
    """The rows that pass in any column, a bit each."""
    return sum(1 << row for row, columns in enumerate(passes.tolist()) if any(columns))


def rules(module: ModuleType) -> list[str]:
    """The rules of legality, in the order in which the first broken one is named."""
    return [name for name in module.MEANING if name.startswith("rule_")]


def squeezed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A quantity over the product axes of the candidates and its rows; the other axes have been reduced."""
    return values.reshape(*values.shape[:PRODUCT_AXES], values.shape[-1])
