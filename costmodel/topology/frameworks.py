"""Placements by the name of what makes them: the rank orders of frameworks, and the rule by which JAX lays a mesh on a torus.

    megatron     tp-cp-dp-pp, as Megatron core numbers ranks (its --use-tp-pp-dp-mapping is the order tp-cp-pp-dp)
    torchtitan   the same: its mesh is row-major in pp, dp_replicate, dp_shard, cp, tp
    llama3       tp-cp-pp-dp, as Llama 3 405B was trained: data parallelism outermost
    jax          jax.experimental.mesh_utils with tp as the most intense axis: whole axes of the slice only
    jax-split    the same with allow_split_physical_axes
    best         the fastest of all, which takes a search: it is no rule, and not resolved here

On switches JAX sorts devices by number and reshapes, so that its meshes are the order tp-cp-dp-pp. Several slices are joined
by data parallelism, as in MaxText's hybrid meshes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations, product
from math import prod

from costmodel.errors import InputError
from costmodel.topology.grammar import AXES, Order, Placement, check_order
from costmodel.topology.machine import Machine

BEST = "best"
ORDERS = {
    "megatron": ("tp", "cp", "dp", "pp"),
    "torchtitan": ("tp", "cp", "dp", "pp"),
    "llama3": ("tp", "cp", "pp", "dp"),
}
MESHES = {"jax": False, "jax-split": True}
"""Whether an axis of the slice may be split over several logical ones."""
NAMES = (BEST, *ORDERS, *MESHES)

Sizes = tuple[int, ...]


def order_by_name(name: str, machine: Machine) -> Order | None:
    """The order that a framework numbers ranks in on such a machine; None where it is not by an order."""
    if name in ORDERS:
        return Order(ORDERS[name])
    return Order(AXES) if name in MESHES and not machine.is_torus else None


def by_name(name: str, degrees: Mapping[str, int], machine: Machine) -> Order | Placement:
    """What the framework of that name makes of these degrees; an order leaves out cp where it is 1.

    Raises InputError for `best`, and where JAX would: when an axis of the mesh takes no whole axes of the slice.
    """
    order = order_by_name(name, machine)
    if order is not None:
        return Order(tuple(axis for axis in order.axes if axis != "cp" or degrees.get(axis, 1) > 1))
    if name not in MESHES:
        raise InputError.unknown("placement by name", name, [*ORDERS, *MESHES])
    check_order(Order(AXES), degrees, machine)
    return mesh(degrees, machine, split=MESHES[name])


def mesh(degrees: Mapping[str, int], machine: Machine, *, split: bool) -> Placement:
    """The placement of a mesh by JAX's mesh_utils on a slice, read from jax/_src/mesh_utils.py.

    Axes are served from the most intense, tp, to the least, pp. Each takes as many whole axes of the slice as make up its
    degree, of those the first in the order of axes. Where one finds none and `split`, all are served anew: each takes the
    factors that cover most of whole axes, then most whole axes, then most of axes that are already taken, then of the first
    axes. Inside an axis of the slice the more intense is innermost. Raises InputError where no whole axes do.
    """
    lengths = tuple(dimension.size for dimension in machine.fast)
    sizes = {axis: degrees.get(axis, 1) for axis in AXES}
    if sizes["dp"] % machine.slices:
        near = machine.slices * max(1, sizes["dp"] // machine.slices)
        raise InputError(
            f"placement: jax joins slices by dp, and dp={sizes['dp']} is no multiple of the {machine.slices} slices; "
            f"dp={near} is"
        )
    sizes["dp"] //= machine.slices
    rows = _whole(lengths, tuple(sizes.values()))
    if len(rows) < len(sizes):
        axis = tuple(sizes)[len(rows)]
        if not split:
            shape = "x".join(map(str, lengths))
            raise InputError(
                f"placement: jax gives each mesh axis whole axes of the slice, and of {shape} none that are left make "
                f"{axis}={sizes[axis]}; write placement=jax-split, which splits them, or placement=best"
            )
        rows = _split(lengths, tuple(sizes.values()))
    parts = [
        (dimension.name, tuple((axis, row[place]) for axis, row in zip(sizes, rows, strict=True) if row[place] > 1))
        for place, dimension in enumerate(machine.fast)
    ]
    parts += [(dimension.name, (("dp", dimension.size),)) for dimension in machine.network if dimension.size > 1]
    return Placement(tuple((name, factors) for name, factors in parts if factors))


def _whole(lengths: Sizes, sizes: Sizes) -> list[Sizes]:
    """For each logical axis its factors along the axes of the slice, all or nothing; those up to the first that finds none."""
    free, rows = list(lengths), []
    for size in sizes:
        taken: tuple[int, ...] | None = () if size == 1 else _first_whole(free, size)
        if taken is None:
            break
        rows.append(tuple(length if place in taken else 1 for place, length in enumerate(lengths)))
        for place in taken:
            free[place] = 0
    return rows


def _first_whole(free: Sequence[int], size: int) -> tuple[int, ...] | None:
    for several in range(len(free), 0, -1):
        for places in combinations(range(len(free)), several):
            if prod(free[place] for place in places) == size:
                return places
    return None


def _split(lengths: Sizes, sizes: Sizes) -> list[Sizes]:
    taken, rows = (1,) * len(lengths), []
    for size in sizes:
        rows.append(_preferred(lengths, taken, size))
        taken = tuple(before * here for before, here in zip(taken, rows[-1], strict=True))
    return rows


@lru_cache(maxsize=4096)
def _preferred(lengths: Sizes, taken: Sizes, size: int) -> Sizes:
    """The factors that JAX prefers for one logical axis, when `taken` of each axis of the slice is already given away."""

    def preference(ways: Sizes) -> tuple[int, int, int, Sizes]:
        whole = [factor for factor, length in zip(ways, lengths, strict=True) if factor == length > 1]
        shared = prod(factor for factor, before in zip(ways, taken, strict=True) if before > 1)
        return prod(whole), len(whole), shared, ways

    left = [length // before for length, before in zip(lengths, taken, strict=True)]
    divisors = [[factor for factor in range(1, room + 1) if room % factor == 0] for room in left]
    return max((ways for ways in product(*divisors) if prod(ways) == size), key=preference)
