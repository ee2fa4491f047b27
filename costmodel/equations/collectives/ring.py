"""Ranks in a line: rings with one or both directions in use, and the open path that is left without a wraparound link."""

from costmodel.equations.collectives.backwards import ThereAndBack
from costmodel.equations.collectives.sources import LINK_BY_LINK as COUNTED
from costmodel.equations.collectives.sources import THAKUR
from costmodel.symbolic import (
    BYTE,
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_divide,
    count,
    equation,
    floor_divide,
    given,
    largest,
    part,
    seconds,
    select,
    square_root,
)

PATARASUK = "Patarasuk, Yuan 2009, Bandwidth optimal all-reduce algorithms for clusters of workstations"


class Ring(Chapter):
    """A ring of which one direction is used: in every step each rank passes one block to its right neighbour.

    Exact for every n >= 1, and nothing for n = 1. It needs one link or port a rank, so it also runs on any switch.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the whole gathered or reduced array; of an all-to-all, one rank's send buffer")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one link, one way")

    all_gather_latency = equation(seconds, (n - 1) * alpha, "n - 1 steps", source=THAKUR)
    all_gather_bandwidth = equation(seconds, (n - 1) * S / (n * W), "each step passes one shard", source=THAKUR)
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "every rank gets all shards", source=THAKUR
    )

    reduce_scatter_latency = equation(seconds, (n - 1) * alpha, "n - 1 steps", source=THAKUR)
    reduce_scatter_bandwidth = equation(
        seconds, (n - 1) * S / (n * W), "each step passes one partial sum", source=THAKUR
    )
    reduce_scatter = equation(
        seconds, reduce_scatter_latency + reduce_scatter_bandwidth, "the all-gather run backwards", source=THAKUR
    )

    all_reduce_latency = equation(
        seconds, reduce_scatter_latency + all_gather_latency, "2 (n - 1) steps", source=PATARASUK
    )
    all_reduce_bandwidth = equation(
        seconds,
        reduce_scatter_bandwidth + all_gather_bandwidth,
        "every byte sent twice, but for a share of 1/n",
        source=PATARASUK,
    )
    all_reduce = equation(seconds, reduce_scatter + all_gather, "reduce-scatter, then all-gather", source=PATARASUK)

    all_to_all_latency = equation(seconds, (n - 1) * alpha, "n - 1 steps", source=COUNTED)
    all_to_all_bandwidth = equation(
        seconds,
        (n - 1) * S / (2 * W),
        "blocks travel n/2 links on average; step k still carries n - k of them",
        source=COUNTED,
    )
    all_to_all = equation(
        seconds,
        all_to_all_latency + all_to_all_bandwidth,
        "every block rides to the right until it is home",
        source=COUNTED,
    )

    gather_latency = equation(seconds, (n - 1) * alpha, "the farthest shard makes n - 1 steps", source=COUNTED)
    gather_bandwidth = equation(
        seconds, (n - 1) * S / (n * W), "all other shards pass the root's one link", source=COUNTED
    )
    gather = equation(seconds, gather_latency + gather_bandwidth, "all shards reach the root", source=COUNTED)

    scatter_latency = equation(seconds, gather_latency, "the gather run backwards", source=COUNTED)
    scatter_bandwidth = equation(seconds, gather_bandwidth, "the gather run backwards", source=COUNTED)
    scatter = equation(
        seconds, scatter_latency + scatter_bandwidth, "the root's shards reach their ranks", source=COUNTED
    )

    barrier_latency = equation(seconds, 2 * (n - 1) * alpha, "a token goes round twice", source=COUNTED)
    barrier_bandwidth = equation(seconds, 0, "nothing is carried")
    barrier = equation(
        seconds, barrier_latency + barrier_bandwidth, "no rank leaves before all have come", source=COUNTED
    )


class TwoWayRing(Chapter):
    """A ring with both directions in use, whole shards going both ways and the antipode's shard split in half.

    Exact for every n. Two ranks are taken to share one cable, so that n = 2 has one direction each way and not two:
    the form that most texts print, V / (two-way bandwidth), is twice too fast there and leaves out the own share of 1/n.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the whole gathered or reduced array; of an all-to-all, one rank's send buffer")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one link, one way")

    hops = equation(count, floor_divide(n, 2), "links to the farthest rank")
    links = equation(count, select(n > 2, 2, 1), "links that leave a rank: two ranks share one cable")

    all_gather_latency = equation(seconds, hops * alpha, "a shard travels half way round", source=COUNTED)
    all_gather_bandwidth = equation(
        seconds, (n - 1) * S / (n * links * W), "what a rank receives, over both links", source=COUNTED
    )
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "every rank gets all shards", source=COUNTED
    )

    back = part(ThereAndBack, shared=True)

    all_to_all_latency = equation(seconds, hops * alpha, "the farthest block goes half way round", source=COUNTED)
    all_to_all_bandwidth = equation(
        seconds,
        floor_divide(n**2, 4) * S / (n * links * W),
        "shortest ways, those to the antipode split: blocks across the middle over the links there",
        source=COUNTED,
        valid="links are held for the bytes alone; whole blocks forwarded farthest first",
    )
    all_to_all = equation(
        seconds, all_to_all_latency + all_to_all_bandwidth, "each block takes the shorter way", source=COUNTED
    )

    gather_latency = equation(seconds, hops * alpha, "the farthest shard comes half way round", source=COUNTED)
    gather_bandwidth = equation(
        seconds, (n - 1) * S / (n * links * W), "all other shards over the root's links", source=COUNTED
    )
    gather = equation(seconds, gather_latency + gather_bandwidth, "all shards reach the root", source=COUNTED)

    scatter_latency = equation(seconds, gather_latency, "the gather run backwards", source=COUNTED)
    scatter_bandwidth = equation(seconds, gather_bandwidth, "the gather run backwards", source=COUNTED)
    scatter = equation(
        seconds, scatter_latency + scatter_bandwidth, "the root's shards reach their ranks", source=COUNTED
    )


