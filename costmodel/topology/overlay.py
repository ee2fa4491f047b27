"""A link into a network as what it carries sees it: through frames, tunnels, ciphers and virtual switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

from costmodel.catalog.entries import Link, Number, Overlay
from costmodel.errors import InputError

USUAL_FRAMING = {"ethernet": "roce-v2", "infiniband": "infiniband", "dcn": "tcp"}
"""By kind of link, where none is named."""
LIMITS = {
    "packet_rate": inf,
    "cores": 1,
    "core_rate": inf,
    "flows": 1,
    "paths": 1,
    "flow_rate": inf,
    "window": inf,
    "round_trip": 0,
}
LATENCIES = ("fast_path_latency", "coprocessor_latency", "coprocessor_share", "first_packet_latency")


def framings(constants: Mapping[str, Number]) -> tuple[str, ...]:
    """The transports that the constants describe."""
    return tuple(name.removeprefix("headers_").replace("_", "-") for name in constants if name.startswith("headers_"))


def encapsulations(constants: Mapping[str, Number]) -> tuple[str, ...]:
    """The tunnels, ciphers and tags that the constants describe."""
    return tuple(
        name.partition("_")[2].replace("_", "-") for name in constants if name.startswith(("inside_", "outside_"))
    )


ADDED = "added_latency"
"""Under this name a link seen through an overlay keeps what that adds to a step."""


def framing_of(link: Link) -> str:
    """The framing of a link; raises InputError where its kind has no usual one."""
    named = link.overlay.framing if link.overlay else ""
    if not named and link.kind not in USUAL_FRAMING:
        raise InputError(f"how {link.name} frames packets is not known: name it, such as `tcp`, beside its overlay")
    return named or USUAL_FRAMING[link.kind]


def behind(link: Link, constants: Mapping[str, Number]) -> Mapping[str, Any]:
    """Every quantity of the overlay of a link, by name.

    Raises InputError for a framing or encapsulation that the constants do not describe, and where no payload is left.
    """
    from costmodel.generated import overlay_math

    overlay = link.overlay or Overlay()
    framing = framing_of(link)
    if framing not in framings(constants):
        raise InputError.unknown("framing", framing, framings(constants))
    for name in overlay.encapsulation:
        if name not in encapsulations(constants):
            raise InputError.unknown("encapsulation", name, encapsulations(constants))
    if framing == "infiniband" and overlay.encapsulation:
        raise InputError(f"{link.name} is InfiniBand, which carries no {', '.join(overlay.encapsulation)}")
    values = {name: number.value for name, number in constants.items()}
    limits = {name: fact.value for name, fact in overlay.limits.items()}
    key = framing.replace("-", "_")
    rows = [name.replace("-", "_") for name in overlay.encapsulation]
    found: Mapping[str, Any] = overlay_math.overlay(
        **{name: limits.get(name, default) for name, default in LIMITS.items()},
        **{name: limits.get(name, 0.0) for name in LATENCIES},
        link_bandwidth=link.bandwidth.value,
        link_latency=link.latency.value,
        mtu=limits.get("mtu", values[f"mtu_{key}"]),
        usual_mtu=values[f"mtu_{key}"],
        header_bytes=values[f"headers_{key}"],
        frame_bytes=values[f"frame_{key}"],
        largest_payload=values[f"largest_payload_{key}"],
        tunnel_bytes=sum(values.get(f"inside_{row}", 0.0) for row in rows),
        tag_bytes=sum(values.get(f"outside_{row}", 0.0) for row in rows),
    )
    if found["room"] < 1:
        raise InputError(f"an MTU of {limits.get('mtu', values[f'mtu_{key}']):g} B leaves no room for a payload")
    return found


def seen_through(link: Link, constants: Mapping[str, Number]) -> Link:
    """The link with the rate and the latency that its overlay leaves; raises as `behind` does."""
    found = behind(link, constants)
    return replace(
        link,
        bandwidth=replace(link.bandwidth, value=found["bandwidth"]),
        latency=replace(link.latency, value=found["latency"]),
        details={**link.details, ADDED: replace(link.latency, value=found["added"])},
    )
