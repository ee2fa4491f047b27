"""The columns of a table of placements: what the equations need to know of the groups of ranks of each row.

One row a placement, all float64:
    tp, cp, dp, pp                 degrees
    domain_tp.., unit_tp..         on switches: members of a group in one fast domain, and in one unit
    tp_x, tp_stride_x, tp_ring_x   on a torus: size of the sub-axis along x, chips inside it, whether it closes; and y, z
    tp_slices                      on a torus: slices that a group spans
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from costmodel.topology.machine import AXIS_NAMES, Dimension, Machine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]
    Counts = NDArray[np.int64]

Run = tuple[Dimension, ...]
"""Dimensions that are filled together."""


def columns_of(
    machine: Machine, axes: Sequence[str], runs: Sequence[Run], factors: Counts, strides: Counts
) -> dict[str, Column]:
    """The columns of a table from `factors` and `strides` [run, axis, row]."""
    import numpy as np

    degrees = factors.prod(axis=0)
    columns = {axis: degrees[place] for place, axis in enumerate(axes)}
    if machine.is_torus:
        columns |= _on_torus(machine, axes, factors, strides)
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


def _on_torus(machine: Machine, axes: Sequence[str], factors: Counts, strides: Counts) -> dict[str, Counts]:
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
