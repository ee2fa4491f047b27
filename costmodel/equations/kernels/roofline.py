"""The roofline itself: what bounds a piece of work, and from which size on. As in "How To Scale Your Model".

These are bounds at full peaks and bandwidths. What a kernel is predicted to take stands in `matmul`, `attention` and
`elementwise`.
"""

from costmodel.symbolic import (
    FLOP,
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_divide,
    count,
    equation,
    flop,
    flop_per_byte,
    flop_per_second,
    given,
    largest,
    part,
    per_second,
    seconds,
)

ROOFLINE = "How To Scale Your Model, chapter 1; Williams, Waterman, Patterson 2009, Roofline"
TPUS = "How To Scale Your Model, chapter 2"
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


class SplitSum(Chapter):
    """[B, D] times [D, F] with D split over two chips that exchange their partial sums."""

    b = given(bytes_, "one element")
    C = given(flop_per_second, "peak of one chip")
    W = given(bytes_per_second, "the link between them, one way")

    least_features = equation(
        count, C * b / (W * FLOP), "features summed over from which on the peak binds, not the link", source=ROOFLINE
    )


class Stages(Chapter):
    """Data streamed through host link, chip link, memory and matrix units: the slowest stage decides."""

    host = given(seconds, "over the hosts' links")
    link = given(seconds, "over the links between chips")
    memory = given(seconds, "through the memory")
    compute = given(seconds, "on the matrix units")

    shortest = equation(seconds, largest(host, link, memory, compute), "all stages at once", source=TPUS)


class MatrixUnits(Chapter):
    """Peak of a chip from its matrix units, each with rows x columns multipliers."""

    units = given(count, "matrix units of the chip")
    rows_of_unit = given(count, "rows of multipliers")
    columns_of_unit = given(count, "columns of multipliers")
    clock = given(per_second, "clock")

    per_cycle = equation(flop, 2 * rows_of_unit * columns_of_unit * FLOP, "a unit's operations in a cycle", source=TPUS)
    peak = equation(flop_per_second, units * per_cycle * clock, "of the chip", source=TPUS)


class VectorUnits(Chapter):
    """Peak of a chip from its vector lanes; `per_lane` is 2 where a multiplication and an addition count as two."""

    units = given(count, "cores or multiprocessors")
    lanes = given(count, "lanes of each")
    per_lane = given(flop, "operations of a lane in a cycle")
    clock = given(per_second, "clock")

    all_lanes = equation(count, units * lanes, "lanes of the chip")
    peak = equation(flop_per_second, all_lanes * per_lane * clock, "of the chip")


class UnitRate(Chapter):
    """What a chip's peak comes to for each of its units in a cycle."""

    C = given(flop_per_second, "peak")
    units = given(count, "units")
    clock = given(per_second, "clock")

    per_cycle = equation(flop, C / (units * clock), "a unit's operations in a cycle")


class ManyChips(Chapter):
    """Some chips together, perfectly split."""

    chips = given(count, "chips")
    chips_per_host = given(count, "chips of a host")
    cores_per_chip = given(count, "cores of a chip")
    C = given(flop_per_second, "peak of a chip")
    W = given(bytes_per_second, "memory bandwidth of a chip")
    memory = given(bytes_, "memory of a chip")
    work = given(flop, "operations to do")
    held = given(bytes_, "bytes to hold, and to read once")
    utilisation = given(count, "share of the peak that is reached")

    hosts = equation(count, chips / chips_per_host, "hosts")
    cores = equation(count, chips * cores_per_chip, "cores")
    peak = equation(flop_per_second, chips * C, "of all chips")
    all_memory = equation(bytes_, chips * memory, "of all chips")
    sweep = equation(seconds, held / (chips * W), "to read once what is held")
    run = equation(seconds, work / (peak * utilisation), "to do the work")
    fewest_chips = equation(count, ceil_divide(held, memory), "chips that can hold it")


class ShardedArray(Chapter):
    """An array split over some devices and repeated over the others."""

    elements = given(count, "elements of the whole array")
    b = given(bytes_, "one element")
    shards = given(count, "devices that share it")
    devices = given(count, "devices in all")

    per_device = equation(bytes_, elements * b / shards, "on one device")
    copies = equation(count, devices / shards, "of the array")
    total = equation(bytes_, elements * b * copies, "on all devices")


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
