"""The collectives as "How To Scale Your Model" writes them, so that its figures can be reproduced.

The book takes the larger of latency and bandwidth where a simulation shows that they add, so it is up to twice too fast where
the two are alike. On TPUs its W counts both directions of a link, on GPUs one. Its V is the whole array of an all-gather,
reduce-scatter or all-reduce as here, but of an all-to-all the array over all devices: n times one rank's send buffer.
"""

from costmodel.equations.collectives.sources import BOOK_GPUS, BOOK_SHARDING
from costmodel.symbolic import Chapter, bytes_, bytes_per_second, count, equation, given, largest, seconds, smallest

CONVENTION = "the book's convention: data-sheet bandwidth, latency left out or hidden behind it"


class BookTorus(Chapter):
    """Collectives over whole axes of a TPU slice: hops of half of each axis, or all axes' bandwidth, whichever is more."""

    V = given(bytes_, "the gathered or reduced array; of an all-to-all, the array over all devices of the group")
    W = given(bytes_per_second, "one axis of a chip, both directions together")
    axes = given(count, "axes that the group spreads along")
    hops = given(count, "sum of the axes' half lengths")
    longest = given(count, "the longest of the axes")
    n = given(count, "devices in the group")
    hop_latency = given(seconds, "one hop")

    all_gather_latency = equation(seconds, hops * hop_latency, "half way round every axis", source=BOOK_SHARDING)
    all_gather_bandwidth = equation(seconds, V / (W * axes), "the array over all axes", source=BOOK_SHARDING)
    all_gather = equation(
        seconds,
        largest(all_gather_latency, all_gather_bandwidth),
        "the larger",
        source=BOOK_SHARDING,
        approximate=CONVENTION,
    )
    reduce_scatter_latency = equation(seconds, all_gather_latency, "as an all-gather", source=BOOK_SHARDING)
    reduce_scatter_bandwidth = equation(seconds, all_gather_bandwidth, "as an all-gather", source=BOOK_SHARDING)
    reduce_scatter = equation(seconds, all_gather, "as an all-gather", source=BOOK_SHARDING, approximate=CONVENTION)
    all_reduce_latency = equation(seconds, 2 * all_gather_latency, "twice an all-gather", source=BOOK_SHARDING)
    all_reduce_bandwidth = equation(seconds, 2 * all_gather_bandwidth, "twice an all-gather", source=BOOK_SHARDING)
    all_reduce = equation(seconds, 2 * all_gather, "twice an all-gather", source=BOOK_SHARDING, approximate=CONVENTION)
    all_to_all_latency = equation(seconds, hops * hop_latency, "half way round every axis", source=BOOK_SHARDING)
    all_to_all_bandwidth = equation(
        seconds, V * longest / (4 * n * W), "a quarter of an all-gather's on one axis", source=BOOK_SHARDING
    )
    all_to_all = equation(
        seconds,
        largest(all_to_all_latency, all_to_all_bandwidth),
        "the larger",
        source=BOOK_SHARDING,
        approximate=CONVENTION,
    )


class BookLine(Chapter):
    """A gather along an axis without wraparound: X - 1 hops of one shard over one direction of one link."""

    V = given(bytes_, "the gathered array")
    X = given(count, "chips along the axis")
    W = given(bytes_per_second, "one link, one way")

    all_gather = equation(seconds, (X - 1) * V / (X * W), "X - 1 hops of a shard", source=BOOK_SHARDING)


class BookNode(Chapter):
    """Collectives among N GPUs of a node, each with a one-way egress of W."""

    V = given(bytes_, "the gathered or reduced array; of an all-to-all, the array over all GPUs")
    N = given(count, "GPUs")
    W = given(bytes_per_second, "a GPU's egress, one way")
    k = given(count, "experts of a token, of an all-to-all that sends to no more GPUs than these")

    all_gather = equation(seconds, V * (N - 1) / (N * W), "all other shards", source=BOOK_GPUS)
    reduce_scatter = equation(seconds, all_gather, "as an all-gather", source=BOOK_GPUS)
    all_reduce = equation(seconds, 2 * all_gather, "twice an all-gather", source=BOOK_GPUS)
    all_reduce_in_switch = equation(seconds, V / W, "SHARP, every byte once", source=BOOK_GPUS)
    in_switch_gain = equation(count, all_reduce / all_reduce_in_switch, "how much faster SHARP is")
    all_to_all = equation(seconds, V * (N - 1) / (N**2 * W), "blocks to all other GPUs", source=BOOK_GPUS)
    ragged_all_to_all = equation(seconds, V / (N * W) * smallest(k / N, 1), "tokens to k of N GPUs", source=BOOK_GPUS)
    exact_ragged_share = equation(
        count,
        (1 - ((N - 1) / N) ** k) * (N - 1) / N,
        "share of the GPUs that a token goes to, drawn with putting back",
        source=BOOK_GPUS,
    )


class BookTree(Chapter):
    """Collectives over nodes of D_node GPUs: the slower of node and network, for arrays that an inner axis may share.

    Y is the size of an axis that already shards the array and whose ranks are neighbours, 1 when there is none.
    """

    V = given(bytes_, "the gathered or reduced array; of an all-to-all, the array over all GPUs")
    M = given(count, "nodes")
    D_node = given(count, "GPUs of a node")
    Y = given(count, "ranks that already share the array")
    W_gpu = given(bytes_per_second, "a GPU's egress, one way")
    W_node = given(bytes_per_second, "a node's egress, one way")

    node_level = equation(seconds, V / (W_gpu * smallest(Y, D_node)), "inside the nodes", source=BOOK_GPUS)
    network_level = equation(seconds, V * D_node / (W_node * largest(D_node, Y)), "between the nodes", source=BOOK_GPUS)
    all_gather = equation(seconds, largest(node_level, network_level), "the slower level", source=BOOK_GPUS)
    exact_node_level = equation(
        seconds, V * (D_node - 1) / (D_node * W_gpu), "inside the nodes, less the own share", source=BOOK_GPUS
    )
    exact_network_level = equation(
        seconds, V * (M - 1) / (M * W_node), "between the nodes, less the own share", source=BOOK_GPUS
    )
    exact_all_gather = equation(
        seconds, largest(exact_node_level, exact_network_level), "the slower level", source=BOOK_GPUS
    )
    all_to_all = equation(seconds, V * (M - 1) / (M**2 * W_node), "blocks for other nodes", source=BOOK_GPUS)
