"""The table of placements: every way to lay logical axes (tp, cp, dp, pp) on the dimensions of a machine, as columns of numbers.

A placement writes the size of each dimension as an ordered product over the logical axes. Inside a dimension they nest in the
order of `axes`, innermost first, so that the axis with the most traffic gets the links of its own. `columns` says what the
equations make of each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from math import inf, prod
from operator import mul
from typing import TYPE_CHECKING

from costmodel.errors import InputError
from costmodel.topology import groups
from costmodel.topology.columns import Run, columns_of
from costmodel.topology.frameworks import BEST, MESHES, NAMES, by_name, mesh, order_by_name
from costmodel.topology.grammar import (
    AXES,
    Factors,
    Filled,
    Order,
    Placement,
    check_order,
    fill,
    filled,
    parse_placement,
    run_name,
)
from costmodel.topology.machine import Machine
from costmodel.topology.whereabouts import laid, parse_whereabouts, says_where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from costmodel.topology.columns import Column, Counts


@dataclass(frozen=True, slots=True)
class PlacementTable:
    """Placements of `axes` on `machine`: `columns` by name, and `factors` and `strides` [run, axis, row] that they come from."""

    machine: Machine
    axes: tuple[str, ...]
    columns: dict[str, Column]
    runs: tuple[Run, ...]
    factors: Counts
    strides: Counts

    def __len__(self) -> int:
        return int(self.factors.shape[2])

    def where(self, kept: NDArray[np.bool_]) -> PlacementTable:
        """The rows for which `kept` holds."""
        columns = {name: column[kept] for name, column in self.columns.items()}
        return replace(self, columns=columns, factors=self.factors[:, :, kept], strides=self.strides[:, :, kept])

    def with_experts(self, eps: Sequence[int], etp: int | None) -> PlacementTable:
        """Each row with every expert grid on the ranks of a stage: ep of `eps` and `etp`, or 1 and tp where that is None."""
        import numpy as np

        tp = self.columns["tp"]
        ranks = tp * self.columns["cp"] * self.columns["dp"]
        shared = [np.full(len(self), etp)] if etp is not None else [np.ones(len(self)), tp]
        parts = []
        for number, shares in enumerate(shared):
            for ep in eps:
                kept = ranks % (ep * shares) == 0
                if etp is None and number:
                    kept = kept & (tp > 1)
                rows = np.flatnonzero(kept)
                parts.append((rows, np.full(len(rows), float(ep)), shares[rows]))
        rows, ep_column, etp_column = (np.concatenate(some) for some in zip(*parts, strict=True))
        columns = {name: column[rows] for name, column in self.columns.items()} | {"ep": ep_column, "etp": etp_column}
        return replace(self, columns=columns, factors=self.factors[:, :, rows], strides=self.strides[:, :, rows])

    def placement(self, row: int) -> Placement:
        """The placement in that row, as it is written and read back."""
        parts: list[tuple[str, Factors]] = []
        for run, sizes, strides in zip(
            self.runs, self.factors[:, :, row].tolist(), self.strides[:, :, row].tolist(), strict=True
        ):
            used = sorted((s, axis, size) for s, axis, size in zip(strides, self.axes, sizes, strict=True) if size > 1)
            if used:
                parts.append((run_name(self.machine, run), tuple((axis, size) for _, axis, size in used)))
        return Placement(tuple(parts))


def placements(
    machine: Machine,
    axes: Sequence[str] = AXES,
    *,
    limits: Mapping[str, int] | None = None,
    all_levels: bool = False,
    mirrored: bool = False,
) -> PlacementTable:
    """Every placement of `axes` on `machine` whose degrees keep to `limits`.

    Neighbouring levels of the network with the same bandwidth are filled together, since splitting them changes no
    bandwidth, unless `all_levels`. Of placements that differ only in which of several equal torus axes is which, one stays,
    unless `mirrored`.
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
        twin = None if mirrored else _twin(machine, place)
        if twin is not None:
            keep &= here >= chosen[twin][before]
        chosen = [rows[before[keep]] for rows in chosen] + [here[keep]]
        degrees = product[keep]
    if not len(degrees):
        limited = ", ".join(f"{axis} up to {limit}" for axis, limit in (limits or {}).items())
        raise InputError(f"no placement on {machine.name_as_typed} keeps {limited}; allow more")
    return _nested(machine, axes, runs, np.array([table[rows].T for table, rows in zip(tables, chosen, strict=True)]))


