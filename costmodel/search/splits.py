"""How many layers the first and the last stage get: the fastest split of a layout that leaves it open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from costmodel.generated import labels
from costmodel.runtime import Run, Table
from costmodel.search.candidates import Stages, ends, only, stages_of
from costmodel.search.grid import generated
from costmodel.search.layout import Layout
from costmodel.search.workload import Workload
from costmodel.topology.grammar import AXES
from costmodel.topology.placements import members

DEEPER = 2
"""Chunks of a middle stage that hold up to so many layers more than the mean are tried."""
MEETING = (*labels.SCHEDULES["folded"], *labels.SCHEDULES["two_way"])
"""Schedules with first and last stage on one rank: the equations see their sum, so of equals the lightest last stage is taken, as the
simulator has it; the head is there."""
LEAST_GAIN = 0.001
"""By what share of a step a split has to be faster than balance to be taken."""


def best_split(workload: Workload, layout: Layout, scalars: Mapping[str, float]) -> Layout:
    """The layout with the fastest legal split that fits, where it names none; itself where no split gains.

    A layout whose stages cannot be balanced gets the fastest split that is legal.
    """
    import numpy as np

    splits = [(0, 0), *_splits(workload.model.layers, layout)]
    if len(splits) == 1:
        return layout
    said = Stages.of(layout)
    tried = replace(
        only(layout),
        schedules=((layout.schedule, layout.virtual_stages),) * len(splits),
        stages=tuple(replace(said, first=first, last=last) for first, last in splits),
    )
    degrees = {axis: getattr(layout, axis) for axis in AXES}
    module = generated(workload, tried)
    place = members(layout.placement, degrees, workload.machine)
    columns = module.LEVELS["layouts"]
    every = place | {axis: getattr(layout, axis) for axis in workload.degrees}
    table = Table({name: [every[name]] for name in columns if name in every})
    run = Run(module, table, {**scalars, **tried.inputs()}).coarse()
    found = run.values | run.block(slice(0, 1))
    times, sizes, legal = (
        np.broadcast_to(found[name].ravel(), len(splits)) for name in ("step_time", "device_used", "legal")
    )
    most = max(workload.machine.chip.memory_capacity.value, sizes[0] if legal[0] > 0 else 0)
    times = np.where((legal > 0) & (sizes <= most), times, np.inf)
    fastest = int(times.argmin())
    if not times[fastest] < times[0] * (1 - LEAST_GAIN):
        return layout
    first, last = splits[fastest]
    return replace(layout, first=first, last=last)


def _splits(layers: int, layout: Layout) -> Iterator[tuple[int, int]]:
    """Layers of the ends for each number of layers between that is near the mean; none where a layout says them."""
    if layout.pp == 1 or layout.first or layout.last:
        return
    stages, chunks = stages_of(layout.schedule, layout.pp, layout.virtual_stages)
    mean = -(-layers // (stages * chunks))
    for depth in range(mean, mean + DEEPER + 1) if stages > 2 else [mean + DEEPER]:
        found = [*ends(layers, stages, chunks, depth * chunks)]
        yield from reversed(found) if layout.schedule in MEETING else found
