"""Trees and chains on ports that send and receive at once."""

from costmodel.symbolic import Chapter, bytes_, bytes_per_second, ceil_log2, count, equation, given, seconds, select

SANDERS = "Sanders, Speck, Traeff 2009, Two-tree algorithms for full bandwidth broadcast, reduction and scan"


class DoubleBinaryTree(Chapter):
    """All-reduce over two binary trees, each for half of the payload; no rank has children in both.

    The busiest port sends 2 S from four ranks on, 1.5 S at three and S at two, where the 2 S usually printed is too slow.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the reduced array")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    sent = equation(
        count, select(n >= 4, 2, select(n > 1, n / 2, 0)), "payloads that the busiest port sends", source=SANDERS
    )
    all_reduce_latency = equation(
        seconds,
        2 * ceil_log2(n) * alpha,
        "up and down",
        approximate="chunks are taken to be small: a simulation starts up to 2 log2 n chunk steps later",
    )
    all_reduce_bandwidth = equation(seconds, sent * S / W, "up and down both trees", source=SANDERS)
    all_reduce = equation(
        seconds,
        all_reduce_latency + all_reduce_bandwidth,
        "sums to the roots, results back",
        approximate="chunks are taken to be small: a simulation starts up to 2 log2 n chunk steps later",
    )
