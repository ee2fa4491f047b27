"""Torus slices: which shapes can be had, which axes wrap, and the nearest legal shape.

Rules checked against the 223 slices of MaxText's table of accelerators: 2D (v5e, v6e) an axis wraps when it is 16 long;
3D (v4, v5p, tpu7x) all axes wrap when every length is a multiple of 4, else none.
"""

from __future__ import annotations

from functools import lru_cache
from math import log, prod

from costmodel.catalog.entries import Cluster, ScaleUp, has_twist, shape_text
from costmodel.errors import InputError

Shape = tuple[int, ...]

TWISTS = {"twisted": True, "untwisted": False}
"""What can follow a shape, and whether it is twisted then."""
TWISTED_NOTE = (
    "twisted torus: groups of all chips of a slice use it as it is; smaller groups are taken in the box with open short axes, "
    "which it contains, so that they need at most the time given"
)

_SIDE_OF_CUBE = 4


def wraps(scale_up: ScaleUp, shape: Shape) -> tuple[bool, ...]:
    """Which axes of a slice close on themselves. An axis shorter than 3 has a single cable, so that it never does."""
    rule = scale_up.wrap_rule
    if rule == "multiple-of-4":
        closed = [all(length % _SIDE_OF_CUBE == 0 for length in shape)] * len(shape)
    elif rule.startswith("exactly-"):
        closed = [length == int(rule.removeprefix("exactly-")) for length in shape]
    elif rule in {"always", "never"}:
        closed = [rule == "always"] * len(shape)
    else:
        raise InputError(f"unknown wrap rule {rule!r} of a torus; expected multiple-of-4, exactly-N, always or never")
    return tuple(wrap and length > 2 for wrap, length in zip(closed, shape, strict=True))


@lru_cache(maxsize=16)
def legal(scale_up: ScaleUp) -> frozenset[Shape]:
    """All shapes that can be had, shortest axis first.

    They are the named ones, the whole pod and, where switches join cubes of 4x4x4 freely, every box of whole cubes that
    the pod has cubes for: 4x8x64 exists although no side of a v5p pod is 64 long.
    """
    shapes = {tuple(sorted(shape)) for shape in (*scale_up.shapes, scale_up.largest)}
    if scale_up.wrap_rule == "multiple-of-4":
        cubes = prod(scale_up.largest) // _SIDE_OF_CUBE**scale_up.axes
        for box in _boxes(scale_up.axes, cubes):
            shapes.add(tuple(_SIDE_OF_CUBE * length for length in box))
    return frozenset(shapes)


def read_twist(size: str | None, on: str) -> tuple[str | None, bool | None]:
    """The size without the ending that says whether a slice is twisted, and that; None where nothing is said.

    Raises InputError for another ending.
    """
    if size is None or "_" not in size:
        return size, None
    shape, _, ending = size.lower().partition("_")
    if ending not in TWISTS:
        raise InputError(
            f"{on[:60]!r} is not a slice: after the shape only _twisted or _untwisted can stand, such as 4x4x8_twisted"
        )
    return shape, TWISTS[ending]


def check_twist(cluster: Cluster, numbers: tuple[int, ...], *, twisted: bool) -> None:
    """Raise InputError, with the shapes that can be twisted, where a twisted slice of that shape cannot be had."""
    offered = cluster.scale_up.twists
    if offered is None:
        kind = "slices are" if cluster.scale_up.kind == "torus" else "domains are no torus and"
        raise InputError(
            f"{cluster.name}: its {kind} not offered twisted, as far as is published; leave out _{'' if twisted else 'un'}twisted"
        )
    near = " or ".join(f"{cluster.name}:{shape_text(shape)}_twisted" for shape in offered.shapes)
    if len(numbers) != cluster.scale_up.axes:
        raise InputError(f"{cluster.name}: say the shape of a twisted slice, such as {near.split(' or ')[0]}")
    if twisted and tuple(sorted(numbers)) not in offered.shapes:
        raise InputError(
            f"{cluster.name}:{shape_text(numbers[:6])} cannot be twisted: {_why_not_twisted(numbers)}; these can: {near}"
        )


def _why_not_twisted(numbers: Shape) -> str:
    if has_twist(numbers):
        return "it is not among the shapes that are offered so"
    return "a twist needs one or two axes that are twice as long as the others, k x k x 2k or k x 2k x 2k"


def with_chips(scale_up: ScaleUp, chips: int) -> Shape | None:
    """The standard slice of that many chips: the named one, or else the one nearest a cube; None when there is none."""
    named = [shape for shape in scale_up.shapes if prod(shape) == chips]
    return min(named or [shape for shape in legal(scale_up) if prod(shape) == chips], key=_elongation, default=None)


