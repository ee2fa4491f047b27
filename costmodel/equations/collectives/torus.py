"""A torus of two-way links, and the part of it that one group of ranks uses.

A group takes a factor of one or more axes of the torus. On an axis it is described by the factor's size, by its stride (how
many chips of other groups lie between two of its own) and by whether the factor closes to a ring; `SubAxis` turns these into
the numbers that the times are made of.
"""

from costmodel.equations.collectives.backwards import ThereAndBack
from costmodel.equations.collectives.sources import CABLE_BY_CABLE as COUNTED
from costmodel.symbolic import (
    Chapter,
    bytes_,
    bytes_per_second,
    count,
    equation,
    floor_divide,
    given,
    largest,
    part,
    seconds,
    select,
    smallest,
)

SUBSETS = (
    "the loads reachable by mixing orders of axes are a contra-polymatroid; equals linear programs over all routings"
)
ORDERS = "counted cable by cable; what one fixed division of the bytes over the orders of axes gives"


class SubAxis(Chapter):
    """What a group has of one axis: `size` ranks, `stride` chips apart, closed to a `ring` (1) or not (0).

    Only the outermost factor of a wrapped axis can be a ring. Groups that interleave share the same cables: that is the
    division by the stride. An axis of two chips has one cable and is no ring.
    """

    size = given(count, "ranks of the group along the axis")
    stride = given(count, "chips from one rank to the next")
    ring = given(count, "1 when the ranks close to a ring, else 0")

    used = equation(count, select(size > 1, 1, 0), "1 when the group spreads along the axis")
    closed = equation(
        count,
        select(size * stride > 2, ring, 0),
        "1 for a ring; two chips have one cable, two ranks farther apart two ways",
    )
    links = equation(count, used * (1 + closed) / stride, "links that the group has for itself, each way")
    hops = equation(count, stride * select(closed > 0, floor_divide(size, 2), size - 1), "cables to the farthest rank")
    ways = equation(
        count,
        used * select(closed > 0, 2 - size + 2 * floor_divide(size, 2), 1),
        "shortest ways to it: two where it lies half way round a ring",
    )
    shards = equation(
        count, (size - 1) * stride / (1 + closed), "shards that each of its links carries in an all-gather"
    )
    blocks = equation(
        count,
        floor_divide(size**2, 4) * stride / (size * (1 + closed)),
        "payloads that the middle cables carry in an all-to-all",
        source=COUNTED,
    )


class TorusLoads(Chapter):
    """What a link carries, as a multiple of the payload, when a group spreads over up to three axes.

    Gathering over several axes, the payload is divided over the orders in which they can be taken. Divided best, the set of
    axes with the least links for what it must receive decides, nearly always all of them together: "axes add".
    Dividing evenly over the rotated orders is as good for equal axes, up to 2.7 times worse for very unequal ones.
    """

    size_x = given(count, "ranks of the group along X")
    size_y = given(count, "ranks of the group along Y")
    size_z = given(count, "ranks of the group along Z")
    stride_x = given(count, "chips from one rank to the next along X")
    stride_y = given(count, "chips from one rank to the next along Y")
    stride_z = given(count, "chips from one rank to the next along Z")
    ring_x = given(count, "1 when the ranks along X close to a ring, else 0")
    ring_y = given(count, "1 when the ranks along Y close to a ring, else 0")
    ring_z = given(count, "1 when the ranks along Z close to a ring, else 0")
    twisted = given(count, "1 when the ranks are all chips of a twisted slice, else 0")
    twisted_blocks = given(count, "payloads over a cable of such a slice in an all-to-all")
    twisted_hops = given(count, "cables to its farthest chip")

    # Along each of its axes a twisted slice closes: to rings of twice the short axis for the first that is taken, to plain ones
    # of what is left for the others.
    x = part(SubAxis, size=size_x, stride=stride_x, ring=select(twisted > 0, 1, ring_x))
    y = part(SubAxis, size=size_y, stride=stride_y, ring=select(twisted > 0, 1, ring_y))
    z = part(SubAxis, size=size_z, stride=stride_z, ring=select(twisted > 0, 1, ring_z))

    ranks = equation(count, size_x * size_y * size_z, "ranks in the group")
    hops = equation(count, x.hops + y.hops + z.hops, "cables to the farthest rank")
    stride = equation(
        count, largest(x.used * stride_x, y.used * stride_y, z.used * stride_z), "cables to the farthest neighbour"
    )

    best_load = equation(
        count,
        largest(
            x.shards,
            y.shards,
            z.shards,
            select(size_x * size_y > 1, (size_x * size_y - 1) / (x.links + y.links), 0),
            select(size_y * size_z > 1, (size_y * size_z - 1) / (y.links + z.links), 0),
            select(size_z * size_x > 1, (size_z * size_x - 1) / (z.links + x.links), 0),
            select(ranks > 1, (ranks - 1) / (x.links + y.links + z.links), 0),
        )
        / ranks,
        "payloads over a link in an all-gather, divided best over the orders of axes",
        source=SUBSETS,
    )

    axes = equation(count, x.used + y.used + z.used, "axes that the group spreads along")
    before_x = equation(
        count,
        select(axes > 2, (1 + size_z + size_y * size_z) / 3, (1 + size_y * size_z) / 2),
        "ranks that hold the same when X is taken, on average over the rotated orders",
    )
    before_y = equation(
        count,
        select(axes > 2, (1 + size_x + size_z * size_x) / 3, (1 + size_z * size_x) / 2),
        "ranks that hold the same when Y is taken, on average over the rotated orders",
    )
    before_z = equation(
        count,
        select(axes > 2, (1 + size_y + size_x * size_y) / 3, (1 + size_x * size_y) / 2),
        "ranks that hold the same when Z is taken, on average over the rotated orders",
    )
    even_load = equation(
        count,
        select(
            twisted > 0,
            (1 - 1 / ranks) / 6,
            largest(x.shards * before_x, y.shards * before_y, z.shards * before_z) / ranks,
        ),
        "payloads over a link in an all-gather, divided evenly over the rotated orders of axes",
        source=ORDERS,
    )
    ordered_load = equation(
        count,
        smallest(
            x.shards + size_x * (y.shards + size_y * z.shards),
            x.shards + size_x * (z.shards + size_z * y.shards),
            y.shards + size_y * (z.shards + size_z * x.shards),
            y.shards + size_y * (x.shards + size_x * z.shards),
            z.shards + size_z * (x.shards + size_x * y.shards),
            z.shards + size_z * (y.shards + size_y * x.shards),
        )
        / ranks,
        "payloads over a link in an all-gather, axis after axis in the best order",
        source=ORDERS,
    )
    box_blocks = equation(
        count, largest(x.blocks, y.blocks, z.blocks), "payloads over a middle cable of a plain box", source=COUNTED
    )
    blocks = equation(
        count,
        select(twisted > 0, twisted_blocks, box_blocks),
        "payloads over a middle cable in an all-to-all",
        source=COUNTED,
    )
    exchange_hops = equation(
        count, select(twisted > 0, twisted_hops, hops), "cables to the farthest rank by the shortest way"
    )


