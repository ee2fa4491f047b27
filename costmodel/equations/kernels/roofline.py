"""The roofline itself: what bounds a piece of work, and from which size on. As in "How To Scale Your Model".

These are bounds at full peaks and bandwidths. What a kernel is predicted to take stands in `matmul`, `attention` and
`elementwise`.
"""

from costmodel.symbolic import (
    FLOP,
    Chapter,
    bytes_,
    bytes_per_second,
    count,
    equation,
    flop,
    flop_per_byte,
    flop_per_second,
    given,
    largest,
    part,
    seconds,
)

ROOFLINE = "How To Scale Your Model, chapter 1; Williams, Waterman, Patterson 2009, Roofline"
TRAINING = "How To Scale Your Model, chapters 5 and 12"


class Roofline(Chapter):
    """Work and traffic against peak and bandwidth; the truth lies between perfect overlap and none, a factor of 2 at most."""

    work = given(flop, "operations")
    traffic = given(bytes_, "bytes moved")
    C = given(flop_per_second, "peak")
    W = given(bytes_per_second, "bandwidth of the memory or link that feeds it")

    intensity = equation(flop_per_byte, work / traffic, "arithmetic intensity", source=ROOFLINE)
    ridge = equation(flop_per_byte, C / W, "intensity from which on the peak binds", source=ROOFLINE)
    compute_time = equation(seconds, work / C, "at the peak", source=ROOFLINE)
    transfer_time = equation(seconds, traffic / W, "at full bandwidth", source=ROOFLINE)
    shortest = equation(seconds, largest(compute_time, transfer_time), "all of the shorter hidden", source=ROOFLINE)
    longest = equation(seconds, compute_time + transfer_time, "nothing hidden", source=ROOFLINE)
    doubt = equation(count, longest / shortest, "how far the two are apart", source=ROOFLINE)


class DotProduct(Chapter):
    """The dot product of two vectors: never more than half an operation a byte in 16 bits."""

    N = given(count, "elements")
    b = given(bytes_, "one element")

    work = equation(flop, (2 * N - 1) * FLOP, "N products, N - 1 sums", source=ROOFLINE)
    traffic = equation(bytes_, (2 * N + 1) * b, "both vectors and the result", source=ROOFLINE)
    intensity = equation(flop_per_byte, work / traffic, "arithmetic intensity", source=ROOFLINE)


class Product(Chapter):
    """[B, D] times [D, F], every operand and the result through memory once.

    `weights_alone` counts the traffic of the weights only, as the book does where B is small; `crossover` counts all of it.
    """

    B = given(count, "rows (tokens)")
    D = given(count, "features summed over")
    F = given(count, "columns")
    b = given(bytes_, "one element")
    C = given(flop_per_second, "peak at this precision")
    W = given(bytes_per_second, "bandwidth of the memory or link that feeds it")

    roof = part(Roofline, shared=True, work=2 * B * D * F * FLOP, traffic=(B * D + D * F + B * F) * b)
    weights_alone = equation(
        count, C * b / (2 * W * FLOP), "rows from which on the peak binds, for few rows", source=ROOFLINE
    )
    crossover = equation(
        count,
        D * F * b / W / (2 * D * F * FLOP / C - (D + F) * b / W),
        "rows from which on the peak binds",
        source="equate the two times",
        valid="positive where the peak binds at all",
    )


class OwnMatrixProduct(Chapter):
    """B rows, each times a matrix of its own: no weight is used twice, and the intensity stays near two operations an element."""

    B = given(count, "rows")
    D = given(count, "features summed over")
    F = given(count, "columns")
    b = given(bytes_, "one element")

    work = equation(flop, 2 * B * D * F * FLOP, "a product and a sum for each element of the matrices", source=ROOFLINE)
    traffic = equation(bytes_, (B * D + B * D * F + B * F) * b, "rows, matrices, results", source=ROOFLINE)
    intensity = equation(flop_per_byte, work / traffic, "arithmetic intensity", source=ROOFLINE)


class Tile(Chapter):
    """A tile of a product held in fast memory while its rows and columns stream by: bm bn / (bm + bn) in 16 bits."""

    bm = given(count, "rows of the tile")
    bn = given(count, "columns of the tile")
    b = given(bytes_, "one element")

    intensity = equation(flop_per_byte, 2 * bm * bn * FLOP / ((bm + bn) * b), "arithmetic intensity", source=ROOFLINE)


class Overlap(Chapter):
    """How much each chip needs to compute to hide the traffic of parallelism, by the book's two-matrix layer.

    `nodes` and `node_size` say what model parallelism spans on GPUs: 1 where it stays inside a node.
    """

    F = given(count, "width of the feed-forward")
    b = given(bytes_, "one element")
    C = given(flop_per_second, "peak of a chip")
    W = given(bytes_per_second, "bandwidth of one axis, or of a node, that the traffic runs over")
    axes = given(count, "axes that the group spreads along")
    nodes = given(count, "nodes that model parallelism spans")
    node_size = given(count, "chips of a node")

    threshold = equation(count, C * b / (2 * W * FLOP), "the chip's operations while two bytes pass", source=TRAINING)
    data_tokens = equation(
        count, threshold / (axes * nodes), "tokens a chip needs for data parallelism to hide", source=TRAINING
    )
    tensor_ways = equation(count, axes * F / threshold, "ways of tensor parallelism that hide", source=TRAINING)
    tensor_ways_beyond = equation(
        count, F / threshold + node_size, "the same across two nodes, what stays in a node being free", source=TRAINING
    )
