"""The best layout of each strategy, beside the best of all: what people compare before they choose one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from costmodel.catalog.catalog import Catalog
from costmodel.report import Record
from costmodel.search.grid import Grid
from costmodel.studies.estimate import estimate
from costmodel.studies.question import ask, searched
from costmodel.topology.machine import parse_machine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]


def _spread(grid: Grid, axis: str) -> Mask:
    """Where a layout spreads over an axis: along the tuples of degrees."""
    over: Mask = grid.degrees[axis] > 1
    return over


def _zero(grid: Grid, stages: tuple[int, ...], *, in_groups: bool = False) -> Mask:
    """Where a layout shares as one of these ZeRO stages does, over all ranks or in groups of them: along the axis of sharding."""
    import numpy as np

    of_axis = np.array([zero in stages and bool(shard) == in_groups for zero, shard, _ in grid.candidates.sharing])
    shape = [1] * (len(grid.candidates.shape) + 1)
    shape[2] = len(of_axis)
    return of_axis.reshape(shape)


STRATEGIES: dict[str, Callable[[Grid], Mask]] = {
    "best of all": lambda grid: grid.fits,
    "FSDP alone": lambda grid: _zero(grid, (3,)) & ~_spread(grid, "tp") & ~_spread(grid, "pp") & ~_spread(grid, "cp"),
    "HSDP": lambda grid: (
        _zero(grid, (3,), in_groups=True) & ~_spread(grid, "tp") & ~_spread(grid, "pp") & ~_spread(grid, "cp")
    ),
    "FSDP and TP": lambda grid: _zero(grid, (3,)) & _spread(grid, "tp") & ~_spread(grid, "pp") & ~_spread(grid, "cp"),
    "FSDP and CP": lambda grid: _zero(grid, (3,)) & ~_spread(grid, "tp") & ~_spread(grid, "pp") & _spread(grid, "cp"),
    "TP and DP": lambda grid: _zero(grid, (0, 1)) & _spread(grid, "tp") & ~_spread(grid, "pp") & ~_spread(grid, "cp"),
    "PP and DP": lambda grid: _zero(grid, (0, 1)) & ~_spread(grid, "tp") & _spread(grid, "pp") & ~_spread(grid, "cp"),
    "TP, PP and DP": lambda grid: (
        _zero(grid, (0, 1)) & _spread(grid, "tp") & _spread(grid, "pp") & ~_spread(grid, "cp")
    ),
    "TP, CP, PP and DP": lambda grid: (
        _zero(grid, (0, 1)) & _spread(grid, "tp") & _spread(grid, "pp") & _spread(grid, "cp")
    ),
}
"""Conditions on degrees and sharding; optimizer states may be shared (zero=1) where data is parallel."""

EXPERT_STRATEGIES: dict[str, Callable[[Grid], Mask]] = {
    "best of all": lambda grid: grid.fits,
    "experts on every rank": lambda grid: ~_spread(grid, "ep") & ~_spread(grid, "etp"),
    "EP and FSDP": lambda grid: (
        _zero(grid, (3,)) & _spread(grid, "ep") & ~_spread(grid, "tp") & ~_spread(grid, "pp") & ~_spread(grid, "cp")
    ),
    "EP and DP": lambda grid: (
        _zero(grid, (0, 1)) & _spread(grid, "ep") & ~_spread(grid, "tp") & ~_spread(grid, "pp") & ~_spread(grid, "cp")
    ),
    "EP and PP": lambda grid: (
        _zero(grid, (0, 1)) & _spread(grid, "ep") & ~_spread(grid, "tp") & _spread(grid, "pp") & ~_spread(grid, "cp")
    ),
    "EP, TP and PP": lambda grid: (
        _zero(grid, (0, 1)) & _spread(grid, "ep") & ~_spread(grid, "etp") & _spread(grid, "tp") & _spread(grid, "pp")
    ),
    "EP and expert TP": lambda grid: _spread(grid, "ep") & _spread(grid, "etp"),
    "expert TP alone": lambda grid: ~_spread(grid, "ep") & _spread(grid, "etp"),
}
"""The same for models with experts, by who holds an expert."""


def strategies(model: str, on: str, sequence_length: int, batch: str, catalog: Catalog) -> Iterator[Record]:
    """The best layout that fits of each strategy; those of which none fits are named with nothing beside them.

    Raises InputError for a name or number that cannot be used.
    """
    machine = parse_machine(on, 1, catalog)
    question = ask(
        model, machine, catalog, sequence_length=sequence_length, batch=batch, tokens=None, dtype=None, recipe=None
    )
    grid = searched(question, catalog)
    fastest: float | None = None
    compared = EXPERT_STRATEGIES if question.workload.has_experts else STRATEGIES
    for name, condition in compared.items():
        places = grid.best(grid.fits & condition(grid), grid.step_time, 1)
        asked: Record = {"model": model, "on": on, "sequence_length": sequence_length, "batch": batch, "strategy": name}
        if not places:
            yield {
                **asked,
                "layout": None,
                "step_time_s": None,
                "over_best": None,
                "mfu": None,
                "device_used_bytes": None,
            }
            continue
        found = estimate(grid.workload, grid.settled(places[0]), catalog, question.train_tokens)
        fastest = found.step_time_s if fastest is None else fastest
        yield {
            **asked,
            "layout": str(found.layout),
            "step_time_s": found.step_time_s,
            "over_best": found.step_time_s / fastest - 1,
            "mfu": found.mfu,
            "device_used_bytes": found.device_used_bytes,
        }
