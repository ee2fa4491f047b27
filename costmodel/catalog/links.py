"""Reading a link: hardware/links/NAME.yaml."""

from __future__ import annotations

from costmodel.catalog.entries import Library, Link, Overlay
from costmodel.catalog.facts import fact, facts, number
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
}
LIBRARIES = ("nccl", "xla")
_COST = ("ratio", 0.0, 10.0)
_ANY_SHARE = ("share", 0.001, 1.0)
PROTOCOLS = ("ll", "ll128", "simple")
"""How a library of collectives sends: a flag beside every word, one in 128 bytes, whole chunks."""
LIBRARY = {
    # Of a chip's link inside a fast domain, by protocol: start-up, one step, share of the bandwidth.
    "ll_start": _LATENCY,
    "ll_step": _LATENCY,
    "ll_share": _ANY_SHARE,
    "ll128_start": _LATENCY,
    "ll128_step": _LATENCY,
    "ll128_share": _ANY_SHARE,
    "simple_start": _LATENCY,
    "simple_step": _LATENCY,
    "simple_share": _ANY_SHARE,
    "own_shard": _COST,
    "in_network_start": _LATENCY,
    "exchange_ll_start": _LATENCY,
    "exchange_ll_share": _ANY_SHARE,
    "exchange_start": _LATENCY,
    "exchange_share": _ANY_SHARE,
    "own_block": _COST,
    # Of a NIC: the least of any step of a ring in a group of several domains, one step of a ring and of a tree between domains, share of the bandwidth, and what a rank sends at most.
    "ll_overhead": _LATENCY,
    "ll_ring_step": _LATENCY,
    "ll_tree_step": _LATENCY,
    "ll_nic_share": _ANY_SHARE,
    "ll_rank_rate": _BANDWIDTH,
    "ll128_overhead": _LATENCY,
    "ll128_ring_step": _LATENCY,
    "ll128_tree_step": _LATENCY,
    "ll128_nic_share": _ANY_SHARE,
    "simple_overhead": _LATENCY,
    "simple_ring_step": _LATENCY,
    "simple_tree_step": _LATENCY,
    "simple_nic_share": _ANY_SHARE,
    "exchange_nic_share": _ANY_SHARE,
    # Of a link of a torus: one hop and share of the bandwidth, software included.
    "hop": _LATENCY,
    "link_share": _ANY_SHARE,
}
"""What a library makes of a link. A protocol that a link does not name is not used there."""
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
    block.keys_are(("name", "kind", "per", "spec", "attainable"), ("aliases", "note", "overlay", "library"))
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
        library=_library(block.block("library")) if "library" in block else None,
    )


def _library(block: Block) -> Library:
    block.keys_are(("name",), LIBRARY)
    return Library(
        name=block.choice("name", LIBRARIES),
        constants={key: number(block, key, *LIBRARY[key]) for key in block if key in LIBRARY},
    )


def _overlay(block: Block) -> Overlay:
    block.keys_are((), ("framing", "encapsulation", *OVERLAY))
    return Overlay(
        framing=block.text("framing", ""),
        encapsulation=block.texts("encapsulation", ()),
        limits={key: fact(block, key, *OVERLAY[key]) for key in block if key in OVERLAY},
    )
