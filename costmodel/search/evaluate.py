"""One layout of one workload, every quantity of the step by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from costmodel.catalog.catalog import Catalog
from costmodel.runtime import call
from costmodel.search.candidates import only
from costmodel.search.layout import Layout
from costmodel.search.workload import EXPERT_DEGREES, Overlap, Workload, scalar_inputs
from costmodel.topology.grammar import AXES
from costmodel.topology.placements import members


def evaluate(workload: Workload, layout: Layout, catalog: Catalog, overlap: Overlap = "modelled") -> Mapping[str, Any]:
    """Every quantity of the training equations; those along an axis are lists. Raises InputError for an impossible placement."""
    return call(math_module(workload).evaluate, inputs(workload, layout, catalog, overlap))


def inputs(workload: Workload, layout: Layout, catalog: Catalog, overlap: Overlap = "modelled") -> dict[str, float]:
    """What the training equations are given for one layout, by name. Raises InputError for an impossible placement."""
    degrees = {axis: getattr(layout, axis) for axis in AXES}
    return {
        **scalar_inputs(workload, catalog, overlap),
        **members(layout.placement, degrees, workload.machine),
        **{name: getattr(layout, name) for name in EXPERT_DEGREES},
        **only(layout).point(),
    }


def math_module(workload: Workload) -> ModuleType:
    """The generated module of one answer for the kind of machine."""
    return import_module(f"costmodel.generated.training_on_{workload.kind}_math")
