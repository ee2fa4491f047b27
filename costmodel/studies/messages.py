"""One message between two places of a machine, everything else idle: within a domain, over the network, from the host."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Link
from costmodel.errors import InputError, nearest
from costmodel.generated import collectives_math
from costmodel.studies.timings import Timing, timing
from costmodel.topology.machine import Dimension, Machine

_OTHER_NAMES = {"node": "domain", "nvlink": "domain", "rail": "leaf", "pcie": "host", "ici": "neighbour"}


@dataclass(frozen=True, slots=True)
class _Way:
    """How one message travels: links on the longest of the paths, paths, one link's bandwidth and the latency of a hop."""

    resource: str
    hops: int
    paths: int
    bandwidth: float
    latency: float
    meaning: str
    launch: bool = True


def messages(operation: str, size: int, machine: Machine, between: str | None, catalog: Catalog) -> list[Timing]:
    """One message between each pair of places, or between those that were asked for, fastest first.

    Raises InputError with the machine's places for one that it does not have.
    """
    ways = _ways(machine, catalog)
    if operation == "host-load":
        ways = {"host": ways["host"]}
    if between is not None:
        name = _OTHER_NAMES.get(between.lower(), between.lower())
        if name not in ways:
            near = nearest(name, ways)
            hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(ways)}"
            raise InputError(f"{machine.name_as_typed} has no two places {between[:30]!r} apart: {hint}")
        ways = {name: ways[name]}
    launch = machine.chip.attainable["launch"].value
    found = []
    for name, way in ways.items():
        if way.launch:
            values = collectives_math.message(
                h=way.hops, paths=way.paths, S=size, launch_latency=launch, alpha=way.latency, W=way.bandwidth
            )
            key = "send_recv"
        else:
            share = _host_memory_share(machine)
            values = collectives_math.host_load(
                S=size, host_latency=way.latency, host_link=way.bandwidth, host_memory=share
            )
            key = "host_load"
        time, latency = float(values[key]), float(values[f"{key}_latency"])
        parts = {way.resource: float(values[f"{key}_bandwidth"])}
        found.append(timing(operation, name, size, 2, time, latency, parts, meaning=way.meaning))
    return sorted(found, key=lambda timing: timing.time_s)


def _ways(machine: Machine, catalog: Catalog) -> dict[str, _Way]:
    ways = _torus_ways(machine) if machine.is_torus else _switched_ways(machine)
    host = catalog.link(machine.cluster.host_link)
    attained = host.bandwidth.value * _pair_share(host)
    return ways | {
        "host": _Way(host.kind, 1, 1, attained, host.latency.value, "from a chip's host to the chip", launch=False)
    }


def _switched_ways(machine: Machine) -> dict[str, _Way]:
    domain = machine.dimensions[0]
    ways = {}
    if domain.size > 1:
        ways["domain"] = _way(domain, domain.bandwidth, "two ranks of one fast domain")
    nic = machine.network[0].bandwidth if machine.network else 0.0
    for level in machine.network:
        if level.size > 1:
            ways[level.name] = _way(level, nic, f"two ranks whose traffic meets at the {level.name} switches", "nic")
    return ways


def _torus_ways(machine: Machine) -> dict[str, _Way]:
    axes = [axis for axis in machine.fast if axis.size > 1]
    ways = {}
    if axes:
        ways["neighbour"] = _way(axes[0], axes[0].bandwidth, "two chips with a link")
        hops = sum(axis.size // 2 if axis.wrap else axis.size - 1 for axis in axes)
        # Half way round an even ring there are two ways of the same length, else one along each axis.
        paths = sum(2 if axis.wrap and axis.size % 2 == 0 else 1 for axis in axes)
        meaning = f"the two farthest chips, {hops} hops on {paths} paths"
        ways["farthest"] = _Way(
            axes[0].link.kind, hops, paths, axes[0].bandwidth * _pair_share(axes[0].link), axes[0].latency, meaning
        )
    if machine.slices > 1:
        ways["dcn"] = _way(machine.network[0], machine.network[0].bandwidth, "two chips of different slices", "dcn")
    return ways


def _way(dimension: Dimension, bandwidth: float, meaning: str, resource: str = "") -> _Way:
    attained = bandwidth * _pair_share(dimension.link)
    return _Way(resource or dimension.link.kind, 1, 1, attained, dimension.latency, meaning)


def _pair_share(link: Link) -> float:
    """The attainable share of a link between two places: of a pair where that is known, else of a collective."""
    known = link.attainable.get("pair") or link.attainable.get("collective")
    return known.value if known else 1.0


def _host_memory_share(machine: Machine) -> float:
    """A chip's share of its host's memory bandwidth, infinite where that is not known."""
    known = machine.cluster.host.get("dram_bandwidth")
    return known.value / machine.cluster.chips_per_host if known else inf
