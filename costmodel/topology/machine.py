"""A machine: what a cluster entry and the size that a person typed mean, as physical dimensions.

    dgx-h100:512        chips                       tpu-v5p:8x16x16     one slice, by shape
    dgx-h100:64x8       nodes times chips of each   tpu-v5p:512         one slice, by chips
    gb200-nvl72:16x64   64 chips of each domain     v5p-512, v6e-256    one slice, by Google's name
    dgx-h100            one fast domain             tpu-v5p             one host
                                                    tpu-v4:4x4x8_twisted   whose short axes close half way along the long one

A count of chips is spread over the fewest domains, or taken as the standard slice with that many.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Literal, Protocol

from costmodel.catalog.entries import Chip, Cluster, Link, Number, shape_text
from costmodel.errors import CatalogError, InputError
from costmodel.topology import slices as shapes_of
from costmodel.topology.domains import LARGEST_MACHINE, even_parts, filled_domains
from costmodel.topology.overlay import seen_through

AXIS_NAMES = "xyz"
SLICES = "slices"

Kind = Literal["switch", "mesh", "torus", "network", "dcn"]


class Entries(Protocol):
    """Where entries are looked up by name or alias: a Catalog, or a stand-in for one."""

    def chip(self, name: str) -> Chip:
        """The chip of that name; InputError if there is none."""
        ...

    def link(self, name: str) -> Link:
        """The link of that name; InputError if there is none."""
        ...

    def cluster(self, name: str) -> Cluster:
        """The cluster of that name; InputError if there is none."""
        ...

    def assumptions(self, name: str) -> Mapping[str, Number]:
        """The constants of that name; InputError if there are none. Asked for only where a link has an overlay."""
        ...


@dataclass(frozen=True, slots=True)
class Dimension:
    """One physical dimension: an axis of a torus, the fast domain, or a level of the network above it.

    kind: `switch` and `mesh` (a direct link between each two chips) are fast domains, `torus` an axis of one,
        `network` a level above a domain, `dcn` the level above a slice.
    size: blocks of the next inner dimension (chips, for the innermost) that one block of this one joins.
    wrap: whether a torus axis closes on itself.
    link: one chip's port (of `mesh` and `torus`, one of its links), or one of a host's links into the network.
    oversubscription: by how much a rank's NIC share exceeds its fair share of the links between the blocks.
    levels_below: levels of switches of the network below this one.
    """

    name: str
    kind: Kind
    size: int
    wrap: bool
    link: Link
    oversubscription: float = 1.0
    levels_below: int = 0


@dataclass(frozen=True, slots=True)
class Machine:
    """Some chips of one cluster; the sizes of its dimensions, inner first, multiply to `chips`.

    `slices` counts torus slices joined by the data-centre network (1 elsewhere). `notes` are sentences on how what
    was typed has been read. The short axes of slices that are `twisted` are open here: a line along one does not close on
    itself, and the plain box with open short axes is part of the twisted torus.
    """

    cluster: Cluster
    chip: Chip
    host_link: Link
    chips: int
    dimensions: tuple[Dimension, ...]
    slices: int
    name_as_typed: str
    notes: tuple[str, ...] = ()
    twisted: bool = False

    @property
    def is_torus(self) -> bool:
        """Whether the fast domain is a torus (a TPU slice) and not a switch or a mesh."""
        return self.dimensions[0].kind == "torus"

    @property
    def fabric(self) -> Literal["switches", "torus"]:
        """Which of the two sets of equations describes it: they are called so in the names of generated modules."""
        return "torus" if self.is_torus else "switches"

    @property
    def fast(self) -> tuple[Dimension, ...]:
        """The dimensions of one fast domain: the axes of a slice, or the domain itself."""
        return tuple(dimension for dimension in self.dimensions if dimension.kind not in {"network", "dcn"})

    @property
    def network(self) -> tuple[Dimension, ...]:
        """The dimensions above the fast domain, inner first."""
        return self.dimensions[len(self.fast) :]

    @property
    def unit(self) -> int:
        """Chips in one unit: the block of the network whose uplinks are the tightest, or of its first level.

        The whole machine when it fits one unit.
        """
        chips, tightest, unit = prod(dimension.size for dimension in self.fast), 0.0, 0
        for inner, outer in pairwise(self.network):
            chips *= inner.size
            if outer.size > 1 and outer.oversubscription > tightest:
                tightest, unit = outer.oversubscription, chips
        return unit or self.chips

    @property
    def unit_uplinks(self) -> Dimension | None:
        """The level that joins units, or None when the machine fits one."""
        inside = prod(dimension.size for dimension in self.fast)
        for dimension in self.network:
            if inside == self.unit and dimension.size > 1 and dimension is not self.network[0]:
                return dimension
            inside *= dimension.size
        return None


def parse_machine(on: str, slices: int, catalog: Entries) -> Machine:
    """The machine meant by `on`, a cluster with an optional size as shown above, and a number of torus slices.

    Raises InputError with the nearest valid choice when the name is unknown or the size cannot be had.
    """
    InputError.unless(on, str, "a machine is named by text such as 'dgx-h100:512'")
    name, size = _split_name(on, catalog)
    size, twisted = shapes_of.read_twist(size, on)
    cluster, numbers = _cluster(name, size, on, catalog)
    torus = cluster.scale_up.kind == "torus"
    if slices < 1:
        raise InputError(f"--slices counts slices, 1 or more, not {slices}; leave it out for one slice")
    if prod(numbers) * slices > LARGEST_MACHINE:
        times = f" with {slices} slices" if slices > 1 else ""
        raise InputError(f"{on!r}{times} is larger than what can be asked for, {LARGEST_MACHINE} chips")
    if slices > 1 and not torus:
        raise InputError(
            f"--slices is for torus slices, and {cluster.name} has none; put the size in the name, "
            f"such as {cluster.name}:{_forms(cluster)[0]}"
        )
    if twisted is not None:
        shapes_of.check_twist(cluster, numbers, twisted=twisted)
    if torus:
        dimensions, notes = _torus(cluster, numbers, slices, catalog, twisted=bool(twisted))
    else:
        dimensions, notes = _switched(cluster, numbers, catalog)
    chips = prod(dimension.size for dimension in dimensions)
    if not torus and chips > cluster.largest_chips:
        notes += (
            f"{cluster.name} is described up to {cluster.largest_chips} chips; the same fabric is taken to go on",
        )
    chip, host_link = catalog.chip(cluster.chip), catalog.link(cluster.host_link)
    return Machine(cluster, chip, host_link, chips, dimensions, slices, on, notes, bool(twisted))


def _split_name(on: str, catalog: Entries) -> tuple[str, str | None]:
    """The name of a cluster and, after a colon, the text of its size."""
    plain = unicodedata.normalize("NFKC", on)
    squeezed = re.sub(r"\s+", "", plain)
    if not squeezed or len(on) > 100:
        raise InputError("expected a cluster and its size, such as dgx-h100:512 or tpu-v5p:8x8x8")
    if squeezed != on:
        # Between digits a space may stand for anything: 8 8 is hardly 88.
        hint = "" if re.search(r"[0-9]\s+[0-9]", plain) else _did_you_mean(squeezed, catalog)
        raise InputError(f"{on!r} has spaces or unusual characters; {hint or 'write it like dgx-h100:512'}")
    name, colon, size = on.partition(":")
    return name, size if colon else None


def _did_you_mean(on: str, catalog: Entries) -> str:
    """The end of a sentence that asks whether `on` is meant; nothing when there is no such machine either."""
    try:
        parse_machine(on, 1, catalog)
    except InputError:
        return ""
    return f"did you mean {on}?"


def _cluster(name: str, size: str | None, on: str, catalog: Entries) -> tuple[Cluster, tuple[int, ...]]:
    """The cluster and the numbers of its size; a slice name such as v5p-512 holds both."""
    try:
        cluster = catalog.cluster(name)
    except InputError:
        named = _named_slice(name, catalog) if size is None else None
        if named is None:
            raise
        return named
    if size is None:
        return cluster, ()
    parts = size.lower().split("x")
    if not all(re.fullmatch(r"[0-9]{1,9}", part) and int(part) > 0 for part in parts):
        forms = " or ".join(f"{cluster.name}:{form}" for form in _forms(cluster))
        meant = [part for part in parts if part]
        slipped = meant != parts and all(re.fullmatch(r"[1-9][0-9]{0,8}", part) for part in meant)
        hint = _did_you_mean(f"{cluster.name}:{'x'.join(meant)}", catalog) if meant and slipped else ""
        raise InputError(f"{on[:60]!r} has no usable size: write {forms}" + (f"; {hint}" if hint else ""))
    return cluster, tuple(int(part) for part in parts)


def _forms(cluster: Cluster) -> tuple[str, ...]:
    """Examples of sizes of `cluster`, as they are typed."""
    if cluster.scale_up.kind == "torus":
        shape = shapes_of.smallest(cluster.scale_up, 4 * cluster.chips_per_host)
        return (str(prod(shape)), shape_text(shape))
    size = cluster.scale_up.size
    return (str(4 * size), f"4x{size}") if cluster.network else (str(size),)


def _named_slice(name: str, catalog: Entries) -> tuple[Cluster, tuple[int, ...]] | None:
    """The cluster and chips of one of Google's slice names, or None when `name` is not one."""
    prefix, dash, count = name.lower().rpartition("-")
    if not dash or not re.fullmatch(r"[0-9]{1,9}", count):
        return None
    try:
        cluster = catalog.cluster(prefix)
    except CatalogError:
        raise
    except InputError:
        return None
    scale_up = cluster.scale_up
    if prefix not in scale_up.slice_prefixes:
        return None
    chips, left = divmod(int(count), scale_up.chips_in_slice_name)
    if left or not shapes_of.with_chips(scale_up, chips):
        counts = [n * scale_up.chips_in_slice_name for n in shapes_of.nearest_counts(scale_up, chips)]
        what = "cores, two a chip" if scale_up.chips_in_slice_name == 2 else "chips"
        choices = " or ".join(f"{prefix}-{n}" for n in counts)
        verb = "is" if len(counts) == 1 else "are"
        raise InputError(f"there is no slice {name[:60]!r} (the number counts {what}); the nearest {verb} {choices}")
    return cluster, (chips,)


