"""The machine that a published run ran on: a cluster of the catalog with what the source says of it put in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Chip, Cluster, Link, Number
from costmodel.errors import InputError
from costmodel.studies.validation.rows import UnreadError
from costmodel.topology.machine import Machine, parse_machine

HOMES = {
    "v100-sxm2": "dgx-2",
    "v100-sxm2-16gb": "dgx-2",
    "a100-sxm-40gb": "dgx-a100",
    "a100-sxm-80gb": "dgx-a100",
    "h100-sxm": "dgx-h100",
    "h100-sxm-500w": "dgx-h100",
    "h200-sxm": "dgx-h200",
    "b200-sxm": "dgx-b200",
    "b300-sxm": "dgx-b300",
}
"""The cluster that a chip is taken to be in where several have it, or none does; others are in the one that is called as the chip
is, or in the first that has it."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a source says of where a run ran."""

    chip: str
    chips: int
    chips_per_node: int
    chip_gbytes_per_s: float | None = None
    slices: int = 1
    slice_named: str = ""


class Described:
    """The catalog with one cluster as a source describes it: other chip, smaller nodes, another rate of the network."""

    def __init__(self, catalog: Catalog, cluster: Cluster, rates: Mapping[str, float]) -> None:
        self.catalog, self.described, self.rates = catalog, cluster, rates

    def chip(self, name: str) -> Chip:
        """The chip of that name."""
        return self.catalog.chip(name)

    def link(self, name: str) -> Link:
        """The link of that name; one of the network with the rate of the source."""
        link = self.catalog.link(name)
        rate = self.rates.get(name)
        if rate is None or not isinstance(link.bandwidth, Number):
            return link
        return replace(link, bandwidth=replace(link.bandwidth, value=rate, source="the run's own source"))

    def cluster(self, name: str) -> Cluster:
        """The described cluster under its own name, else that of the catalog."""
        return self.described if name == self.described.name else self.catalog.cluster(name)

    def assumptions(self, name: str) -> Mapping[str, Number]:
        """The constants of that name."""
        return self.catalog.assumptions(name)


class Machines:
    """Machines by what sources say, each made once."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._made: dict[Place, Machine | InputError] = {}

    def chip(self, name: str) -> str:
        """The name in the catalog of a chip as a table names it; raises InputError where there is none."""
        return self.catalog.chip(name).name

    def at(self, place: Place) -> Machine:
        """The machine there; raises InputError for a chip or a number of chips that cannot be had."""
        if place not in self._made:
            try:
                self._made[place] = self._make(place)
            except InputError as error:
                self._made[place] = error
        found = self._made[place]
        if isinstance(found, InputError):
            raise found
        return found

    def _make(self, place: Place) -> Machine:
        cluster = self.catalog.cluster(self.home(place.chip))
        if cluster.scale_up.kind == "torus":
            return self._slices(cluster, place)
        host = place.chips_per_node
        rack = cluster.scale_up.size > cluster.chips_per_host
        if not rack and host != cluster.scale_up.size and host <= cluster.scale_up.size:
            cluster = replace(cluster, chips_per_host=host, scale_up=replace(cluster.scale_up, size=host))
        cluster = replace(cluster, chip=place.chip)
        rates = {} if place.chip_gbytes_per_s is None else _rates(cluster, place.chip_gbytes_per_s * 1e9)
        return parse_machine(f"{cluster.name}:{place.chips}", 1, Described(self.catalog, cluster, rates))

    def _slices(self, cluster: Cluster, place: Place) -> Machine:
        if place.chips % place.slices:
            raise UnreadError(f"{place.chips} chips are not {place.slices} equal slices")
        size = f"{place.chips // place.slices}"
        if "x" in place.slice_named:
            size = place.slice_named
        machine = parse_machine(f"{cluster.name}:{size}", place.slices, self.catalog)
        if machine.chips != place.chips:
            raise UnreadError(f"{place.slices} x {cluster.name}:{size} is not the {place.chips} chips of the row")
        return machine

    def home(self, chip: str) -> str:
        """The cluster that a chip is taken to be in; raises InputError where none has it."""
        if chip in HOMES:
            return HOMES[chip]
        names = self.catalog.names("clusters")
        if chip in names:
            return chip
        homes = [name for name in names if self.catalog.cluster(name).chip == chip]
        if not homes:
            raise InputError(f"no cluster of the catalog has the chip {chip}")
        return min(homes, key=lambda name: (not name.startswith("dgx"), name))


def _rates(cluster: Cluster, chip_rate: float) -> dict[str, float]:
    """The bandwidth of each link of the network with which the chips of a host get that rate each, bytes/s."""
    return {level.link: chip_rate * cluster.chips_per_host / level.links_per_host for level in cluster.network}