class TwoWayRingByHalves(Chapter):
    """A ring with both directions in use, every shard cut in two halves that go round in opposite directions.

    The bandwidth of `TwoWayRing` at twice its latency: what two independent one-way rings give. Exact for every n,
    with n = 2 on one cable.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the whole gathered or reduced array")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one link, one way")

    half = part(Ring, S=S / select(n > 2, 2, 1))

    all_gather_latency = equation(seconds, half.all_gather_latency, "both halves step together", source=COUNTED)
    all_gather_bandwidth = equation(seconds, half.all_gather_bandwidth, "half of every shard each way", source=COUNTED)
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "every rank gets all shards", source=COUNTED
    )

    reduce_scatter_latency = equation(seconds, half.reduce_scatter_latency, "both halves step together", source=COUNTED)
    reduce_scatter_bandwidth = equation(
        seconds, half.reduce_scatter_bandwidth, "half of every shard each way", source=COUNTED
    )
    reduce_scatter = equation(
        seconds, reduce_scatter_latency + reduce_scatter_bandwidth, "the all-gather run backwards", source=COUNTED
    )

    all_reduce_latency = equation(seconds, half.all_reduce_latency, "both halves step together", source=COUNTED)
    all_reduce_bandwidth = equation(seconds, half.all_reduce_bandwidth, "half of every shard each way", source=COUNTED)
    all_reduce = equation(
        seconds, all_reduce_latency + all_reduce_bandwidth, "reduce-scatter, then all-gather", source=COUNTED
    )


class Path(Chapter):
    """A line of ranks without a wraparound link; each cable carries W both ways at once.

    The end rank's single link must receive everything, so the path is as slow as a one-way ring. Exact for every n.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the whole gathered or reduced array; of an all-to-all, one rank's send buffer")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one link, one way")

    all_gather_latency = equation(seconds, (n - 1) * alpha, "from one end to the other", source=COUNTED)
    all_gather_bandwidth = equation(
        seconds, (n - 1) * S / (n * W), "all other shards over the end's one link", source=COUNTED
    )
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "every rank gets all shards", source=COUNTED
    )

    back = part(ThereAndBack, shared=True)

    all_to_all_latency = equation(seconds, (n - 1) * alpha, "from one end to the other", source=COUNTED)
    all_to_all_bandwidth = equation(
        seconds,
        floor_divide(n**2, 4) * S / (n * W),
        "blocks across the middle cable",
        source=COUNTED,
        valid="links are held for the bytes alone; whole blocks forwarded farthest first",
    )
    all_to_all = equation(
        seconds, all_to_all_latency + all_to_all_bandwidth, "blocks go straight to their ranks", source=COUNTED
    )

    gather_latency = equation(seconds, (n - 1) * alpha, "from the far end to a root at the other", source=COUNTED)
    gather_bandwidth = equation(
        seconds, (n - 1) * S / (n * W), "all other shards over the root's one link", source=COUNTED
    )
    gather = equation(seconds, gather_latency + gather_bandwidth, "all shards reach a root at one end", source=COUNTED)

    scatter_latency = equation(seconds, gather_latency, "the gather run backwards", source=COUNTED)
    scatter_bandwidth = equation(seconds, gather_bandwidth, "the gather run backwards", source=COUNTED)
    scatter = equation(seconds, scatter_latency + scatter_bandwidth, "shards from a root at one end", source=COUNTED)


class ChunkedPath(Chapter):
    """All-reduce on a line: chunks are summed towards one end and sent back as they arrive, both directions busy at once.

    Its bandwidth term tends to S/W, half of reduce-scatter plus all-gather on the same line. Exact for every n and k.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the reduced array")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one link, one way")
    k = given(count, "chunks")

    steps = equation(
        count, select(n > 1, 2 * (n - 1) + k - 1, 0), "there and back, and one step for each further chunk"
    )

    all_reduce_latency = equation(seconds, steps * alpha, "every step", source=COUNTED)
    all_reduce_bandwidth = equation(seconds, steps * S / (k * W), "one chunk a step", source=COUNTED)
    all_reduce = equation(
        seconds, all_reduce_latency + all_reduce_bandwidth, "sums to one end, results back", source=COUNTED
    )


class PipelinedPath(Chapter):
    """`ChunkedPath` with the best number of chunks."""

    n = given(count, "ranks in the group")
    S = given(bytes_, "the reduced array")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one link, one way")

    chunks = equation(
        count,
        select(
            alpha > 0,
            largest(1, ceil_divide(square_root(1 + 4 * largest(0, 2 * n - 3) * S / (alpha * W)) - 1, 2)),
            largest(1, S / BYTE),
        ),
        "the whole number that is fastest; single bytes where steps are free",
        source="k (k + 1) >= (2 n - 3) S / (alpha W) > k (k - 1), from comparing k with k + 1",
    )
    chunked = part(ChunkedPath, k=chunks)

    all_reduce_latency = equation(seconds, 2 * (n - 1) * alpha, "there and back", source=COUNTED)
    all_reduce = equation(seconds, chunked.all_reduce, "sums to one end, results back", source=COUNTED)
    all_reduce_bandwidth = equation(seconds, all_reduce - all_reduce_latency, "what the payload adds", source=COUNTED)
