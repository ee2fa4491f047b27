"""Constants of the catalog that measurements can move: a factor on one number, or the same factor on several that belong together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log
from typing import NamedTuple

from costmodel.catalog import chips, kernels, links
from costmodel.catalog.entries import Chip, Fact, Link, Number
from costmodel.catalog.units import UNITS
from costmodel.studies.calibration.fit import Bounds
from costmodel.topology.machine import Dimension, Machine

DIGITS = 4
"""Digits of a number in an overlay."""


class Place(NamedTuple):
    """Where a number stands: the folder, the entry, and the keys down to it."""

    shelf: str
    entry: str
    path: tuple[str, ...]


Values = Mapping[Place, float]


@dataclass(frozen=True, slots=True)
class Constant:
    """Numbers that are scaled together, with the range of each: (number, least, most) by its place."""

    name: str
    of: str
    members: Mapping[Place, tuple[Number, float, float]]

    @property
    def bounds(self) -> Bounds:
        """How far the logarithm of the factor may go before the first of the numbers leaves its range."""
        low, high = -inf, inf
        for number, least, most in self.members.values():
            low = max(low, log(least / number.value) if least > 0 else -inf)
            high = min(high, log(most / number.value))
        return Bounds(min(low, 0.0), max(high, 0.0))

    @property
    def entries(self) -> tuple[tuple[str, str], ...]:
        """Folder and name of the entries that hold it."""
        return tuple(dict.fromkeys((place.shelf, place.entry) for place in self.members))

    @property
    def first(self) -> Number:
        """The number that stands for all of them when the constant is told."""
        return next(iter(self.members.values()))[0]

    def at(self, factor_log: float) -> dict[Place, float]:
        """The numbers with that factor."""
        return {place: number.value * exp(factor_log) for place, (number, *_) in self.members.items()}


def values_at(constants: Sequence[Constant], point: Sequence[float]) -> dict[Place, float]:
    """The numbers of constants that are not where the catalog has them."""
    found: dict[Place, float] = {}
    for constant, factor_log in zip(constants, point, strict=True):
        if factor_log:
            found |= constant.at(factor_log)
    return found


def as_written(constants: Sequence[Constant], values: Values) -> dict[Place, float]:
    """The same numbers rounded as an overlay holds them."""
    numbers = {place: number for constant in constants for place, (number, *_) in constant.members.items()}
    return {place: rounded(numbers[place], value) for place, value in values.items()}


def unit_of(number: Number) -> tuple[str, float]:
    """The unit that a number is written in, and its factor to SI."""
    unit = number.stated.partition(" ")[2] or number.unit
    return unit, UNITS[unit][1]


def rounded(number: Number, value: float) -> float:
    """A value in place of that number, to the digits that are written, in SI."""
    factor = unit_of(number)[1]
    return float(f"{value / factor:.{DIGITS}g}") * factor


# What is scaled together; each line is one constant of a fit.
_DOMAIN = {
    "share of rings": ("simple_share", "ll128_share", "ll_share"),
    "start": ("ll_start", "ll128_start", "simple_start"),
    "step": ("ll_step", "ll128_step", "simple_step"),
    "share of sums in the switches": ("in_network",),
    "start of sums in the switches": ("in_network_start",),
    "share of exchanges": ("exchange_share", "exchange_ll_share"),
    "start of exchanges": ("exchange_ll_start", "exchange_start"),
    "share of a link": ("link_share",),
    "hop": ("hop",),
}
_NETWORK = {
    "share": ("simple_nic_share", "ll128_nic_share", "ll_nic_share"),
    "step": (
        *("ll_ring_step", "ll128_ring_step", "simple_ring_step"),
        *("ll_tree_step", "ll128_tree_step", "simple_tree_step"),
    ),
    "share of exchanges": ("exchange_nic_share",),
}
_PLAIN = {"share": ("attainable", "collective"), "latency": ("spec", "latency")}


def of_links(machine: Machine, *, by_library: bool) -> list[Constant]:
    """The constants of collectives on a machine: of its fast domain, and of its network where it spans one."""
    domain = machine.dimensions[0].link
    # The first level stands for the network in the equations, whichever levels a group spans.
    outer = [machine.network[0].link] if any(level.size > 1 for level in machine.network) else []
    found = []
    for link, groups, where in [(domain, _DOMAIN, "fast domain"), *((link, _NETWORK, "network") for link in outer)]:
        if by_library and link.library is not None:
            for name, keys in groups.items():
                found.append(_constant(name, f"{link.name}, {where}", _of_library(link, keys)))
            continue
        plain: Mapping[str, tuple[Fact | None, tuple[str, float, float]]] = {
            "share": (link.attainable.get("collective"), links.ATTAINABLE["collective"]),
            # With an overlay the latency of the link holds what that adds.
            "latency": (link.latency if link.overlay is None else None, ("duration", 0.0, 1e-2)),
        }
        for name, (fact, limits) in plain.items():
            if isinstance(fact, Number):
                members = {Place("links", link.name, _PLAIN[name]): (fact, *limits[1:])}
                found.append(_constant(name, f"{link.name}, {where}", members))
    return [constant for constant in found if constant.members]


def _of_library(link: Link, keys: Iterable[str]) -> dict[Place, tuple[Number, float, float]]:
    """Numbers that the link's library is described by: its own constants and, of sums in the switches, what the link attains."""
    own = link.library.constants if link.library is not None else {}
    found: dict[Place, tuple[Number, float, float]] = {}
    for key in keys:
        block, fact, limits = (
            ("library", own.get(key), links.LIBRARY[key])
            if key in links.LIBRARY
            else ("attainable", link.attainable.get(key), links.ATTAINABLE[key])
        )
        if isinstance(fact, Number):
            found[Place("links", link.name, (block, key))] = (fact, *limits[1:])
    return found


