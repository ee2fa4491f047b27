"""Trees and chains on ports that send and receive at once: from one rank to all, and from all to one."""

from costmodel.equations.collectives.ring import Ring
from costmodel.equations.collectives.sources import PORT_BY_PORT as COUNTED
from costmodel.equations.collectives.sources import THAKUR
from costmodel.symbolic import (
    BYTE,
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_divide,
    ceil_log2,
    count,
    equation,
    given,
    largest,
    part,
    seconds,
    select,
    square_root,
)

SANDERS = "Sanders, Speck, Traeff 2009, Two-tree algorithms for full bandwidth broadcast, reduction and scan"
SMALL_CHUNKS = "chunks are taken to be small: with large ones a simulation ends up to 2 log2 n chunk steps later"


class Binomial(Chapter):
    """A binomial tree: in every step each rank that has the message passes it on. Exact for every n."""

    n = given(count, "ranks in the group")
    S = given(bytes_, "the message; of gather and scatter, all of them at the root")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    broadcast_latency = equation(seconds, ceil_log2(n) * alpha, "log2 n steps, rounded up", source=THAKUR)
    broadcast_bandwidth = equation(seconds, ceil_log2(n) * S / W, "the whole message in every step", source=THAKUR)
    broadcast = equation(seconds, broadcast_latency + broadcast_bandwidth, "one message to all", source=THAKUR)

    reduce_latency = equation(seconds, broadcast_latency, "the broadcast run backwards", source=THAKUR)
    reduce_bandwidth = equation(seconds, broadcast_bandwidth, "the broadcast run backwards", source=THAKUR)
    reduce = equation(seconds, reduce_latency + reduce_bandwidth, "the sum of all to one", source=THAKUR)

    gather_latency = equation(seconds, ceil_log2(n) * alpha, "log2 n steps, rounded up", source=THAKUR)
    gather_bandwidth = equation(seconds, (n - 1) * S / (n * W), "all other shards into the root", source=THAKUR)
    gather = equation(seconds, gather_latency + gather_bandwidth, "one shard of each to one", source=THAKUR)

    scatter_latency = equation(seconds, gather_latency, "the gather run backwards", source=THAKUR)
    scatter_bandwidth = equation(seconds, gather_bandwidth, "the gather run backwards", source=THAKUR)
    scatter = equation(seconds, scatter_latency + scatter_bandwidth, "one shard to each from one", source=THAKUR)


class ScatterAllGather(Chapter):
    """Broadcast of a long message: a binomial scatter, then a ring all-gather; reduce is the same run backwards."""

    n = given(count, "ranks in the group")
    S = given(bytes_, "the message")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    tree = part(Binomial)
    ring = part(Ring)

    broadcast_latency = equation(seconds, tree.scatter_latency + ring.all_gather_latency, "both phases", source=THAKUR)
    broadcast_bandwidth = equation(
        seconds, tree.scatter_bandwidth + ring.all_gather_bandwidth, "both phases", source=THAKUR
    )
    broadcast = equation(seconds, tree.scatter + ring.all_gather, "scatter, then all-gather", source=THAKUR)

    reduce_latency = equation(seconds, ring.reduce_scatter_latency + tree.gather_latency, "both phases", source=THAKUR)
    reduce_bandwidth = equation(
        seconds, ring.reduce_scatter_bandwidth + tree.gather_bandwidth, "both phases", source=THAKUR
    )
    reduce = equation(seconds, ring.reduce_scatter + tree.gather, "reduce-scatter, then gather", source=THAKUR)


