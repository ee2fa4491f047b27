"""What tunnels, ciphers and virtual switches leave of a machine's network, and what of it binds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Link, Number, Overlay
from costmodel.catalog.links import OVERLAY
from costmodel.catalog.units import parse_size
from costmodel.errors import InputError
from costmodel.report import Table, human
from costmodel.topology.machine import Machine
from costmodel.topology.overlay import behind, encapsulations, framing_of, framings, seen_through

NONE = "none"
_LIMITS = {
    "by_wire": "wire",
    "by_paths": "hashed paths",
    "by_packets": "packet rate",
    "by_cores": "processor cores",
    "by_flows": "flows",
}


@dataclass(frozen=True, slots=True)
class SeenThrough:
    """One link into the network behind its overlay: `values` are the quantities of its equations, by name."""

    link: Link
    framing: str
    encapsulation: tuple[str, ...]
    values: Mapping[str, Any]

    @property
    def bound(self) -> str:
        """What binds."""
        return next(said for name, said in _LIMITS.items() if self.values[name] <= self.values["attained"])

    def result(self) -> dict[str, object]:
        """As scripts take it; what limits nothing is null."""
        values = self.values
        return {
            "link": self.link.name,
            "framing": self.framing,
            "encapsulation": list(self.encapsulation),
            "mtu_bytes": values["mtu"],
            "payload_bytes": values["payload"],
            "wire_bytes": values["wire"],
            "goodput_factor": values["goodput"],
            "line_rate_bytes_per_s": values["link_bandwidth"],
            **{f"{name}_bytes_per_s": values[name] if isfinite(values[name]) else None for name in _LIMITS},
            "attained_bytes_per_s": values["attained"],
            "bound": self.bound,
            "flows_to_fill": values["flows_to_fill"],
            "bandwidth_delay_bytes": values["delay_product"],
            "step_latency_s": values["latency"],
            "slowest_step_latency_s": values["slowest"],
            "first_step_latency_s": values["first"],
        }

    def table(self) -> Table:
        """As a person reads it."""
        values = self.values
        rows = [
            (said, human.rate(values[name]), human.percent(values[name] / values["link_bandwidth"]))
            for name, said in _LIMITS.items()
            if isfinite(values[name]) and (name == "by_wire" or values[name] != values["by_wire"])
        ]
        frames = " ".join((*self.encapsulation, f"over {self.framing}" if self.encapsulation else self.framing))
        title = f"One {self.link.name} through {frames}, MTU {values['mtu']:,.0f} B"
        return Table(title, ["limit", "payload", "of the line rate"], rows, self._notes())

    def _notes(self) -> list[str]:
        values = self.values
        slower = values["bandwidth"] / values["link_bandwidth"]
        payload, wire, usual = (f"{values[name]:,.0f} B" for name in ("payload", "wire", "usual_mtu"))
        notes = [
            f"Goodput factor {values['goodput']:.3f}: {payload} of payload in {wire} on the wire. What binds: {self.bound}.",
            f"Times count {slower:.3f} of the link's rate: its measured share holds for plain {self.framing}, MTU {usual}.",
        ]
        if isfinite(values["one_flow"]):
            notes.append(
                f"One flow gets {human.rate(values['one_flow'])}; it takes {values['flows_to_fill']:,.0f} for all there is."
            )
        if values["delay_product"]:
            notes.append(f"Bandwidth-delay product: {human.size(values['delay_product'])} on the way.")
        if values["first"] > values["link_latency"]:
            notes.append(
                f"A step takes {human.seconds(values['latency'])} in the mean, {human.seconds(values['slowest'])} at worst, "
                f"the first of a flow {human.seconds(values['first'])}."
            )
        return notes


def overlaid(
    machine: Machine, overlay: str | None, mtu: int | str | None, catalog: Catalog
) -> tuple[Machine, tuple[SeenThrough, ...]]:
    """The machine with its network behind `overlay` (comma-separated, or none) and `mtu`, and each of its links that has one.

    What is not given is as the catalog says. Raises InputError for names that nothing is called, and where there is no network.
    """
    asked = overlay is not None or mtu is not None
    if asked and not any(dimension.size > 1 for dimension in machine.network):
        raise InputError(f"{machine.name_as_typed} uses no network: --overlay and --mtu are of links between domains")
    originals = {link.name: link for link in (catalog.link(each.link.name) for each in machine.network)}
    constants = catalog.assumptions("networks") if asked or any(link.overlay for link in originals.values()) else {}
    asked_of = {name: _asked(link, overlay, mtu, constants) if asked else link for name, link in originals.items()}
    found = tuple(
        SeenThrough(link, framing_of(link), link.overlay.encapsulation, behind(link, constants))
        for link in asked_of.values()
        if link.overlay is not None
    )
    if not asked:
        return machine, found
    dimensions = tuple(
        replace(each, link=seen_through(asked_of[each.link.name], constants)) if each in machine.network else each
        for each in machine.dimensions
    )
    return replace(machine, dimensions=dimensions), found


def _asked(link: Link, overlay: str | None, mtu: int | str | None, constants: Mapping[str, Number]) -> Link:
    """The link with what was asked for in the place of what its entry says."""
    own = link.overlay or Overlay()
    if overlay is not None:
        words = [word.strip().lower() for word in overlay.split(",")]
        transports, known = framings(constants), encapsulations(constants)
        for word in words:
            if word not in (*transports, *known, NONE):
                raise InputError.unknown("overlay", word, (*known, *transports, NONE))
        named = [word for word in words if word in transports]
        if len(named) > 1 or (NONE in words and len(words) > len(named) + 1):
            raise InputError(f"--overlay {overlay[:60]!r} contradicts itself: name one transport at most")
        own = replace(
            own,
            framing=named[0] if named else own.framing,
            encapsulation=tuple(word for word in words if word in known),
        )
    if mtu is not None:
        own = replace(own, limits={**own.limits, "mtu": _mtu(mtu)})
    return replace(link, overlay=own)


def _mtu(mtu: int | str) -> Number:
    _, low, high = OVERLAY["mtu"]
    value = parse_size(str(mtu), "MTU")
    if not low <= value <= high:
        raise InputError(f"an MTU is from {low:g} to {high:g} bytes, not {value}")
    return Number(value, "B", "as asked for", "derived")
