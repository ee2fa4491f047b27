"""How a placement is written.

    tp-dp-pp                                  an order, fastest first: ranks are numbered along tp, then dp, then pp
    domain:tp8/leaf:dp32/spine:dp4.pp16       each dimension of the machine, inner first, and what fills it, innermost first
    x:tp4.dp4/y:dp20/z:dp28

`network` stands for all levels of the network at once, domain:tp8/network:dp128.pp16, and a level that is left out is filled
together with the next one named, domain:tp8/spine:dp128.pp16. `slices` are the slices of a torus machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd, prod

from costmodel.errors import InputError, nearest
from costmodel.topology.machine import Dimension, Machine

AXES = ("tp", "cp", "dp", "pp")
EXAMPLES = (
    "an order such as tp-dp-pp, a placement such as domain:tp8/network:dp32 or x:tp4.dp4/y:dp16, or where each axis lies, such "
    "as tp:x,fsdp:yz"
)
NETWORK = "network"

LONGEST = 300
"""Letters of a placement."""
_PART = re.compile(r"([a-z][a-z0-9-]*):([^:/]+)")
_FACTOR = re.compile(r"([a-z]+)([0-9]{1,7})")

Factors = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Order:
    """Logical axes, fastest first; one that is not named has degree 1."""

    axes: tuple[str, ...]

    def __str__(self) -> str:
        return "-".join(self.axes)


@dataclass(frozen=True, slots=True)
class Placement:
    """For each dimension, or run of network levels, its name and its factors, innermost first; factors of 1 are left out.

    On a single chip nothing is left: it is written as an order, which says as little.
    """

    parts: tuple[tuple[str, Factors], ...]

    def __str__(self) -> str:
        parts = (f"{name}:{'.'.join(f'{axis}{size}' for axis, size in factors)}" for name, factors in self.parts)
        return "/".join(parts) or "-".join(AXES)

    def degrees(self) -> dict[str, int]:
        """The degree of each axis that the placement names."""
        found: dict[str, int] = {}
        for _, factors in self.parts:
            for axis, size in factors:
                found[axis] = found.get(axis, 1) * size
        return found


@dataclass(frozen=True, slots=True)
class Filled:
    """A run of dimensions that are filled together: usually one, or several levels of the network."""

    name: str
    dimensions: tuple[Dimension, ...]
    factors: Factors


def parse_placement(text: str, axes: Sequence[str] = AXES) -> Order | Placement:
    """What `text` says, an order or a placement of `axes`.

    Raises InputError when it follows neither form or names an axis that is none of `axes`.
    """
    if not text.strip() or len(text) > LONGEST:
        raise InputError(f"expected {EXAMPLES}")
    if ":" not in text:
        return _order(text, axes)
    parts: list[tuple[str, Factors]] = []
    for part in text.split("/"):
        match = _PART.fullmatch(part)
        if match is None:
            raise InputError(f"placement: {part[:40]!r} is not a dimension and its factors; expected {EXAMPLES}")
        name, factors = match[1], _factors(match[2], match[1], axes)
        if name in {earlier for earlier, _ in parts}:
            raise InputError(f"placement: {name} is filled twice; name it once, such as {name}:tp4.dp2")
        if factors:
            parts.append((name, factors))
    return Placement(tuple(parts))


def filled(machine: Machine, placement: Placement, degrees: Mapping[str, int]) -> tuple[Filled, ...]:
    """The dimensions of `machine` with what `placement` puts there, inner first.

    Raises InputError, with the nearest legal placement, when a dimension is unknown, not filled or overfilled, or an axis
    does not get its degree.
    """
    factors_by_name = dict(placement.parts)
    check_names(machine, set(factors_by_name))
    runs = [
        Filled(name, dimensions, factors_by_name.get(named, ()))
        for name, named, dimensions in named_runs(machine, set(factors_by_name))
    ]
    for run in runs:
        size, product = _size(run.dimensions), prod(factor for _, factor in run.factors)
        if product != size:
            given = ".".join(f"{axis}{factor}" for axis, factor in run.factors) or "nothing"
            raise InputError(
                f"placement: {run.name} joins {size} and {given} makes {product}; {_nearest(machine, degrees, run, size)}"
            )
    found = placement.degrees()
    for axis in sorted(set(found) | set(degrees)):
        if found.get(axis, 1) != degrees.get(axis, 1):
            raise InputError(
                f"placement: it makes {axis}={found.get(axis, 1)} where the layout has {axis}={degrees.get(axis, 1)}"
                f"; {_nearest(machine, degrees)}"
            )
    inner_first = Placement(tuple((run.name, run.factors) for run in runs if run.factors))
    if placement != inner_first:
        raise InputError(f"placement: dimensions are named inner first; write {inner_first}")
    return tuple(runs)


def named_runs(machine: Machine, names: set[str]) -> list[tuple[str, str, tuple[Dimension, ...]]]:
    """Dimensions that are filled together when these are named, inner first: what messages call each, its name of these.

    Levels of the network that are left out are filled together with the next one named.
    """
    runs: list[tuple[str, str, tuple[Dimension, ...]]] = []
    waiting: list[Dimension] = []
    for dimension in machine.dimensions:
        waiting.append(dimension)
        named = NETWORK if dimension.kind == "network" and NETWORK in names else dimension.name
        last = dimension is machine.dimensions[-1]
        if dimension.kind == "network" and not last and (named == NETWORK or named not in names):
            continue
        runs.append((named if named in names else _spoken_name(machine, waiting), named, tuple(waiting)))
        waiting = []
    return runs


def fill(machine: Machine, order: Sequence[str], degrees: Mapping[str, int]) -> Placement:
    """The placement of ranks numbered along the axes of `order`, fastest first.

    Raises InputError when an axis ends inside a dimension at a place that does not divide it.
    """
    check_order(Order(tuple(order)), degrees, machine)
    parts: list[tuple[str, Factors]] = []
    queue = [(axis, degrees.get(axis, 1)) for axis in order]
    for dimension in machine.dimensions:
        room, factors = dimension.size, []
        while room > 1:
            axis, left = queue[0]
            taken = min(room, left)
            if max(room, left) % taken:
                raise InputError(
                    f"placement: in the order {'-'.join(order)}, {axis}={degrees[axis]} ends inside {dimension.name}, "
                    f"where {room} are left and {left} wanted; {_nearest_degree(axis, gcd(room, left), left, degrees[axis])}"
                )
            if taken > 1:
                factors.append((axis, taken))
            room //= taken
            queue[0] = (axis, left // taken)
            if queue[0][1] == 1:
                queue.pop(0)
        if factors:
            parts.append((dimension.name, tuple(factors)))
    return Placement(tuple(parts))


def check_order(order: Order, degrees: Mapping[str, int], machine: Machine) -> None:
    """Raise InputError unless `order` names every axis that has a degree, and the degrees multiply to the chips."""
    missing = [axis for axis, degree in degrees.items() if degree > 1 and axis not in order.axes]
    if missing:
        raise InputError(f"placement: the order {order} leaves out {missing[0]}; write {order}-{'-'.join(missing)}")
    chips = prod(degrees.values())
    if chips != machine.chips:
        shown = " ".join(f"{axis}={degree}" for axis, degree in degrees.items())
        fitting = [axis for axis, degree in degrees.items() if machine.chips % (chips // degree) == 0]
        axis = "dp" if "dp" in fitting else fitting[0] if fitting else ""
        hint = f"; {axis}={machine.chips // (chips // degrees[axis])} fits" if axis else ""
        raise InputError(f"{shown} makes {chips} ranks, and {machine.name_as_typed} has {machine.chips} chips{hint}")


def run_name(machine: Machine, dimensions: Sequence[Dimension]) -> str:
    """What a run of dimensions that are filled together is called: `network`, or its outermost one longer than 1."""
    if tuple(dimensions) == machine.network and not machine.is_torus:
        return NETWORK
    return next((dimension.name for dimension in reversed(dimensions) if dimension.size > 1), dimensions[-1].name)


def _spoken_name(machine: Machine, dimensions: Sequence[Dimension]) -> str:
    """What messages call a run that nobody named: the one of its dimensions that joins anything, or else as a whole."""
    joining = [dimension.name for dimension in dimensions if dimension.size > 1]
    return joining[0] if len(joining) == 1 else run_name(machine, dimensions)


def check_names(machine: Machine, names: set[str]) -> None:
    """Raise InputError, with the names that there are, unless the machine has dimensions of these names."""
    levels = [] if machine.is_torus else [dimension.name for dimension in machine.network]
    unknown = names - {dimension.name for dimension in machine.dimensions} - ({NETWORK} if levels else set())
    # Of levels that join nothing in a machine of this size, a person need not hear.
    joining = [dimension.name for dimension in machine.dimensions if dimension.size > 1]
    if unknown:
        known = joining or [machine.dimensions[0].name]
        meant = nearest(min(unknown), [*known, *([NETWORK] if levels else [])])
        raise InputError.unknown("dimension in a placement", min(unknown), meant or known)
    if NETWORK in names - set(levels) and names & set(levels):
        stands_for = [level for level in levels if level in names or level in joining]
        raise InputError(f"placement: network stands for {', '.join(stands_for)}; name it alone, or each of them")


def _order(text: str, axes: Sequence[str]) -> Order:
    names = text.split("-")
    for name in names:
        if name not in axes:
            if re.fullmatch(r"[a-z]{1,20}", name):
                raise InputError.unknown("axis in a placement", name, axes)
            raise InputError(f"placement: {text[:60]!r} is not understood; expected {EXAMPLES}")
    if len(set(names)) < len(names):
        raise InputError(f"placement: an order names each axis once; write {'-'.join(dict.fromkeys(names))}")
    return Order(tuple(names))


def _factors(text: str, dimension: str, axes: Sequence[str]) -> Factors:
    factors: list[tuple[str, int]] = []
    for word in text.split("."):
        match = _FACTOR.fullmatch(word)
        if match is None or int(match[2]) == 0:
            raise InputError(f"placement: {word[:40]!r} in {dimension} is not an axis and its factor, such as tp4")
        axis, factor = match[1], int(match[2])
        if axis not in axes:
            raise InputError.unknown("axis in a placement", axis, axes)
        if axis in {earlier for earlier, _ in factors}:
            raise InputError(f"placement: {axis} stands twice in {dimension}; give it one factor there")
        factors.append((axis, factor))
    return tuple((axis, factor) for axis, factor in factors if factor > 1)


def _size(dimensions: Sequence[Dimension]) -> int:
    return prod(dimension.size for dimension in dimensions)


def _nearest(machine: Machine, degrees: Mapping[str, int], run: Filled | None = None, size: int = 1) -> str:
    """The end of a sentence that says what would do: the plain order's placement, or else factors that fill the run."""
    if prod(degrees.values()) == machine.chips:
        for order in (tuple(degrees), tuple(reversed(tuple(degrees)))):
            try:
                return f"write {fill(machine, order, degrees)}"
            except InputError:
                continue
    if run is None:
        return f"{machine.name_as_typed} has {machine.chips} chips"
    left, factors = size, []
    for axis, factor in run.factors:
        factors.append((axis, gcd(factor, left)))
        left //= factors[-1][1]
    axis, factor = factors.pop() if factors else (next(iter(degrees), "dp"), 1)
    factors.append((axis, factor * left))
    return f"write {Placement(((run.name, tuple((a, f) for a, f in factors if f > 1)),))}"


def _nearest_degree(axis: str, common: int, left: int, degree: int) -> str:
    return (
        f"{axis}={degree // left * common} fits"
        if common > 1 or degree // left > 1
        else "write the placement out, such as x:tp4.dp4/y:dp16"
    )
