"""Reading a link: hardware/links/NAME.yaml."""

from __future__ import annotations

from costmodel.catalog.entries import Link, Overlay
from costmodel.catalog.facts import fact, facts
from costmodel.catalog.reader import Block

KINDS = ("nvlink", "ici", "xgmi", "neuronlink", "infiniband", "ethernet", "efa", "dcn", "pcie", "c2c", "gaudi", "other")
PER = ("chip", "link", "port", "nic")

_SHARE = ("share", 0.01, 1.0)
_LATENCY = ("duration", 0.0, 1e-2)
_BANDWIDTH = ("bytes per second", 1e8, 1e14)

DETAILS = {
    "links_per_chip": ("count", 1, 64),
    "bandwidth_per_link": _BANDWIDTH,
    "switch_latency": _LATENCY,
    "cable_latency_per_metre": ("duration", 1e-10, 1e-7),
    "switch_ports": ("count", 2, 1024),
    "switch_power": ("power", 10.0, 1e5),
    "latency_with_software": _LATENCY,
}
ATTAINABLE_REQUIRED = ("collective",)
ATTAINABLE = {
    # Shares of `spec.bandwidth` that a ring collective, a pair, and reduction inside the switches reach.
    "collective": _SHARE,
    "pair": _SHARE,
    "in_network": _SHARE,
    # The measured curve of collectives in one domain:
    # time^ramp = (start + step n)^ramp + ((wire bytes + own_shard_cost * shard) / (asymptote * bandwidth))^ramp
    "start": _LATENCY,
    "step": _LATENCY,
    "asymptote": _SHARE,
    "ramp": ("ratio", 0.1, 10.0),
    "own_shard_cost": ("ratio", 0.0, 10.0),
    "in_network_cost": ("ratio", 0.1, 10.0),
    # What NCCL counts for a step, by protocol.
    "step_low_latency": _LATENCY,
    "step_128_byte": _LATENCY,
    "step_simple": _LATENCY,
}
OVERLAY = {
    "mtu": ("bytes", 256, 65536),
    "packet_rate": ("events per second", 1e3, 1e12),
    "flow_rate": ("bytes per second", 1e5, 1e14),
    "flows": ("count", 1, 1e6),
    "paths": ("count", 1, 1e4),
    "window": ("bytes", 1024, 2**40),
    "round_trip": _LATENCY,
    "cores": ("count", 1, 1024),
    "core_rate": ("bytes per second", 1e6, 1e12),
    "fast_path_latency": _LATENCY,
    "coprocessor_latency": _LATENCY,
    "coprocessor_share": ("share", 0.0, 1.0),
    "first_packet_latency": ("duration", 0.0, 10.0),
}
"""Knobs of what lies between the payload and the wire; none of them limits anything where it is left out."""


def link(block: Block) -> Link:
    """The link that a file describes; raises CatalogError where the file breaks a rule."""
    block.keys_are(("name", "kind", "per", "spec", "attainable"), ("aliases", "note", "overlay"))
    spec = block.block("spec")
    spec.keys_are(("bandwidth", "latency"), DETAILS)
    attainable = block.block("attainable")
    attainable.keys_are(ATTAINABLE_REQUIRED, ATTAINABLE)
    return Link(
        name=block.text("name"),
        aliases=block.texts("aliases", ()),
        kind=block.choice("kind", KINDS),
        per=block.choice("per", PER),
        bandwidth=fact(spec, "bandwidth", *_BANDWIDTH),
        latency=fact(spec, "latency", *_LATENCY),
        attainable=facts(attainable, ATTAINABLE),
        details={key: fact(spec, key, *DETAILS[key]) for key in spec if key in DETAILS},
        note=block.text("note", ""),
        overlay=_overlay(block.block("overlay")) if "overlay" in block else None,
    )


def _overlay(block: Block) -> Overlay:
    block.keys_are((), ("framing", "encapsulation", *OVERLAY))
    return Overlay(
        framing=block.text("framing", ""),
        encapsulation=block.texts("encapsulation", ()),
        limits={key: fact(block, key, *OVERLAY[key]) for key in block if key in OVERLAY},
    )
