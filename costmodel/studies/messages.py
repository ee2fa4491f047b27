"""One message between two places of a machine, everything else idle: within a domain, over the network, from the host."""

from __future__ import annotations

from costmodel.errors import InputError, nearest
from costmodel.generated import collectives_math
from costmodel.studies.timings import Timing, timing
from costmodel.topology.machine import Machine
from costmodel.topology.places import pairs

_OTHER_NAMES = {"node": "domain", "nvlink": "domain", "rail": "leaf", "pcie": "host", "ici": "neighbour"}


def messages(operation: str, size: int, machine: Machine, between: str | None) -> list[Timing]:
    """One message between each pair of places, or between those that were asked for, fastest first.

    Raises InputError with the machine's places for one that it does not have.
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
    for name, pair in places.items():
        values = getattr(collectives_math, pair.function)(S=size, **pair.inputs)
        key = "host_load" if name == "host" else "send_recv"
        time, latency = float(values[key]), float(values[f"{key}_latency"])
        parts = {pair.resource: float(values[f"{key}_bandwidth"])}
        meaning = pair.meaning.format(**values)
        found.append(timing(operation, name, size, 2, time, latency, parts, meaning=meaning))
    return sorted(found, key=lambda timing: timing.time_s)