def _torus(
    cluster: Cluster, numbers: tuple[int, ...], slices: int, catalog: Entries, *, twisted: bool
) -> tuple[tuple[Dimension, ...], tuple[str, ...]]:
    """The axes of one slice and the level above it."""
    scale_up = cluster.scale_up
    shape, notes = shapes_of.read_shape(cluster, numbers)
    wraps = shapes_of.wraps(scale_up, shape)
    if twisted:
        wraps = tuple(length > min(shape) for length in shape)
        notes += (shapes_of.TWISTED_NOTE,)
    link = catalog.link(scale_up.link)
    axes = tuple(
        Dimension(name, "torus", length, wrap, link)
        for name, length, wrap in zip(AXIS_NAMES, shape, wraps, strict=False)
    )
    if not cluster.network:
        if slices > 1:
            raise InputError(f"{cluster.name} has no network between slices; leave out --slices")
        return axes, notes
    return (*axes, Dimension(SLICES, "dcn", slices, False, _seen(cluster.network[0].link, catalog))), notes


def _switched(
    cluster: Cluster, numbers: tuple[int, ...], catalog: Entries
) -> tuple[tuple[Dimension, ...], tuple[str, ...]]:
    """The fast domain and the levels of the network above it."""
    scale_up = cluster.scale_up
    largest = scale_up.size * prod(level.blocks for level in cluster.network)
    if largest and prod(numbers) > largest:
        joins = f"the network joins {largest} chips" if cluster.network else "no network joins its hosts"
        raise InputError(f"{cluster.name} is limited, {joins}: ask for at most {cluster.name}:{largest}")
    used, domains = filled_domains(cluster, numbers)
    notes: tuple[str, ...] = ()
    if not numbers:
        notes += (
            f"without a size, one {'node' if scale_up.size == cluster.chips_per_host else 'domain'} of {used} chips is taken",
        )
    if used < scale_up.size and domains > 1:
        notes += (f"{used} of the {scale_up.size} chips of each of {domains} domains are used",)
    link = catalog.link(scale_up.link)
    kind: Kind = "mesh" if scale_up.kind == "mesh" else "switch"
    domain = Dimension("domain", kind, used, False, link)
    levels, more = _levels(cluster, domains, catalog)
    return (domain, *levels), notes + more