PLAIN = {"twisted": 0, "twisted_blocks": 0, "twisted_hops": 0}
"""Of a group that is no twisted slice."""


class AlongAxes(Chapter):
    """The times of a group whose links carry `share` payloads each and whose farthest ranks are `hops` cables apart."""

    share = given(count, "payloads over a link in an all-gather")
    hops = given(count, "cables to the farthest rank")
    S = given(bytes_, "the whole gathered or reduced array")
    alpha = given(seconds, "latency of one hop")
    W = given(bytes_per_second, "one link, one way")

    all_gather_latency = equation(seconds, hops * alpha, "to the farthest rank")
    all_gather_bandwidth = equation(seconds, share * S / W, "what the busiest link carries", source=COUNTED)
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "every rank gets all shards", source=COUNTED
    )

    back = part(ThereAndBack, shared=True)


class Torus(Chapter):
    """All links of all axes in use, the payload divided best over the orders of axes. No routing is faster.

    Whether a compiler divides so on unequal axes is not documented; on equal axes it is an even division.
    """

    S = given(bytes_, "the whole gathered or reduced array; of an all-to-all, one rank's send buffer")
    alpha = given(seconds, "latency of one hop")
    W = given(bytes_per_second, "one link, one way")
    loads = part(TorusLoads, shared=True, **PLAIN)
    times = part(AlongAxes, shared=True, share=loads.best_load, hops=loads.hops)

    all_to_all_latency = equation(seconds, loads.hops * alpha, "to the farthest rank")
    all_to_all_bandwidth = equation(seconds, loads.blocks * S / W, "blocks over a middle cable", source=COUNTED)
    all_to_all = equation(
        seconds,
        all_to_all_latency + all_to_all_bandwidth,
        "shortest ways, averaged over the orders of axes",
        source=COUNTED,
    )


class EvenlySplitTorus(Chapter):
    """All links of all axes in use, the payload divided evenly over the rotated orders of axes."""

    S = given(bytes_, "the whole gathered or reduced array")
    alpha = given(seconds, "latency of one hop")
    W = given(bytes_per_second, "one link, one way")
    loads = part(TorusLoads, shared=True, **PLAIN)
    times = part(AlongAxes, shared=True, share=loads.even_load, hops=loads.hops)


class AxisByAxisTorus(Chapter):
    """One axis after the other, in the best order; the links of the other axes idle meanwhile."""

    S = given(bytes_, "the whole gathered or reduced array")
    alpha = given(seconds, "latency of one hop")
    W = given(bytes_per_second, "one link, one way")
    loads = part(TorusLoads, shared=True, **PLAIN)
    times = part(AlongAxes, shared=True, share=loads.ordered_load, hops=loads.hops)
