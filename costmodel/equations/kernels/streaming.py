"""What streams of operands have in common: how much of them the last-level cache gives, and how they overlap with products."""

from costmodel.symbolic import cube_root, largest, smallest
from costmodel.symbolic.nodes import Expression


def share_in_cache(in_turn: Expression, capacity: Expression, reach: Expression) -> Expression:
    """Share of what is read that lies in the last-level cache when `in_turn` bytes are read before any comes again.

    All of what fits it, none from `reach` times its capacity on, linear between.
    """
    return largest(0, smallest(1, (reach - in_turn / capacity) / (reach - 1)))


def cached_slowness(cached: Expression, speedup: Expression) -> Expression:
    """Time of a stream over that of one from memory, when a share of it comes `speedup` times as fast from the cache."""
    return 1 - cached + cached / speedup


def overlapped(products: Expression, stream: Expression) -> Expression:
    """Time of products and of the memory stream that feeds them: the larger where they differ, a quarter more where equal.

    Measured kernels near the ridge follow the cube root of the sum of cubes: see docs/explanation/kernels.md.
    """
    return cube_root(products**3 + stream**3)
