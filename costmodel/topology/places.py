"""Places of a machine that a message can go between: what the equations of one message need to know of each pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

from costmodel.catalog.entries import Link
from costmodel.topology.groups import fabric_inputs, launch_latency, switch_latency, twist
from costmodel.topology.machine import AXIS_NAMES, Dimension, Machine


@dataclass(frozen=True, slots=True)
class Pair:
    """Two places: the function of costmodel.generated.collectives_math for a message between them, and its inputs.

    `resource` is what the message loads; `meaning` may name quantities of the function in braces. `ranks` are the two as a
    group on switches, for what a library makes of it; none on a torus and from the host.
    """

    function: str
    inputs: Mapping[str, float]
    resource: str
    meaning: str
    ranks: Mapping[str, float] = field(default_factory=dict)


def pairs(machine: Machine) -> dict[str, Pair]:
    """Every pair of places of a machine, by name, near to far, and the load from a host."""
    found = _on_torus(machine) if machine.is_torus else _on_switches(machine)
    link = machine.host_link
    memory = machine.cluster.host.get("dram_bandwidth")
    inputs = {
        "host_link_bandwidth": link.bandwidth.value,
        "pair_share": _pair_share(link),
        "host_latency": link.latency.value,
        "host_memory_bandwidth": memory.value if memory else inf,
        "chips_per_host": machine.cluster.chips_per_host,
    }
    return found | {"host": Pair("message_from_host", inputs, link.kind, "from a chip's host to the chip")}


def _on_switches(machine: Machine) -> dict[str, Pair]:
    domain = machine.dimensions[0]
    found = {}
    if domain.size > 1:
        ranks = {**fabric_inputs(machine), "n": 2.0, "m": 2.0, "u": 2.0}
        found["domain"] = replace(_neighbours(machine, "two ranks of one fast domain"), ranks=ranks)
    for level in machine.network:
        if level.size == 1:
            continue
        inputs = {
            **_common(machine, level),
            **_share_of_links(machine),
            "link_latency": level.link.latency.value,
            "levels_below": level.levels_below,
            "switch_latency": switch_latency(level.link),
        }
        meaning = f"two ranks whose traffic meets at the {level.name} switches"
        ranks = {**fabric_inputs(machine), "n": 2.0, "m": 1.0, "u": 1.0 if level.levels_below else 2.0}
        ranks |= {"unit_oversubscription": 1.0, "unit_levels_below": float(level.levels_below)}
        found[level.name] = Pair("message_over_network", inputs, "nic", meaning, ranks)
    return found


def _on_torus(machine: Machine) -> dict[str, Pair]:
    found = {}
    axes = {axis.name: axis for axis in machine.fast if axis.size > 1}
    if axes:
        found["neighbour"] = _neighbours(machine, "two chips with a link")
        inputs = dict(found["neighbour"].inputs)
        for name in AXIS_NAMES:
            inputs[f"size_{name}"] = axes[name].size if name in axes else 1
            inputs[f"ring_{name}"] = float(name in axes and axes[name].wrap)
        function = "message_to_farthest"
        if machine.twisted:
            function, inputs = "message_to_farthest_of_twist", {**found["neighbour"].inputs, **twist(machine)}
        kind = machine.dimensions[0].link.kind
        meaning = "the two farthest chips, {hops:g} hops on {paths:g} paths"
        found["farthest"] = Pair(function, inputs, kind, meaning)
    if machine.slices > 1:
        dcn = machine.network[0]
        inputs = {
            **_common(machine, dcn),
            **_share_of_links(machine),
            "host_link_bandwidth": machine.host_link.bandwidth.value,
            "alpha": dcn.link.latency.value,
        }
        found["dcn"] = Pair("message_between_slices", inputs, "dcn", "two chips of different slices")
    return found


def _neighbours(machine: Machine, meaning: str) -> Pair:
    inner = machine.dimensions[0]
    inputs = {
        **_common(machine, inner),
        "link_bandwidth": inner.link.bandwidth.value,
        "alpha": inner.link.latency.value,
    }
    return Pair("message_to_neighbour", inputs, inner.link.kind, meaning)


def _common(machine: Machine, dimension: Dimension) -> dict[str, float]:
    return {"launch_latency": launch_latency(machine), "pair_share": _pair_share(dimension.link)}


def _share_of_links(machine: Machine) -> dict[str, float]:
    """A host's links into the network, which are those into its first level."""
    cluster = machine.cluster
    return {
        "links_per_host": cluster.network[0].links_per_host,
        "link_bandwidth": machine.network[0].link.bandwidth.value,
        "chips_per_host": cluster.chips_per_host,
    }


def _pair_share(link: Link) -> float:
    """The attainable share of a link between two places: of a pair where that is known, else of a collective."""
    known = link.attainable.get("pair") or link.attainable.get("collective")
    return known.value if known else 1.0