def _seen(name: str, catalog: Entries) -> Link:
    """A link into the network, as what it carries sees it."""
    link = catalog.link(name)
    return link if link.overlay is None else seen_through(link, catalog.assumptions("networks"))


def _levels(cluster: Cluster, domains: int, catalog: Entries) -> tuple[tuple[Dimension, ...], tuple[str, ...]]:
    """The levels of the network, each block of which joins equally many blocks of the level below."""
    levels: list[Dimension] = []
    notes: tuple[str, ...] = ()
    left, oversubscription, levels_below = domains, 1.0, 0
    for level in cluster.network:
        size = left // even_parts(left, level) if level.blocks else left
        link = _seen(level.link, catalog)
        levels.append(Dimension(level.name, "network", size, False, link, oversubscription, levels_below))
        left //= size
        if left == 1:
            continue
        tight = level.oversubscription.value
        if tight > 1 and size < level.blocks:
            notes += (
                f"the blocks of {level.name} are taken to be filled alike: {left} with {size} of {level.blocks} places used",
            )
        oversubscription *= tight
        levels_below += 1
    if left > 1:
        size = prod(level.blocks for level in cluster.network) * cluster.scale_up.size
        raise InputError(
            f"{domains} domains do not spread evenly over the network of {cluster.name}; it joins {size} chips when full: "
            f"ask for {cluster.name}:{size}"
        )
    return tuple(levels), notes
