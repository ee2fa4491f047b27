"""The table of placements: every way to lay logical axes (tp, cp, dp, pp) on the dimensions of a machine, as columns of numbers.

A placement writes the size of each dimension as an ordered product over the logical axes. Inside a dimension they nest in the
order of `axes`, innermost first, so that the axis with the most traffic gets the links of its own.

Columns, one row a placement, all float64:
    tp, cp, dp, pp                 degrees
    domain_tp.., unit_tp..         on switches: members of a group in one fast domain, and in one unit
    tp_x, tp_stride_x, tp_ring_x   on a torus: size of the sub-axis along x, chips inside it, whether it closes; and y, z
    tp_slices                      on a torus: slices that a group spans
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import inf, prod
from operator import mul
from typing import TYPE_CHECKING

from costmodel.errors import InputError
from costmodel.topology import groups
from costmodel.topology.grammar import (
    AXES,
    Factors,
    Order,
    Placement,
    check_order,
    fill,
    filled,
    parse_placement,
    run_name,
)
from costmodel.topology.machine import AXIS_NAMES, Dimension, Machine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]
    Counts = NDArray[np.int64]

Run = tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class PlacementTable:
    """Placements of `axes` on `machine`: `columns` by name, and `factors[run, axis, row]` that they come from."""

    machine: Machine
    axes: tuple[str, ...]
    columns: dict[str, Column]
    runs: tuple[Run, ...]
    factors: Counts

    def __len__(self) -> int:
        return int(self.factors.shape[2])

    def placement(self, row: int) -> Placement:
        """The placement in that row, as it is written and read back."""
        parts: list[tuple[str, Factors]] = []
        for run, by_axis in zip(self.runs, self.factors[:, :, row].tolist(), strict=True):
            factors = tuple((axis, size) for axis, size in zip(self.axes, by_axis, strict=True) if size > 1)
            if factors:
                parts.append((run_name(self.machine, run), factors))
        return Placement(tuple(parts))


def placements(
    machine: Machine, axes: Sequence[str] = AXES, *, limits: Mapping[str, int] | None = None, all_levels: bool = False
) -> PlacementTable:
    """Every placement of `axes` on `machine` whose degrees keep to `limits`.

    Neighbouring levels of the network with the same bandwidth are filled together, since splitting them changes no
    bandwidth, unless `all_levels`. Of placements that differ only in which of several equal torus axes is which, one stays.
    """
    import numpy as np

    runs = _runs(machine, all_levels=all_levels)
    most = np.array([min((limits or {}).get(axis, inf), machine.chips) for axis in axes])
    tables = [
        np.array(_factorizations(prod(dimension.size for dimension in run), len(axes)), dtype=np.int64) for run in runs
    ]
    tables = [table[(table <= most).all(axis=1)] for table in tables]
    chosen: list[Counts] = []
    degrees = np.ones((1, len(axes)), dtype=np.int64)
    for place, table in enumerate(tables):
        before, here = (grid.ravel() for grid in np.indices((len(degrees), len(table))))
        product = degrees[before] * table[here]
        keep = (product <= most).all(axis=1)
        twin = _twin(machine, place)
        if twin is not None:
            keep &= here >= chosen[twin][before]
        chosen = [rows[before[keep]] for rows in chosen] + [here[keep]]
        degrees = product[keep]
    if not len(degrees):
        limited = ", ".join(f"{axis} up to {limit}" for axis, limit in (limits or {}).items())
        raise InputError(f"no placement on {machine.name_as_typed} keeps {limited}; allow more")
    factors = np.array([table[rows].T for table, rows in zip(tables, chosen, strict=True)])
    strides = np.ones_like(factors)
    strides[:, 1:] = np.cumprod(factors[:, :-1], axis=1)
    return PlacementTable(machine, tuple(axes), _columns(machine, axes, runs, factors, strides), runs, factors)


def members(
    order: str | Order | Placement, degrees: Mapping[str, int], machine: Machine, axes: Sequence[str] = AXES
) -> dict[str, float]:
    """The row of the table for one layout under a framework's order (`tp-dp-pp`) or a placement that is written out.

    An order is followed even where groups do not divide the domains or units of a switched machine: then the fewest
    members that a group has in one count. Raises InputError with the nearest legal choice when the layout does not fit.
    """
    import numpy as np

    wanted = {axis: degrees.get(axis, 1) for axis in axes}
    if min(wanted.values()) < 1:
        raise InputError(f"degrees are whole numbers from 1, not {min(wanted.values())}")
    placement = parse_placement(order, axes) if isinstance(order, str) else order
    if isinstance(placement, Order):
        numbered = placement
        check_order(numbered, wanted, machine)
        try:
            placement = fill(machine, numbered.axes, wanted)
        except InputError:
            if machine.is_torus:
                raise
            return _worst_members(numbered, wanted, machine)
    runs = filled(machine, placement, wanted)
    factors = np.ones((len(runs), len(axes), 1), dtype=np.int64)
    strides = np.ones_like(factors)
    for place, run in enumerate(runs):
        inside = 1
        for axis, size in run.factors:
            factors[place, axes.index(axis)], strides[place, axes.index(axis)] = size, inside
            inside *= size
    columns = _columns(machine, axes, [run.dimensions for run in runs], factors, strides)
    return {name: float(column[0]) for name, column in columns.items()}


def _worst_members(order: Order, degrees: Mapping[str, int], machine: Machine) -> dict[str, float]:
    row = {axis: float(degree) for axis, degree in degrees.items()}
    stride_by_axis = dict.fromkeys(degrees, 1) | dict(
        zip(order.axes, accumulate((degrees[axis] for axis in order.axes), mul, initial=1), strict=False)
    )
    for level, block in (("domain", machine.dimensions[0].size), ("unit", machine.unit)):
        for axis, degree in degrees.items():
            fewest = (
                degree if block >= machine.chips else groups.members_in_block(degree, stride_by_axis[axis], block)[0]
            )
            row[f"{level}_{axis}"] = float(fewest)
    return row


def _runs(machine: Machine, *, all_levels: bool) -> tuple[Run, ...]:
    """Dimensions that are filled together, inner first."""
    runs: list[Run] = []
    for dimension in machine.dimensions:
        inner = [other for other in runs[-1] if other.size > 1] if runs else []
        alike = (
            not inner
            or dimension.size == 1
            or (not all_levels and inner[-1].oversubscription == dimension.oversubscription)
        )
        if runs and alike and dimension.kind == runs[-1][-1].kind == "network":
            runs[-1] = (*runs[-1], dimension)
        else:
            runs.append((dimension,))
    return tuple(runs)


def _twin(machine: Machine, place: int) -> int | None:
    """An earlier torus axis that is like the one at `place` in everything but its name."""
    axis = machine.dimensions[place] if place < len(machine.fast) else None
    for earlier in range(place - 1, -1, -1):
        other = machine.dimensions[earlier]
        if axis is not None and (axis.size, axis.wrap) == (other.size, other.wrap):
            return earlier
    return None


@lru_cache(maxsize=256)
def _factorizations(size: int, axes: int) -> list[tuple[int, ...]]:
    """All tuples of `axes` factors with that product."""
    if axes == 1:
        return [(size,)]
    return [
        (first, *rest)
        for first in range(1, size + 1)
        if size % first == 0
        for rest in _factorizations(size // first, axes - 1)
    ]


def _columns(
    machine: Machine, axes: Sequence[str], runs: Sequence[Run], factors: Counts, strides: Counts
) -> dict[str, Column]:
    """The columns of the table from `factors` and `strides` [run, axis, row]."""
    import numpy as np

    degrees = factors.prod(axis=0)
    columns = {axis: degrees[place] for place, axis in enumerate(axes)}
    if machine.is_torus:
        columns |= _torus_columns(machine, axes, factors, strides)
    else:
        below, in_unit = 1, np.ones_like(degrees)
        for run, sizes, inside in zip(runs, factors, strides, strict=True):
            run_size = prod(dimension.size for dimension in run)
            room = max(1, min(run_size, machine.unit // below))
            # groups.members_in_block, on arrays: the fewest members in one block of `room` places.
            in_unit = in_unit * np.maximum(1, np.gcd(sizes * inside, room) // inside)
            below *= run_size
        columns |= {f"domain_{axis}": factors[0, place] for place, axis in enumerate(axes)}
        columns |= {f"unit_{axis}": in_unit[place] for place, axis in enumerate(axes)}
    return {name: column.astype(np.float64) for name, column in columns.items()}


def _torus_columns(machine: Machine, axes: Sequence[str], factors: Counts, strides: Counts) -> dict[str, Counts]:
    import numpy as np

    columns: dict[str, Counts] = {}
    one = np.ones(factors.shape[2], dtype=np.int64)
    for place, axis in enumerate(axes):
        for number, name in enumerate(AXIS_NAMES):
            size, stride, closes = one, one, one == 0
            if number < len(machine.fast):
                dimension = machine.dimensions[number]
                size, stride = factors[number, place], np.where(factors[number, place] > 1, strides[number, place], 1)
                closes = (size > 1) & (size * stride == dimension.size) & dimension.wrap
            columns |= {f"{axis}_{name}": size, f"{axis}_stride_{name}": stride, f"{axis}_ring_{name}": closes}
        columns[f"{axis}_slices"] = factors[-1, place] if machine.network else one
    return columns
