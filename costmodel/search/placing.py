"""The placement of one layout: written out where it was named, and the fastest of those with the same degrees."""

from __future__ import annotations

from dataclasses import replace

from costmodel.catalog.catalog import Catalog
from costmodel.search.grid import fastest
from costmodel.search.layout import Layout
from costmodel.search.workload import Workload, scalar_inputs
from costmodel.topology.frameworks import BEST, NAMES, by_name
from costmodel.topology.grammar import AXES
from costmodel.topology.placements import PlacementTable, agreeing, reached
from costmodel.topology.whereabouts import says_where


def written_out(workload: Workload, layout: Layout, catalog: Catalog) -> Layout:
    """The layout with its placement as an order or by dimension, where it was a name or says where axes lie.

    `best` is the fastest of its degrees; of several placements that have the axes where they are said to lie, the fastest is
    meant too. Raises InputError where a framework does not reach these degrees on the machine, or the axes do not there.
    """
    if layout.placement == BEST:
        return on_fastest_placement(workload, layout, catalog)
    if says_where(layout.placement):
        table = agreeing(layout.placement, workload.machine, _degrees(layout))
        return _fastest_of(table, workload, layout, catalog)
    if layout.placement in NAMES:
        return replace(layout, placement=str(by_name(layout.placement, _degrees(layout), workload.machine)))
    return layout


def on_fastest_placement(workload: Workload, layout: Layout, catalog: Catalog) -> Layout:
    """The layout on the fastest of all placements of its degrees; whether it fits does not depend on the placement."""
    return _fastest_of(reached(BEST, workload.machine, limits=_degrees(layout)), workload, layout, catalog)


def _fastest_of(table: PlacementTable, workload: Workload, layout: Layout, catalog: Catalog) -> Layout:
    import numpy as np

    if workload.has_experts:
        placed = table.with_experts((layout.ep,), layout.etp)
        if not len(placed):
            # ep times etp does not divide the ranks of a stage, which the rules say better: any placement will do for them.
            return replace(layout, placement=str(table.placement(0)))
        table = placed
    return fastest(workload, layout, scalar_inputs(workload, catalog), table, np.arange(len(table)))


def _degrees(layout: Layout) -> dict[str, int]:
    return {axis: getattr(layout, axis) for axis in AXES}
