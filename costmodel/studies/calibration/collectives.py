"""Measured collectives beside what the machine's library makes of them: start-up and share of the fast domain and of the NICs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.runtime import call
from costmodel.studies.calibration import nccl_tests
from costmodel.studies.calibration.cases import Case, Kind
from costmodel.studies.calibration.constants import Values, machine_at, of_links
from costmodel.studies.calibration.nccl_tests import Result
from costmodel.studies.timings import Group, inputs
from costmodel.topology.libraries import NONE, known_library
from costmodel.topology.machine import Machine, parse_machine

NAME = "collectives"
NOT_FITTED = ("send-recv",)


def kind(logs: Sequence[tuple[str, str]], machine: Machine, operation: str, catalog: Catalog) -> Kind:
    """The cases of logs of nccl-tests, each a file's name and its text, on that machine or so many ranks of its cluster.

    Raises InputError for a log that cannot be read and for ranks that the cluster does not have.
    """
    results: list[Result] = []
    notes: list[str] = []
    for file, text in logs:
        log = nccl_tests.read(text, file, operation)
        results += log.results
        notes += log.notes
    fitted = [one for one in results if one.operation not in NOT_FITTED]
    if len(fitted) < len(results):
        notes.append(
            f"{len(results) - len(fitted)} results of {', '.join(NOT_FITTED)} are left out: no constant is fitted to them"
        )
    if not fitted:
        raise InputError(f"{logs[0][0]}: nothing is left to fit to; {'; '.join(notes)}")
    in_place = nccl_tests.spread(fitted)
    if in_place is not None:
        notes.append(f"times are those out of place; in place takes {in_place:.3f} times as long in the median")
    if any(not one.ranks for one in fitted):
        notes.append(
            f"where the output does not list its ranks, they are the {machine.chips} of {machine.name_as_typed}"
        )
    machines = {(one.ranks, one.hosts): _machine(one, machine, catalog) for one in fitted}
    placed = [(one, machines[one.ranks, one.hosts]) for one in fitted]
    cases = [
        Case(one.where, f"{one.operation} {one.size} {one.dtype} {where.name_as_typed}", one.time_s)
        for one, where in placed
    ]

    def predict(values: Values) -> list[float]:
        groups = {name: _group(machine_at(where, values)) for name, where in machines.items()}
        known: dict[tuple[object, ...], float] = {}
        found = []
        for one, _ in placed:
            key = (one.operation, one.size, one.dtype, one.ranks, one.hosts)
            if key not in known:
                known[key] = _time(one, groups[one.ranks, one.hosts])
            found.append(known[key])
        return found

    largest = max(machines.values(), key=lambda one: one.chips)
    constants = of_links(largest, by_library=known_library(largest) != NONE)
    return Kind(NAME, tuple(file for file, _ in logs), cases, constants, predict, tuple(notes))


def _machine(one: Result, machine: Machine, catalog: Catalog) -> Machine:
    """The machine that was asked for, with as many ranks as the output lists."""
    if one.ranks in {0, machine.chips}:
        return machine
    cluster = machine.cluster
    size = str(one.ranks)
    if one.hosts > 1 and one.ranks % one.hosts == 0:
        size = f"{one.hosts}x{one.ranks // one.hosts}"
    try:
        return parse_machine(f"{cluster.name}:{size}", 1, catalog)
    except InputError as error:
        raise InputError(f"{one.where}: the output lists {one.ranks} ranks: {error}") from None


def _group(machine: Machine) -> Group:
    return Group.of(machine, group=None, axes=None, stride=1, library=known_library(machine))


def _time(one: Result, group: Group) -> float:
    """Seconds by the fastest way that competes, as `collective` answers."""
    module = import_module(group.module)
    name = one.operation.replace("-", "_")
    times = call(module.times, inputs(one.size, group, one.dtype, None))
    ways = (way for way, facts in module.ALGORITHMS[name].items() if facts["competes"])
    return min(float(times[f"{name}_{way}"]) for way in ways)