def of_training(chip: Chip) -> list[Constant]:
    """What the kernels of a training step sustain on a chip: all their shares of peak together, and that of its memory."""
    sustained = [key for key in chip.attainable if key.startswith("training_")]
    found = [
        _of_chip("share of peak in training", chip, sustained),
        _of_chip("share of memory bandwidth", chip, ["kernel_memory_bandwidth"]),
    ]
    return [constant for constant in found if constant.members]


def _of_chip(name: str, chip: Chip, keys: Iterable[str]) -> Constant:
    facts = {key: chip.attainable.get(key) for key in keys}
    members = {
        Place("chips", chip.name, ("attainable", key)): (fact, *chips.ATTAINABLE[key][1:])
        for key, fact in facts.items()
        if isinstance(fact, Number)
    }
    return _constant(name, chip.name, members)


def of_kernel(chip: str, name: str, held: Mapping[str, Number]) -> list[Constant]:
    """The constants of a kernel of products."""
    family = kernels.FAMILIES[name.partition("-")[0]]
    told = {
        "share of peak": "peak_share",
        "start": "start",
        "share of memory bandwidth": "memory_share",
        "feed of a unit": "unit_bandwidth",
    }
    return [
        _constant(
            said, f"{name} on {chip}", {Place("kernels", chip, ("kernels", name, key)): (held[key], *family[key][1:])}
        )
        for said, key in told.items()
    ]


def _constant(name: str, of: str, members: Mapping[Place, tuple[Number, float, float]]) -> Constant:
    """A constant of the numbers that a factor can change: one of 0 stays 0."""
    return Constant(name, of, {place: held for place, held in members.items() if held[0].value > 0})


def machine_at(machine: Machine, values: Values) -> Machine:
    """A machine with other numbers of its chip and its links."""
    if not values:
        return machine
    dimensions = tuple(_dimension_at(dimension, values) for dimension in machine.dimensions)
    return replace(machine, chip=_chip_at(machine.chip, values), dimensions=dimensions)


def _dimension_at(dimension: Dimension, values: Values) -> Dimension:
    own = _own(values, "links", dimension.link.name)
    return replace(dimension, link=_link_at(dimension.link, own)) if own else dimension


def _chip_at(chip: Chip, values: Values) -> Chip:
    own = _own(values, "chips", chip.name)
    return replace(chip, attainable=_facts_at(chip.attainable, "attainable", own)) if own else chip


def _link_at(link: Link, own: Mapping[tuple[str, ...], float]) -> Link:
    library = link.library
    if library is not None:
        constants = {
            key: replace(number, value=own.get(("library", key), number.value))
            for key, number in library.constants.items()
        }
        library = replace(library, constants=constants)
    latency = link.latency
    if isinstance(latency, Number) and ("spec", "latency") in own:
        latency = replace(latency, value=own["spec", "latency"])
    return replace(link, attainable=_facts_at(link.attainable, "attainable", own), library=library, latency=latency)


def _facts_at(facts: Mapping[str, Fact], block: str, own: Mapping[tuple[str, ...], float]) -> dict[str, Fact]:
    return {
        key: replace(fact, value=own[block, key]) if isinstance(fact, Number) and (block, key) in own else fact
        for key, fact in facts.items()
    }


def _own(values: Values, shelf: str, entry: str) -> dict[tuple[str, ...], float]:
    return {place.path: value for place, value in values.items() if (place.shelf, place.entry) == (shelf, entry)}