def smallest(scale_up: ScaleUp, chips: int) -> Shape:
    """The standard slice with the fewest chips that has at least `chips`, or the whole pod."""
    counts = [count for count in _counts(scale_up) if count >= chips]
    return (with_chips(scale_up, min(counts)) if counts else None) or scale_up.largest


def nearest_counts(scale_up: ScaleUp, chips: int) -> list[int]:
    """The next smaller and the next larger number of chips that a slice can have."""
    counts = _counts(scale_up)
    below = [count for count in counts if count < chips]
    above = [count for count in counts if count > chips]
    return below[-1:] + above[:1]


def nearest_shapes(scale_up: ScaleUp, shape: Shape) -> list[Shape]:
    """Up to three legal shapes whose lengths are the most like those of `shape`, by ratio."""
    wanted = sorted([1] * scale_up.axes + list(shape))[-scale_up.axes :]

    def distance(candidate: Shape) -> tuple[float, Shape]:
        return sum(abs(log(have / want)) for have, want in zip(candidate, wanted, strict=True)), candidate

    return sorted(legal(scale_up), key=distance)[:3]


def read_shape(cluster: Cluster, numbers: tuple[int, ...]) -> tuple[Shape, tuple[str, ...]]:
    """The slice meant by `numbers`: none (one host), a count of chips or a shape; with notes on how it was read.

    Raises InputError, with the nearest legal choices, when there is no such slice.
    """
    scale_up = cluster.scale_up
    notes: tuple[str, ...] = ()
    if not numbers:
        shape = smallest(scale_up, cluster.chips_per_host)
        notes += (f"without a size, the slice {shape_text(shape)} of {prod(shape)} chips is taken",)
    elif len(numbers) == 1:
        found = with_chips(scale_up, numbers[0])
        if found is None:
            near = " or ".join(f"{cluster.name}:{count}" for count in nearest_counts(scale_up, numbers[0]))
            raise InputError(
                f"no slice of {cluster.name} has {numbers[0]} chips; the nearest: {near}{_several(scale_up, numbers[0])}"
            )
        shape = found
        if prod(shape) > 1:
            notes += (f"{numbers[0]} chips are taken as the slice {shape_text(shape)}",)
    else:
        shape = numbers
        if tuple(sorted(shape)) not in legal(scale_up):
            near = " or ".join(
                f"{cluster.name}:{shape_text(candidate)}" for candidate in nearest_shapes(scale_up, shape)
            )
            raise InputError(
                f"{cluster.name}:{shape_text(shape[:6])} is not a slice: {_why_not(cluster, shape)}; the nearest: {near}"
            )
    limit = prod(scale_up.job_limit) if scale_up.job_limit else prod(shape)
    if prod(shape) > limit:
        notes += (
            f"{shape_text(shape)} exists as hardware, but one job is scheduled on up to {shape_text(scale_up.job_limit)}, {limit} chips",
        )
    return shape, notes


def _why_not(cluster: Cluster, shape: Shape) -> str:
    scale_up = cluster.scale_up
    pod = prod(scale_up.largest)
    if len(shape) != scale_up.axes:
        return f"its slices have {scale_up.axes} axes"
    if prod(shape) > pod:
        return f"it has {prod(shape)} chips and a whole pod, {shape_text(scale_up.largest)}, {pod}{_several(scale_up, prod(shape))}"
    if scale_up.wrap_rule == "multiple-of-4":
        few = [shape_text(named) for named in sorted(scale_up.shapes, key=prod) if any(length % 4 for length in named)]
        except_for = f", except for {', '.join(few)}" if few else ""
        return f"its slices are whole cubes of 4x4x4, so that every length is a multiple of 4{except_for}"
    return f"the shapes are {', '.join(shape_text(named) for named in sorted(legal(scale_up), key=prod))}"


def _several(scale_up: ScaleUp, chips: int) -> str:
    """A hint at several slices where one pod is too small."""
    pod = prod(scale_up.largest)
    return "" if chips <= pod else f" (--slices {-(-chips // pod)} asks for several, joined by the data-center network)"


def _elongation(shape: Shape) -> tuple[float, Shape]:
    return max(shape) / min(shape), shape


def _counts(scale_up: ScaleUp) -> list[int]:
    return sorted({prod(shape) for shape in legal(scale_up)})


def _boxes(axes: int, volume: int, shortest: int = 1) -> list[Shape]:
    """All boxes of at most `volume` unit cubes, shortest axis first."""
    if axes == 0:
        return [()]
    found: list[Shape] = []
    side = shortest
    while side**axes <= volume:
        found += [(side, *rest) for rest in _boxes(axes - 1, volume // side, side)]
        side += 1
    return found
