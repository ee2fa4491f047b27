"""Which library runs the collectives of a machine, and its constants as inputs of the equations."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from costmodel.catalog.entries import Link
from costmodel.errors import InputError
from costmodel.generated.labels import CHOICES
from costmodel.topology.machine import Machine
from costmodel.topology.overlay import ADDED

NONE = "none"
DOMAIN = (
    *("ll_start", "ll_step", "ll_share", "ll128_start", "ll128_step", "ll128_share"),
    *("simple_start", "simple_step", "simple_share", "own_shard", "in_network_start"),
    *("exchange_ll_start", "exchange_ll_share", "exchange_start", "exchange_share", "own_block"),
)
"""Constants of the link of a fast domain; a share that is left out is 0: the protocol is not used."""
NETWORK = (
    *("ll_overhead", "ll128_overhead", "simple_overhead"),
    *("ll_ring_step", "ll_tree_step", "ll_nic_share", "ll_rank_rate", "ll128_ring_step", "ll128_tree_step"),
    *("ll128_nic_share", "simple_ring_step", "simple_tree_step", "simple_nic_share", "exchange_nic_share"),
)
"""Constants of a NIC."""


def known_library(machine: Machine) -> str:
    """The library whose constants are known for every link that the machine's groups can span; `none` where there is none."""
    inner = machine.dimensions[0].link
    if inner.library is None:
        return NONE
    name = inner.library.name
    spanned = [] if machine.is_torus else [level.link for level in machine.network if level.size > 1]
    return name if all(link.library is not None and link.library.name == name for link in spanned) else NONE


def library_in_training(machine: Machine) -> str:
    """What a training step takes: the library where it has forms of its own, and on a torus the links by themselves.

    A compiler runs the collectives of a step beside its compute, where their start hides: on published TPU runs the links by
    themselves are nearer to what was measured (90 % within 15.3 %, with the library's constants within 16.5 %).
    """
    return NONE if machine.is_torus else known_library(machine)


def library_named(asked: str | None, machine: Machine) -> str:
    """The library that was asked for, or the one that the machine uses; raises InputError where it is not known there."""
    known = known_library(machine)
    if asked is None:
        return known
    name = asked.lower()
    choices = list(dict.fromkeys((NONE, known)))
    if name not in choices:
        if name in CHOICES["library"] or name == "xla":
            raise InputError(
                f"nothing is measured of {name} on the links of {machine.name_as_typed}: choose --library "
                + " or --library ".join(choices)
            )
        raise InputError.unknown("library", asked, choices)
    return name


def library_inputs(machine: Machine, library: str, dispatch_latency: float = 0.0) -> dict[str, float]:
    """What the equations take of a library, beside what they take of the machine.

    On a torus a library stands in for the hop and the share of the link; behind switches it has forms of its own.
    """
    inner = machine.dimensions[0].link
    constants = _constants(inner) if library != NONE else {}
    if machine.is_torus:
        return {"hop_latency": constants["hop"], "link_share": constants["link_share"]} if constants else {}
    outer = machine.network[0].link if machine.network else None
    beyond = _constants(outer) if library != NONE and outer is not None else {}
    found = {key: constants.get(key, 0.0) for key in DOMAIN} | {key: beyond.get(key, 0.0) for key in NETWORK}
    if not found["ll_rank_rate"]:
        found["ll_rank_rate"] = inf
    adds = inner.attainable.get("in_network") if found["in_network_start"] else None
    pair = inner.attainable.get("pair") or inner.attainable["collective"]
    return found | {
        "library": float(CHOICES["library"].index(library)),
        "dispatch_latency": dispatch_latency,
        "added_latency": outer.details[ADDED].value if outer is not None and ADDED in outer.details else 0.0,
        "pair_share": pair.value,
        "in_network_share": adds.value if adds else 0.0,
    }


def _constants(link: Link) -> Mapping[str, float]:
    return {key: number.value for key, number in link.library.constants.items()} if link.library else {}
