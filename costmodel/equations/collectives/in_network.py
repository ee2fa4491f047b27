"""Switches that add and copy: NVLink SHARP (NVLS) inside a domain, SHARP (CollNet) over the network."""

from costmodel.equations.collectives.backwards import RunBackwards
from costmodel.equations.collectives.ring import Ring
from costmodel.equations.collectives.sources import NCCL, SHARP, SMALL_CHUNKS
from costmodel.equations.collectives.tree import DoubleBinaryTree
from costmodel.symbolic import Chapter, bytes_, bytes_per_second, count, equation, given, largest, part, seconds, select

COUNTED = "counted port by port"
NOT_BUILT = "switches send a rank its own traffic too"


class Nvls(Chapter):
    """All-reduce in one switch: each rank pulls its shard reduced by the switch and multicasts it, phases overlapped.

    A port receives S for the others' results and S/n for its own; its own traffic crosses the switch as well. Against a ring
    this saves a factor of 2 (n - 1)/(n + 1), not 2: nothing at n = 3, 1.56 at 8. Needs a sum in floating point.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the whole gathered or reduced array")
    alpha = given(seconds, "latency of one phase")
    W = given(bytes_per_second, "one port, one way")

    all_reduce_latency = equation(seconds, select(n > 1, 2 * alpha, 0), "reduce, then multicast", source=COUNTED)
    all_reduce_bandwidth = equation(
        seconds, select(n > 1, (n + 1) * S / (n * W), 0), "S to be reduced and S/n of results, each way", source=COUNTED
    )
    all_reduce = equation(
        seconds, all_reduce_latency + all_reduce_bandwidth, "the switch adds and copies", source=COUNTED
    )

    all_gather_latency = equation(seconds, select(n > 1, alpha, 0), "one multicast", source=COUNTED)
    all_gather_bandwidth = equation(
        seconds, select(n > 1, S / W, 0), "all shards, the own one too, into every port", source=COUNTED
    )
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "every shard is multicast", source=COUNTED
    )

    back = part(RunBackwards, shared=True)


class NvlsWithoutOwnTraffic(Chapter):
    """`Nvls` if a rank's own shard did not have to cross the switch: the gain of 2 (n - 1)/n that is usually printed."""

    n = given(count, "ranks in the group")
    S = given(bytes_, "the whole gathered or reduced array")
    alpha = given(seconds, "latency of one phase")
    W = given(bytes_per_second, "one port, one way")

    all_reduce_latency = equation(seconds, select(n > 1, 2 * alpha, 0), "reduce, then multicast", source=COUNTED)
    all_reduce_bandwidth = equation(
        seconds,
        select(n > 1, S / W, 0),
        "(n - 1) S/n to be reduced and S/n of results",
        source=COUNTED,
        approximate=NOT_BUILT,
    )
    all_reduce = equation(
        seconds,
        all_reduce_latency + all_reduce_bandwidth,
        "the switch adds and copies",
        source=COUNTED,
        approximate=NOT_BUILT,
    )

    all_gather_latency = equation(seconds, select(n > 1, alpha, 0), "one multicast", source=COUNTED)
    all_gather_bandwidth = equation(
        seconds, (n - 1) * S / (n * W), "all other shards into every port", source=COUNTED, approximate=NOT_BUILT
    )
    all_gather = equation(
        seconds,
        all_gather_latency + all_gather_bandwidth,
        "every shard is multicast",
        source=COUNTED,
        approximate=NOT_BUILT,
    )

    reduce_scatter_latency = equation(seconds, all_gather_latency, "one reduction", source=COUNTED)
    reduce_scatter_bandwidth = equation(
        seconds, all_gather_bandwidth, "all parts but the own out of every port", source=COUNTED, approximate=NOT_BUILT
    )
    reduce_scatter = equation(
        seconds,
        reduce_scatter_latency + reduce_scatter_bandwidth,
        "every shard is reduced",
        source=COUNTED,
        approximate=NOT_BUILT,
    )