def reached(
    by: str, machine: Machine, *, limits: Mapping[str, int] | None = None, all_levels: bool = False
) -> PlacementTable:
    """The placements that are reached by a name (a framework's, or `best` for all), an order, where axes lie, or the one written out.

    Orders leave out degrees with which an axis would end inside a dimension at a place that does not divide it, and JAX's
    meshes those that it refuses. A placement that is written out settles the degrees, whatever the limits, and so does one
    that says where axes lie. Raises InputError for anything that cannot be read, and when nothing is left.
    """
    import numpy as np

    if says_where(by):
        return agreeing(by, machine)
    if by == BEST:
        table = placements(machine, limits=limits, all_levels=all_levels)
        return _both_nestings(table) if machine.is_torus else table
    order = order_by_name(by, machine)
    if order is None and by in MESHES:
        every = placements(machine, limits=limits, mirrored=True)
        degrees = np.unique(every.factors.prod(axis=0), axis=1).T.tolist()
        found = [_factors_of_mesh(dict(zip(AXES, some, strict=True)), machine, by) for some in degrees]
        factors = np.stack([row for row in found if row is not None], axis=2)
        return _nested(machine, AXES, every.runs, factors)
    if order is None:
        _check_name(by, AXES)
    placement = order or parse_placement(by)
    if isinstance(placement, Placement):
        runs = filled(machine, placement, placement.degrees())
        factors, strides = _as_written(runs, AXES)
        dimensions = tuple(run.dimensions for run in runs)
        columns = columns_of(machine, AXES, dimensions, factors, strides)
        return PlacementTable(machine, AXES, columns, dimensions, factors, strides)
    left_out = [axis for axis in AXES if axis not in placement.axes]
    table = placements(
        machine,
        (*placement.axes, *left_out),
        limits={**(limits or {}), **dict.fromkeys(left_out, 1)},
        all_levels=all_levels,
        mirrored=True,
    )
    # Ranks are numbered along the axes when no dimension holds an axis that comes before one of an inner dimension.
    number = np.arange(len(table.axes))[:, None]
    first = np.where(table.factors > 1, number, len(table.axes)).min(axis=1)
    last = np.maximum.accumulate(np.where(table.factors > 1, number, -1).max(axis=1), axis=0)
    in_order = (last[:-1] <= first[1:]).all(axis=0)
    if not in_order.any():
        raise InputError(f"no degrees end where dimensions of {machine.name_as_typed} do in the order {placement}")
    return _nested(machine, table.axes, table.runs, table.factors[:, :, in_order])


def agreeing(text: str, machine: Machine, degrees: Mapping[str, int] | None = None) -> PlacementTable:
    """The placements with each axis where `text` says that it lies (tp:x fsdp:yz), of these degrees where they are given.

    Dimensions that several axes share are split in every way, in the nesting that was written. Raises InputError where the
    machine has no such placement, with the nearest degrees that it has.
    """
    import numpy as np

    where = parse_whereabouts(text)
    runs = laid(machine, where)
    factors_of_runs, strides_of_runs = [], []
    for run, axes in runs:
        sizes = np.array(_factorizations(prod(dimension.size for dimension in run), max(1, len(axes))), dtype=np.int64)
        factors = np.ones((len(AXES), len(sizes)), dtype=np.int64)
        strides = np.ones_like(factors)
        inside = np.cumprod(sizes, axis=1) // sizes
        for place, axis in enumerate(axes):
            factors[AXES.index(axis)], strides[AXES.index(axis)] = sizes[:, place], inside[:, place]
        factors_of_runs.append(factors)
        strides_of_runs.append(strides)
    rows = np.indices([part.shape[1] for part in factors_of_runs]).reshape(len(runs), -1)
    factors = np.stack([part[:, row] for part, row in zip(factors_of_runs, rows, strict=True)])
    strides = np.stack([part[:, row] for part, row in zip(strides_of_runs, rows, strict=True)])
    dimensions = tuple(run for run, _ in runs)
    table = PlacementTable(
        machine, AXES, columns_of(machine, AXES, dimensions, factors, strides), dimensions, factors, strides
    )
    if degrees is None:
        return table
    wanted = np.array([[degrees.get(axis, 1)] for axis in AXES])
    made = factors.prod(axis=0)
    kept = (made == wanted).all(axis=0)
    if not kept.any():
        near = made[:, np.abs(np.log2(made / wanted)).sum(axis=0).argmin()].tolist()
        asked, had = (
            " ".join(f"{axis}={size}" for axis, size in zip(AXES, some, strict=True) if size > 1) or "one rank"
            for some in (wanted[:, 0].tolist(), near)
        )
        raise InputError(
            f"placement: {where} cannot give {asked} on {machine.name_as_typed}; the nearest degrees: {had}"
        )
    return table.where(kept)


