"""One message between two places of a machine, everything else idle: within a domain, over the network, from the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError, nearest
from costmodel.generated import collectives_math, group_on_switches_by_library_math
from costmodel.studies.intervals import ErrorClass, error_class, of_collective
from costmodel.studies.timings import Group, Timing, timing
from costmodel.topology.libraries import NONE, library_inputs
from costmodel.topology.machine import Machine
from costmodel.topology.places import Pair, pairs

ON_SLICE = ("neighbour", "farthest")
INSIDE = ("domain", "host", *ON_SLICE)
"""Places in one fast domain or host."""
UNMEASURED = ("host", "dcn")
"""Places between which no library is measured."""
_OTHER_NAMES = {"node": "domain", "nvlink": "domain", "rail": "leaf", "pcie": "host", "ici": "neighbour"}


def messages(
    operation: str, size: int, machine: Machine, between: str | None, library: str = NONE, dispatch_latency: float = 0.0
) -> list[Timing]:
    """One message between each pair of places, or between those that were asked for, fastest first.

    A load from the host is no business of a library. Raises InputError with the machine's places for one that it does not have.
    """
    places = pairs(machine)
    if operation == "host-load":
        places = {"host": places["host"]}
    if between is not None:
        name = _OTHER_NAMES.get(between.lower(), between.lower())
        if name not in places:
            near = nearest(name, places)
            hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(places)}"
            raise InputError(f"{machine.name_as_typed} has no two places {between[:30]!r} apart: {hint}")
        places = {name: places[name]}
    found = []
    known = library_inputs(machine, library, dispatch_latency)
    for name, pair in places.items():
        if pair.ranks and library != NONE:
            found.append(_by_library(operation, name, size, pair, known))
            continue
        inputs = pair.inputs
        if machine.is_torus and known and name in ON_SLICE:
            inputs = {**inputs, "alpha": known["hop_latency"], "pair_share": known["link_share"]}
        values = getattr(collectives_math, pair.function)(S=size, **inputs)
        key = "host_load" if name == "host" else "send_recv"
        time, latency = float(values[key]), float(values[f"{key}_latency"])
        parts = {pair.resource: float(values[f"{key}_bandwidth"])}
        meaning = pair.meaning.format(**values)
        found.append(timing(operation, name, size, 2, time, latency, parts, meaning=meaning))
    return sorted(found, key=lambda timing: timing.time_s)


def interval(row: Timing, library: str, machine: Machine, group: Group | None, catalog: Catalog) -> ErrorClass:
    """The class of error of a message between two places, or of a collective of a group."""
    if group is None and row.algorithm in UNMEASURED:
        library = NONE
    domains = group.domains if group else 1.0 if row.algorithm in INSIDE else 2.0
    names = of_collective(row.size_bytes, library, torus=machine.is_torus, domains=domains)
    return error_class("collectives", names, catalog)


def _by_library(operation: str, name: str, size: int, pair: Pair, constants: Mapping[str, float]) -> Timing:
    """The message as a library sends it, by its faster protocol: the two places are a group of two ranks."""
    known = {**pair.ranks, **constants, "S": size}
    module = group_on_switches_by_library_math
    values = module.times(**{key: known.get(key, 1.0) for key in module.times.__annotations__ if key != "return"})
    way = min(module.ALGORITHMS["send_recv"], key=lambda algorithm: values[f"send_recv_{algorithm}"])
    quantity = f"send_recv_{way}"
    parts = {pair.resource: max(float(values[f"{quantity}_{what}"]) for what in ("ports", "nics"))}
    meaning = f"{pair.meaning}: {module.MEANING[quantity]}"
    why = module.ALGORITHMS["send_recv"][way]["approximate"]
    told = timing(
        *(operation, name, size, 2, float(values[quantity]), float(values[f"{quantity}_latency"]), parts),
        meaning=meaning,
        why=why,
        protocol=way.rpartition("_")[2],
    )
    return replace(told, bandwidth_s=parts[pair.resource])