class NvlsInTurn(Chapter):
    """`Nvls` with the multicast only after the whole reduction: a port is idle one way at a time, and nothing is gained."""

    n = given(count, "ranks in the group")
    S = given(bytes_, "the reduced array")
    alpha = given(seconds, "latency of one phase")
    W = given(bytes_per_second, "one port, one way")

    phases = part(Nvls)
    all_reduce_latency = equation(
        seconds, phases.reduce_scatter_latency + phases.all_gather_latency, "two phases", source=COUNTED
    )
    all_reduce_bandwidth = equation(
        seconds, phases.reduce_scatter_bandwidth + phases.all_gather_bandwidth, "S out, then S in", source=COUNTED
    )
    all_reduce = equation(seconds, phases.reduce_scatter + phases.all_gather, "reduce, then multicast", source=COUNTED)


class Sharp(Chapter):
    """All-reduce in the network: every rank sends its vector up once and receives the sum once (SHARP, NCCL's CollNet).

    Against a ring this saves a factor of 2 (n - 1)/n on the rank's link, and never less than S/W is left.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the reduced array")
    alpha = given(seconds, "latency of one operation, up and down the switches")
    W = given(bytes_per_second, "one port, one way")

    all_reduce_latency = equation(seconds, select(n > 1, alpha, 0), "up and down once", source=SHARP)
    all_reduce_bandwidth = equation(
        seconds, select(n > 1, S / W, 0), "the own vector up while the sum comes down", source=SHARP
    )
    all_reduce = equation(seconds, all_reduce_latency + all_reduce_bandwidth, "the network adds", source=SHARP)


class SharpOverNodes(Chapter):
    """Ring reduce-scatter in each of M nodes of G ranks, SHARP over the rails for S/G each, ring all-gather in the nodes."""

    G = given(count, "ranks in a node")
    M = given(count, "nodes")
    S = given(bytes_, "the reduced array")
    alpha_in = given(seconds, "latency of one step inside a node")
    W_in = given(bytes_per_second, "one port inside a node, one way")
    alpha_out = given(seconds, "latency of one operation in the network")
    W_out = given(bytes_per_second, "one rank's NIC, one way")

    inside = part(Ring, n=G, alpha=alpha_in, W=W_in)
    network = part(Sharp, n=M, S=S / G, alpha=alpha_out, W=W_out)

    all_reduce_latency = equation(
        seconds, inside.all_reduce_latency + network.all_reduce_latency, "all phases", source=SHARP
    )
    all_reduce_bandwidth = equation(
        seconds, inside.all_reduce_bandwidth + network.all_reduce_bandwidth, "all phases in turn", source=SHARP
    )
    all_reduce = equation(
        seconds, inside.all_reduce + network.all_reduce, "inside, up and down once, inside", source=SHARP
    )


class NvlsTree(Chapter):
    """NVLS inside each of M nodes of G ranks, double binary trees over the rails for S/G each, both levels at once."""

    G = given(count, "ranks in a node")
    M = given(count, "nodes")
    S = given(bytes_, "the reduced array")
    alpha_in = given(seconds, "latency of one phase inside a node")
    W_in = given(bytes_per_second, "one port inside a node, one way")
    alpha_out = given(seconds, "latency of one step between nodes")
    W_out = given(bytes_per_second, "one rank's NIC, one way")

    inside = part(Nvls, n=G, alpha=alpha_in, W=W_in)
    trees = part(DoubleBinaryTree, n=M, S=S / G, alpha=alpha_out, W=W_out)

    all_reduce_latency = equation(
        seconds,
        inside.all_reduce_latency + trees.all_reduce_latency,
        "inside, up and down",
        source=NCCL,
        approximate=SMALL_CHUNKS,
    )
    all_reduce_bandwidth = equation(
        seconds,
        largest(inside.all_reduce_bandwidth, trees.all_reduce_bandwidth),
        "the slower level",
        source=NCCL,
        approximate=SMALL_CHUNKS,
    )
    all_reduce = equation(
        seconds, all_reduce_latency + all_reduce_bandwidth, "both levels at once", source=NCCL, approximate=SMALL_CHUNKS
    )
