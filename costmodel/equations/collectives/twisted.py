"""A twisted torus: the short axes of a slice close half way along the doubled ones.

Of k x k x 2k chips both short axes close k further along the long one, of k x 2k x 2k the short axis k further along both long
ones. Seen from every chip and along every axis such a slice looks the same (a face-centred and a body-centred cubic lattice,
as Camarero, Martinez and Beivide 2015 call them), so that traffic among all of its chips loads all cables alike.
"""

from costmodel.symbolic import Chapter, count, equation, floor_divide, given, select

SEARCHED = (
    "a breadth-first search for k from 2 to 12 and cable loads of all shortest ways, tests/simulators/twisted.py; no routing "
    "loads the busiest cable less than the mean"
)


class TwistedSlice(Chapter):
    """What an exchange among all chips of one twisted slice needs to know of it."""

    twist = given(
        count, "axes twice as long as the shortest, 1 or 2, of a twisted slice; 0 of a plain one", owner="cluster"
    )
    twist_side = given(count, "chips along the shortest axis of a twisted slice (k); 1 of a plain one", owner="cluster")

    twist_odd = equation(count, twist_side - 2 * floor_divide(twist_side, 2), "1 when that is odd")
    twisted_chips = equation(
        count,
        select(twist > 0, select(twist > 1, 4, 2) * twist_side**3, 0),
        "chips of a twisted slice; 0 of a plain one",
    )
    twisted_mean_hops = equation(
        count,
        select(
            twist > 1,
            35 * twist_side / 32 - 1 / (4 * twist_side) - twist_odd * (6 * twist_side**2 - 3) / (32 * twist_side**3),
            7 * twist_side / 8 - 1 / (4 * twist_side) - twist_odd / (8 * twist_side**3),
        ),
        "cables from a chip to another, on average over all, itself among them",
        source=SEARCHED,
    )
    twisted_blocks = equation(
        count, twisted_mean_hops / 6, "payloads over a cable in an all-to-all among all chips", source=SEARCHED
    )
    twisted_hops = equation(count, floor_divide(3 * twist_side, 2), "cables to the farthest chip", source=SEARCHED)