def members(
    order: str | Order | Placement, degrees: Mapping[str, int], machine: Machine, axes: Sequence[str] = AXES
) -> dict[str, float]:
    """The row of the table for one layout by a framework's name, in an order (`tp-dp-pp`) or as a placement is written out.

    An order is followed even where groups do not divide the domains or units of a switched machine: then the fewest
    members that a group has in one count. Raises InputError with the nearest legal choice when the layout does not fit.
    """
    wanted = {axis: degrees.get(axis, 1) for axis in axes}
    if min(wanted.values()) < 1:
        raise InputError(f"degrees are whole numbers from 1, not {min(wanted.values())}")
    placement = _read(order, wanted, machine, axes) if isinstance(order, str) else order
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
    factors, strides = _as_written(runs, axes)
    columns = columns_of(machine, axes, [run.dimensions for run in runs], factors, strides)
    return {name: float(column[0]) for name, column in columns.items()}


def _read(text: str, degrees: Mapping[str, int], machine: Machine, axes: Sequence[str]) -> Order | Placement:
    if text in NAMES:
        return by_name(text, degrees, machine)
    if says_where(text):
        table = agreeing(text, machine, degrees)
        if len(table) > 1:
            raise InputError(
                f"placement: {len(table)} placements agree with {text}; write one out, {table.placement(0)}"
            )
        return table.placement(0)
    _check_name(text, axes)
    return parse_placement(text, axes)


def _check_name(text: str, axes: Sequence[str]) -> None:
    """Raise InputError for one word that is neither a framework's name nor an axis."""
    if re.fullmatch("[a-z0-9]{1,20}", text) and text not in axes:
        raise InputError.unknown("placement", text, [*NAMES, *axes])


def _as_written(runs: Sequence[Filled], axes: Sequence[str]) -> tuple[Counts, Counts]:
    """Factors and strides [run, axis, row] of the one placement that fills the runs so."""
    import numpy as np

    factors = np.ones((len(runs), len(axes), 1), dtype=np.int64)
    strides = np.ones_like(factors)
    for place, run in enumerate(runs):
        inside = 1
        for axis, size in run.factors:
            factors[place, axes.index(axis)], strides[place, axes.index(axis)] = size, inside
            inside *= size
    return factors, strides


def _nested(machine: Machine, axes: Sequence[str], runs: tuple[Run, ...], factors: Counts) -> PlacementTable:
    """The table of these factors [run, axis, row], nested inside each run in the order of the axes."""
    import numpy as np

    strides = np.ones_like(factors)
    strides[:, 1:] = np.cumprod(factors[:, :-1], axis=1)
    columns = columns_of(machine, axes, runs, factors, strides)
    return PlacementTable(machine, tuple(axes), columns, runs, factors, strides)


def _both_nestings(table: PlacementTable) -> PlacementTable:
    """A torus' table with pp inside dp as well as around it, where they share an axis of the slice.

    Which is faster depends on their sizes: the inner has cables of its own, the outer closes a ring. That tp and then cp are
    innermost is hardly ever slower, since they talk most.
    """
    import numpy as np

    dp, pp = table.axes.index("dp"), table.axes.index("pp")
    shared = ((table.factors[:, dp] > 1) & (table.factors[:, pp] > 1)).any(axis=0)
    strides = table.strides[:, :, shared]
    strides[:, dp], strides[:, pp] = strides[:, dp] * table.factors[:, pp, shared], strides[:, dp].copy()
    factors = np.concatenate([table.factors, table.factors[:, :, shared]], axis=2)
    strides = np.concatenate([table.strides, strides], axis=2)
    columns = columns_of(table.machine, table.axes, table.runs, factors, strides)
    return PlacementTable(table.machine, table.axes, columns, table.runs, factors, strides)


def _factors_of_mesh(degrees: Mapping[str, int], machine: Machine, name: str) -> Counts | None:
    """Factors [dimension, axis] of JAX's mesh of these degrees; None where it refuses them."""
    import numpy as np

    try:
        by_dimension = dict(mesh(degrees, machine, split=MESHES[name]).parts)
    except InputError:
        return None
    return np.array(
        [[dict(by_dimension.get(d.name, ())).get(axis, 1) for axis in degrees] for d in machine.dimensions],
        dtype=np.int64,
    )


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