class Chain(Chapter):
    """A message passed down a chain in k chunks, each rank sending one chunk while it receives the next.

    Exact for every n and k, and nothing for n = 1, where the form usually printed leaves (k - 1) steps.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the message")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one link, one way")
    k = given(count, "chunks")

    steps = equation(count, select(n > 1, n - 2 + k, 0), "down the chain, and one for each further chunk")

    broadcast_latency = equation(seconds, steps * alpha, "every step", source=COUNTED)
    broadcast_bandwidth = equation(seconds, steps * S / (k * W), "one chunk a step", source=COUNTED)
    broadcast = equation(seconds, broadcast_latency + broadcast_bandwidth, "one message to all", source=COUNTED)

    reduce_latency = equation(seconds, broadcast_latency, "the broadcast run backwards", source=COUNTED)
    reduce_bandwidth = equation(seconds, broadcast_bandwidth, "the broadcast run backwards", source=COUNTED)
    reduce = equation(seconds, reduce_latency + reduce_bandwidth, "the sum of all to one", source=COUNTED)


class StreamedChain(Chapter):
    """`Chain` where latency holds up a chunk but not the link: the next chunk follows while the first is under way."""

    n = given(count, "ranks in the group")
    S = given(bytes_, "the message")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one link, one way")
    k = given(count, "chunks")

    broadcast_latency = equation(seconds, (n - 1) * alpha, "down the chain", source=COUNTED)
    broadcast_bandwidth = equation(
        seconds,
        select(n > 1, (n - 2 + k) * S / (k * W), 0),
        "one chunk down the chain, then the others",
        source=COUNTED,
    )
    broadcast = equation(seconds, broadcast_latency + broadcast_bandwidth, "one message to all", source=COUNTED)

    reduce_latency = equation(seconds, broadcast_latency, "the broadcast run backwards", source=COUNTED)
    reduce_bandwidth = equation(seconds, broadcast_bandwidth, "the broadcast run backwards", source=COUNTED)
    reduce = equation(seconds, reduce_latency + reduce_bandwidth, "the sum of all to one", source=COUNTED)


class PipelinedChain(Chapter):
    """`Chain` with the best number of chunks: about (sqrt((n - 2) alpha) + sqrt(S/W))^2.

    The nearest whole number to sqrt((n - 2) S / (alpha W)), as usually printed, can be one chunk short.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the message")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one link, one way")

    chunks = equation(
        count,
        select(
            alpha > 0,
            largest(1, ceil_divide(square_root(1 + 4 * largest(n - 2, 0) * S / (alpha * W)) - 1, 2)),
            largest(1, S / BYTE),
        ),
        "the whole number that is fastest; single bytes where steps are free",
        source="k (k + 1) >= (n - 2) S / (alpha W) > k (k - 1), from comparing k with k + 1",
    )
    chain = part(Chain, k=chunks)

    broadcast_latency = equation(seconds, (n - 1) * alpha, "down the chain", source=COUNTED)
    broadcast = equation(seconds, chain.broadcast, "one message to all", source=COUNTED)
    broadcast_bandwidth = equation(seconds, broadcast - broadcast_latency, "what the payload adds", source=COUNTED)

    reduce_latency = equation(seconds, broadcast_latency, "the broadcast run backwards", source=COUNTED)
    reduce_bandwidth = equation(seconds, broadcast_bandwidth, "the broadcast run backwards", source=COUNTED)
    reduce = equation(seconds, reduce_latency + reduce_bandwidth, "the sum of all to one", source=COUNTED)


class DoubleBinaryTree(Chapter):
    """All-reduce over two binary trees, each for half of the payload; no rank has children in both.

    The busiest port sends 2 S from four ranks on, 1.5 S at three and S at two, where the 2 S usually printed is too much.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the reduced array")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    sent = equation(
        count, select(n >= 4, 2, select(n > 1, n / 2, 0)), "payloads that the busiest port sends", source=SANDERS
    )
    all_reduce_latency = equation(
        seconds, 2 * ceil_log2(n) * alpha, "up and down", source=SANDERS, approximate=SMALL_CHUNKS
    )
    all_reduce_bandwidth = equation(seconds, sent * S / W, "up and down both trees", source=SANDERS)
    all_reduce = equation(
        seconds,
        all_reduce_latency + all_reduce_bandwidth,
        "sums to the roots, results back",
        source=SANDERS,
        approximate=SMALL_CHUNKS,
    )
