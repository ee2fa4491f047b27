"""A CSV of step times, in the columns of tables/published/training.csv or of the collections that it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Cluster
from costmodel.errors import InputError
from costmodel.search.evaluate import evaluate
from costmodel.studies.calibration.cases import Case, Kind
from costmodel.studies.calibration.constants import Constant, Values, machine_at, of_links, of_training
from costmodel.studies.validation import runs
from costmodel.studies.validation.machines import Machines
from costmodel.studies.validation.prepared import Prepared, Preparing
from costmodel.studies.validation.runs import PublishedRun, Unread
from costmodel.studies.validation.training import time_from_flops
from costmodel.topology.libraries import NONE, library_in_training
from costmodel.topology.machine import Machine

NAME = "steps"
MOST_REASONS = 3
knows = runs.knows


@dataclass(frozen=True, slots=True)
class _Step:
    """A run that can be predicted."""

    prepared: Prepared
    measured_s: float


class _OnCluster(Machines):
    """Machines of one cluster in place of the usual one of a chip; what a row says of its nodes and its network stays."""

    def __init__(self, catalog: Catalog, cluster: Cluster) -> None:
        super().__init__(catalog)
        self.cluster = cluster

    def home(self, chip: str) -> str:
        """The cluster; raises InputError for a row of another chip."""
        if chip != self.cluster.chip:
            raise InputError(f"it ran on {chip}, and {self.cluster.name} has {self.cluster.chip}")
        return self.cluster.name


def kind(
    tables: Sequence[tuple[str, Path]], cluster: Cluster, models: Path | None, network_known: bool, catalog: Catalog
) -> Kind:
    """The cases of tables of step times on machines of that cluster.

    The network is not fitted where `network_known`: collectives of it were measured apart. Raises InputError for a table that cannot be
    read, or of which no row can be predicted.
    """
    preparing = Preparing(catalog, models)
    preparing.machines = _OnCluster(catalog, cluster)
    cases, steps, left = [], [], []
    for file, path in tables:
        for run in runs.read_runs(path):
            found = _step(run, preparing)
            if isinstance(found, str):
                left.append(f"{file}: {run.id}: {found}")
                continue
            steps.append(found)
            cases.append(Case(f"{file}: {run.id}", f"{file}: {run.id}: {len(steps)}", found.measured_s))
    if not steps:
        raise InputError(f"no row can be predicted: {'; '.join(left[:MOST_REASONS]) or 'there is none'}")
    more = f"; {len(left) - MOST_REASONS} more" if len(left) > MOST_REASONS else ""
    notes = (f"{len(left)} rows are left out: {'; '.join(left[:MOST_REASONS])}{more}",) if left else ()

    def predict(values: Values) -> list[float]:
        return [_time(step, preparing.catalog, values) for step in steps]

    largest = max((step.prepared.workload.machine for step in steps), key=lambda one: one.chips)
    constants = [*of_training(largest.chip), *([] if network_known else _network(largest))]
    return Kind(NAME, tuple(file for file, _ in tables), cases, constants, predict, notes)


def _network(machine: Machine) -> list[Constant]:
    """The shares of the links; what a step waits for a start of a collective is too little to be told."""
    by_library = library_in_training(machine) != NONE
    return [one for one in of_links(machine, by_library=by_library) if "share" in one.name]


def _step(run: PublishedRun | Unread, preparing: Preparing) -> _Step | str:
    """A run with its measured time, or why there is none."""
    if isinstance(run, Unread):
        return run.reason
    try:
        run = replace(run, chip=preparing.machines.chip(run.chip))
        prepared = preparing.prepare(run)
        measured = run.step_time_s or run.throughput_step_time_s or time_from_flops(run, prepared.values)
    except InputError as error:
        return str(error)
    return _Step(prepared, measured) if measured else "no step time is stated, and none follows from the FLOPs"


def _time(step: _Step, catalog: Catalog, values: Values) -> float:
    prepared = step.prepared
    workload = replace(prepared.workload, machine=machine_at(prepared.workload.machine, values))
    return float(evaluate(workload, prepared.layout, catalog)["step_time"])
