"""One group of ranks of a machine as numbers: the inputs of the equations of collectives.

Counting rules for groups of `degree` ranks, `stride` apart, over blocks of `block` consecutive ranks. Group k of a machine
whose ranks are numbered through has the ranks {high * stride * degree + low + j * stride}, low < stride. Where groups
do not divide blocks, some have fewer members in a block than others; a step waits for those, so the fewest count.
Checked against lists of ranks in the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd, inf, prod

from costmodel.catalog.entries import Link
from costmodel.errors import InputError
from costmodel.generated.labels import CHOICES
from costmodel.topology.machine import AXIS_NAMES, SLICES, Dimension, Machine


def members_in_block(degree: int, stride: int, block: int) -> tuple[int, int]:
    """How many members of a group lie in one block that it touches: in the worst case, and in the best.

    Exact over a whole period of lcm(stride * degree, block) ranks, bounds in a shorter machine.
    """
    common = gcd(stride * degree, block)
    return max(1, common // stride), min(degree, -(-block // stride))


def launch_latency(machine: Machine) -> float:
    """Seconds from the call of a collective to its first byte; raises InputError where the chip does not say."""
    launch = machine.chip.attainable.get("launch")
    if launch is None:
        raise InputError(f"the chip {machine.chip.name} has no attainable.launch, the time to start a kernel; add it")
    return launch.value


def fabric_inputs(machine: Machine) -> dict[str, float]:
    """What the equations of collectives need to know of a machine, whatever the group: facts of its links, hosts and switches.

    Where there is no network, it is of no use to a group: one link that takes no time.
    """
    inner, cluster = machine.dimensions[0], machine.cluster
    outer = machine.network[0] if machine.network else None
    links_per_host = cluster.network[0].links_per_host if outer else 1.0
    common = {"launch_latency": launch_latency(machine), "chips_per_host": float(cluster.chips_per_host)}
    if machine.is_torus:
        return common | {
            "link_bandwidth": inner.link.bandwidth.value,
            "link_share": inner.link.attainable["collective"].value,
            "hop_latency": inner.link.latency.value,
            "dcn_links_per_host": links_per_host,
            "dcn_bandwidth": outer.link.bandwidth.value if outer else inf,
            "host_link_bandwidth": machine.host_link.bandwidth.value if outer else inf,
            "dcn_share": outer.link.attainable["collective"].value if outer else 1.0,
            "dcn_latency": outer.link.latency.value if outer else 0.0,
            **twist(machine),
        }
    uplinks = machine.unit_uplinks or outer
    in_network = inner.link.attainable.get("in_network") if inner.kind == "switch" else None
    return common | {
        "domain_kind": float(CHOICES["domain_kind"].index(inner.kind)),
        "domain_bandwidth": inner.link.bandwidth.value,
        "domain_share": inner.link.attainable["collective"].value,
        "domain_latency": inner.link.latency.value,
        "nics_per_host": links_per_host,
        "nic_bandwidth": outer.link.bandwidth.value if outer else inf,
        "nic_share": outer.link.attainable["collective"].value if outer else 1.0,
        "nic_latency": outer.link.latency.value if outer else 0.0,
        "unit_oversubscription": uplinks.oversubscription if uplinks else 1.0,
        "unit_link_latency": uplinks.link.latency.value if uplinks else 0.0,
        "unit_levels_below": float(uplinks.levels_below if uplinks else 0),
        "switch_latency": switch_latency(uplinks.link) if uplinks else 0.0,
        "nvls_share": in_network.value if in_network else 0.0,
    }


def twist(machine: Machine) -> dict[str, float]:
    """Axes of a twisted slice that are twice as long as its shortest, and the chips along that; 0 and 1 for plain slices."""
    if not machine.twisted:
        return {"twist": 0.0, "twist_side": 1.0}
    lengths = [axis.size for axis in machine.fast]
    return {"twist": float(sum(length > min(lengths) for length in lengths)), "twist_side": float(min(lengths))}


def switch_latency(link: Link) -> float:
    """Seconds of one more switch on the way, 0 where the link does not say."""
    known = link.details.get("switch_latency")
    return known.value if known else 0.0


def group_descriptors(
    machine: Machine, *, group: int | None = None, axes: str | None = None, stride: int = 1
) -> Mapping[str, float]:
    """The inputs of the equations of one collective over one group of ranks, all such groups running at once.

    On switches the group is `group` ranks (all, by default), each `stride` after the one before. On a torus it is the whole
    `axes` (`x`, `xy`, `slices`, `xyz+slices`; all of the machine, by default) or the first `group` ranks along them, innermost
    axis first. Raises InputError when the machine has no such group.
    """
    if machine.is_torus:
        if stride != 1:
            raise InputError(
                f"--stride is for switched machines; on {machine.cluster.name} say --axes, such as --axes x"
            )
        return {**torus_group(machine, group, axes), **fabric_inputs(machine)}
    if axes is not None:
        raise InputError(
            f"--axes is for a torus, and {machine.cluster.name} is switched; say --group, such as --group 8"
        )
    return {**switch_group(machine, machine.chips if group is None else group, stride), **fabric_inputs(machine)}


def switch_group(machine: Machine, group: int, stride: int = 1) -> dict[str, float]:
    """A group of n ranks, at worst m of them in a fast domain and u in a unit; raises InputError if it does not fit."""
    chips = machine.chips
    if not 1 <= group <= chips:
        raise InputError(f"a group of {group} ranks does not fit {machine.name_as_typed}: from 1 to {chips} ranks do")
    if stride < 1 or (group - 1) * stride >= chips:
        most = max(1, (chips - 1) // max(1, group - 1))
        raise InputError(
            f"{group} ranks {stride} apart do not fit {machine.name_as_typed}: a stride of 1 to {most} does"
        )

    def worst(block: int) -> int:
        return group if block >= chips else members_in_block(group, stride, block)[0]

    return {"n": float(group), "m": float(worst(machine.dimensions[0].size)), "u": float(worst(machine.unit))}


def torus_group(machine: Machine, group: int | None = None, axes: str | None = None) -> dict[str, float]:
    """Size, stride and ring of each sub-axis of the group, and the slices that it spans."""
    chosen = _chosen(machine, axes)
    sizes = _filled(machine, chosen, group)
    found: dict[str, float] = {}
    for name, dimension in _axes(machine):
        size = sizes.get(name, 1)
        ring = dimension is not None and dimension.wrap and size == dimension.size
        found |= sub_axis(name, size, 1, ring=ring)
    return found | {"slices": float(sizes.get(SLICES, 1))}


def sub_axis(name: str, size: int, stride: int, *, ring: bool) -> dict[str, float]:
    """The three numbers of one sub-axis, a factor of a torus axis with `stride` chips inside it.

    A factor of 1 uses nothing of the axis. Only the outermost factor of a wrapped axis is a ring.
    """
    used = size > 1
    return {
        f"size_{name}": float(size),
        f"stride_{name}": float(stride if used else 1),
        f"ring_{name}": float(ring and used),
    }


def _axes(machine: Machine) -> Iterable[tuple[str, Dimension | None]]:
    """All three axis names, with the axis of the machine where it has one."""
    by_name = {dimension.name: dimension for dimension in machine.fast}
    return [(name, by_name.get(name)) for name in AXIS_NAMES]


def _chosen(machine: Machine, axes: str | None) -> dict[str, int]:
    """Sizes of the dimensions that `axes` names, in its order."""
    sizes = {dimension.name: dimension.size for dimension in machine.fast} | {SLICES: machine.slices}
    if axes is None:
        return sizes
    names: list[str] = []
    for word in axes.lower().split("+"):
        names += [word] if word == SLICES else list(word)
    if not names or len(set(names)) < len(names) or not set(names) <= set(sizes):
        fast = "".join(name for name in sizes if name != SLICES)
        raise InputError(
            f"--axes {axes[:30]!r} is not understood: name each of {', '.join(fast)} at most once, such as x or {fast}; +{SLICES} adds the slices"
        )
    return {name: sizes[name] for name in names}


def _filled(machine: Machine, sizes: dict[str, int], group: int | None) -> dict[str, int]:
    """How much of each dimension the first `group` ranks take, filling one after the other."""
    if group is None:
        return sizes
    left, taken = group, {}
    for name, size in sizes.items():
        taken[name] = gcd(left, size) if left > 0 else 1
        if left > 0 and left % size and size % left:
            break
        left //= taken[name]
    if left != 1:
        near = _nearest(group, _group_sizes(sizes))
        raise InputError(
            f"a group of {group} does not fill whole axes of {machine.name_as_typed} and an even part of the next; "
            f"the nearest do: --group {' or --group '.join(str(size) for size in near)}"
        )
    return taken


def _group_sizes(sizes: dict[str, int]) -> set[int]:
    lengths = list(sizes.values())
    return {
        prod(lengths[:place]) * part
        for place, length in enumerate(lengths)
        for part in range(1, length + 1)
        if length % part == 0
    }


def _nearest(wanted: int, choices: set[int]) -> list[int]:
    below = [choice for choice in choices if choice < wanted]
    above = [choice for choice in choices if choice > wanted]
    return ([max(below)] if below else []) + ([min(above)] if above else [])
