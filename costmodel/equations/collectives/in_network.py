"""Switches that add and copy: NVLink SHARP (NVLS) inside a domain, SHARP (CollNet) over the network."""

from costmodel.symbolic import Chapter, bytes_, bytes_per_second, count, equation, given, seconds, select

COUNTED = "counted port by port"
SHARP = "Graham et al. 2016, Scalable Hierarchical Aggregation Protocol (SHArP)"


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

    reduce_scatter_latency = equation(seconds, all_gather_latency, "one reduction", source=COUNTED)
    reduce_scatter_bandwidth = equation(
        seconds, all_gather_bandwidth, "all parts, the own one too, out of every port", source=COUNTED
    )
    reduce_scatter = equation(
        seconds, reduce_scatter_latency + reduce_scatter_bandwidth, "every shard is reduced", source=COUNTED
    )


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
