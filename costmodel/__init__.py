"""costmodel: an analytical roofline cost model for training large language models on TPU and GPU clusters.

    import costmodel

    answer = costmodel.plan("llama-3.1-405b", on="dgx-h100:16384", batch="16M")
    answer.best[0].layout, answer.best[0].step_time_s
    pandas.DataFrame(answer.records())

Every function returns a frozen answer in SI units with its breakdown; `records()` is a plain list of flat rows. Wrong
input raises `costmodel.InputError`, whose text says what would be right.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from costmodel.errors import CatalogError, CostmodelError, InputError
from costmodel.version import __version__

if TYPE_CHECKING:
    from costmodel.catalog.catalog import Catalog
    from costmodel.studies.collective import collective
    from costmodel.studies.explain import explain
    from costmodel.studies.hardware import check_catalog, list_hardware, show_hardware
    from costmodel.studies.kernel import kernel
    from costmodel.studies.launches import launch
    from costmodel.studies.models import list_models, show_model
    from costmodel.studies.plan import plan
    from costmodel.studies.timings import Routing
    from costmodel.studies.train import train

_HOMES = {
    "Catalog": "costmodel.catalog.catalog",
    "Routing": "costmodel.studies.timings",
    "check_catalog": "costmodel.studies.hardware",
    "collective": "costmodel.studies.collective",
    "explain": "costmodel.studies.explain",
    "kernel": "costmodel.studies.kernel",
    "launch": "costmodel.studies.launches",
    "list_hardware": "costmodel.studies.hardware",
    "list_models": "costmodel.studies.models",
    "plan": "costmodel.studies.plan",
    "show_hardware": "costmodel.studies.hardware",
    "show_model": "costmodel.studies.models",
    "train": "costmodel.studies.train",
}

__all__ = [
    "Catalog",
    "CatalogError",
    "CostmodelError",
    "InputError",
    "Routing",
    "__version__",
    "check_catalog",
    "collective",
    "explain",
    "kernel",
    "launch",
    "list_hardware",
    "list_models",
    "plan",
    "show_hardware",
    "show_model",
    "train",
]


def __getattr__(name: str) -> Any:
    """Load a study when it is first asked for: each needs only a part of the package."""
    if name not in _HOMES:
        raise AttributeError(f"module 'costmodel' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """What can be asked for."""
    return sorted(__all__)
