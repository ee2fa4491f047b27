"""What odd sizes cost on matrix units: operands are read in whole vectors, and tiles of powers of two divide even sizes best."""

from costmodel.symbolic import both, divides, holds
from costmodel.symbolic.nodes import Expression

EVEN = (64, 32, 16, 8, 4, 2)
"""What both sizes of an operand in memory should be multiples of, best first."""
VECTOR = 8
"""16 bytes of 16-bit numbers: smaller pieces feed the matrix units too slowly."""


def misalignment(columns: Expression, features: Expression, slope: Expression, short_vectors: Expression) -> Expression:
    """Factor on the time of a product by the two sizes along which its operands lie.

    `slope` more for each halving of the largest power of two, up to 64, that divides both; `short_vectors` times as long for
    each below 8.
    """
    odd = {size: 1 - holds(both(divides(size, columns), divides(size, features))) for size in EVEN}
    factor = 1 + slope * sum(odd.values())
    for size in EVEN:
        if size <= VECTOR:
            factor *= 1 + (short_vectors - 1) * odd[size]
    return factor
