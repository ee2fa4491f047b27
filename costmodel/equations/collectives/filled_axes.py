"""A group of ranks on a torus divided in two: inner ranks fill axis after axis, outer ones take what is left."""

from collections.abc import Mapping
from itertools import product

from costmodel.symbolic import Chapter, both, count, equation, given, holds, largest, select, smallest
from costmodel.symbolic.nodes import Expression
from costmodel.symbolic.system import View

SPREADS = ("size_x", "size_y", "size_z", "slices")
"""Along what a group on a torus spreads."""

NUMBERS = (*(f"{number}_{axis}" for number, axis in product(("size", "stride", "ring"), "xyz")), "slices")
"""What describes a group on a torus: size, stride and ring along each axis, and the slices that it spans."""


class FilledAxes(Chapter):
    """`degree` inner ranks of a group, and the groups of them."""

    degree = given(count, "inner ranks")
    size_x = given(count, "ranks of the whole group along X")
    size_y = given(count, "ranks of the whole group along Y")
    size_z = given(count, "ranks of the whole group along Z")
    stride_x = given(count, "chips from one rank to the next along X")
    stride_y = given(count, "chips from one rank to the next along Y")
    stride_z = given(count, "chips from one rank to the next along Z")
    ring_x = given(count, "1 when the whole group closes to a ring along X")
    ring_y = given(count, "1 when the whole group closes to a ring along Y")
    ring_z = given(count, "1 when the whole group closes to a ring along Z")
    slices = given(count, "slices that the whole group spans")

    inner_size_x = equation(
        count, smallest(degree, size_x), "inner ranks along X", valid="powers of two, or one of the parts is all"
    )
    inner_size_y = equation(count, smallest(degree / inner_size_x, size_y), "inner ranks along Y")
    inner_size_z = equation(count, smallest(degree / (inner_size_x * inner_size_y), size_z), "inner ranks along Z")
    inner_slices = equation(
        count, degree / (inner_size_x * inner_size_y * inner_size_z), "slices that the inner ranks span"
    )
    outer_size_x, outer_size_y, outer_size_z = (
        equation(count, size / inner, f"outer ranks along {a}")
        for a, size, inner in (("X", size_x, inner_size_x), ("Y", size_y, inner_size_y), ("Z", size_z, inner_size_z))
    )
    outer_slices = equation(count, slices / inner_slices, "slices that the outer ranks span")
    inner_stride_x, inner_stride_y, inner_stride_z = (
        equation(count, select(inner > 1, stride, 1), f"chips from one inner rank to the next along {a}")
        for a, inner, stride in (
            ("X", inner_size_x, stride_x),
            ("Y", inner_size_y, stride_y),
            ("Z", inner_size_z, stride_z),
        )
    )
    outer_stride_x, outer_stride_y, outer_stride_z = (
        equation(count, select(outer > 1, inner * stride, 1), f"chips from one outer rank to the next along {a}")
        for a, outer, inner, stride in (
            ("X", outer_size_x, inner_size_x, stride_x),
            ("Y", outer_size_y, inner_size_y, stride_y),
            ("Z", outer_size_z, inner_size_z, stride_z),
        )
    )
    inner_ring_x, inner_ring_y, inner_ring_z = (
        equation(count, select(inner >= size, ring, 0), f"1 when the inner ranks along {a} close to a ring")
        for a, inner, size, ring in (
            ("X", inner_size_x, size_x, ring_x),
            ("Y", inner_size_y, size_y, ring_y),
            ("Z", inner_size_z, size_z, ring_z),
        )
    )
    outer_ring_x, outer_ring_y, outer_ring_z = (
        equation(count, select(outer > 1, ring, 0), f"1 when the outer ranks along {a} close to a ring")
        for a, outer, ring in (
            ("X", outer_size_x, ring_x),
            ("Y", outer_size_y, ring_y),
            ("Z", outer_size_z, ring_z),
        )
    )


def inner(divided: View) -> dict[str, Expression]:
    """The inner ranks, as a group."""
    return {number: getattr(divided, f"inner_{number}") for number in NUMBERS}


def outer(divided: View) -> dict[str, Expression]:
    """The outer ranks, as a group."""
    return {number: getattr(divided, f"outer_{number}") for number in NUMBERS}


def meet(first: Mapping[str, Expression], second: Mapping[str, Expression]) -> Expression:
    """1 where two groups share links: both spread along an axis, or over slices."""
    return largest(*(holds(both(first[spread] > 1, second[spread] > 1)) for spread in SPREADS))
