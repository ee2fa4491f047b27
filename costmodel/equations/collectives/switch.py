"""Ranks on a non-blocking switch: each has one port that sends W and receives W at once, to and from anybody."""

from costmodel.equations.collectives.backwards import RunBackwards
from costmodel.equations.collectives.sources import BRUCK, RABENSEIFNER, THAKUR
from costmodel.equations.collectives.sources import PORT_BY_PORT as COUNTED
from costmodel.symbolic import (
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_log2,
    count,
    equal,
    equation,
    floor_log2,
    given,
    infinite,
    part,
    seconds,
    select,
)

PACKING = "memory traffic of the kernels is judged, not measured"


class RecursiveDoubling(Chapter):
    """Partners at distance 1, 2, 4, ... exchange what they have (backwards: recursive halving).

    All-gather and reduce-scatter need a power of two and are infinite for other n. The all-reduce exchanges whole vectors
    and takes any n: the ranks beyond the largest power of two first hand their vector to a partner and get the result at the
    end, two steps that the often printed ceil(log2 n) leaves out (1.5 times too fast at n = 3, 1.25 at 9).
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the whole gathered or reduced array")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    power_of_two = equal(ceil_log2(n), floor_log2(n))

    all_gather_latency = equation(
        seconds,
        select(power_of_two, floor_log2(n) * alpha, infinite),
        "log2 n steps",
        source=THAKUR,
        valid="n a power of two",
    )
    all_gather_bandwidth = equation(
        seconds, select(power_of_two, (n - 1) * S / (n * W), infinite), "the shards doubled in each step", source=THAKUR
    )
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "every rank gets all shards", source=THAKUR
    )

    reduce_scatter_latency = equation(seconds, all_gather_latency, "the all-gather run backwards", source=THAKUR)
    reduce_scatter_bandwidth = equation(seconds, all_gather_bandwidth, "the all-gather run backwards", source=THAKUR)
    reduce_scatter = equation(
        seconds, reduce_scatter_latency + reduce_scatter_bandwidth, "recursive halving", source=THAKUR
    )

    steps = equation(count, floor_log2(n) + select(power_of_two, 0, 2), "exchanges, and the fold's two steps")
    all_reduce_latency = equation(seconds, steps * alpha, "every step", source=THAKUR)
    all_reduce_bandwidth = equation(seconds, steps * S / W, "a whole vector in every step", source=THAKUR)
    all_reduce = equation(
        seconds, all_reduce_latency + all_reduce_bandwidth, "every rank sums all vectors", source=THAKUR
    )


class Rabenseifner(Chapter):
    """All-reduce as recursive halving, then recursive doubling, over the largest power of two of the ranks.

    The other ranks fold in: they hand their whole vector to a partner before and get the result after, so that the form
    2 ceil(log2 n) alpha + 2 (n - 1)/n S/W is up to 2.25 times too fast where n is no power of two. Better folds exist.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the reduced array")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    core = equation(count, 2 ** floor_log2(n), "ranks that take part: the largest power of two")
    fold = equation(count, select(equal(core, n), 0, 2), "steps of the ranks that do not")

    all_reduce_latency = equation(
        seconds, (2 * floor_log2(n) + fold) * alpha, "halving, doubling, folding", source=RABENSEIFNER
    )
    all_reduce_bandwidth = equation(
        seconds,
        (2 * (core - 1) / core + fold) * S / W,
        "every byte sent twice, and whole vectors when folding",
        source=RABENSEIFNER,
    )
    all_reduce = equation(
        seconds, all_reduce_latency + all_reduce_bandwidth, "reduce-scatter, then all-gather", source=RABENSEIFNER
    )


class Bruck(Chapter):
    """Shards (blocks, for an all-to-all) sent over distances 1, 2, 4, ...: the fewest steps for any n.

    All-gather is exact for every n. Run backwards it is a reduce-scatter; NCCL's PAT has the same steps and volume.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the whole gathered array")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    all_gather_latency = equation(seconds, ceil_log2(n) * alpha, "log2 n steps, rounded up", source=BRUCK)
    all_gather_bandwidth = equation(seconds, (n - 1) * S / (n * W), "the shards doubled in each step", source=BRUCK)
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "every rank gets all shards", source=BRUCK
    )

    back = part(RunBackwards, shared=True)


class Direct(Chapter):
    """Everybody sends to everybody at once: one step."""

    n = given(count, "ranks in the group")
    S = given(bytes_, "the whole gathered or reduced array")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    all_gather_latency = equation(seconds, select(n > 1, alpha, 0), "one step", source=COUNTED)
    all_gather_bandwidth = equation(seconds, (n - 1) * S / (n * W), "all other shards through the port", source=COUNTED)
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "every rank reads all shards", source=COUNTED
    )

    back = part(RunBackwards, shared=True)


class OneShot(Chapter):
    """All-reduce in one step: every rank reads every vector whole and sums them itself. The fastest for small S."""

    n = given(count, "ranks in the group")
    S = given(bytes_, "the reduced array")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    all_reduce_latency = equation(seconds, select(n > 1, alpha, 0), "one step", source=COUNTED)
    all_reduce_bandwidth = equation(seconds, (n - 1) * S / W, "all other vectors through the port", source=COUNTED)
    all_reduce = equation(
        seconds, all_reduce_latency + all_reduce_bandwidth, "every rank sums all vectors", source=COUNTED
    )


class TwoShot(Chapter):
    """All-reduce in two steps: a direct reduce-scatter, then a direct all-gather. Faster than `OneShot` from `crossover` on."""

    n = given(count, "ranks in the group")
    S = given(bytes_, "the reduced array")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    all_reduce_latency = equation(seconds, select(n > 1, 2 * alpha, 0), "two steps", source=COUNTED)
    all_reduce_bandwidth = equation(
        seconds, 2 * (n - 1) * S / (n * W), "every byte twice, but for a share of 1/n", source=COUNTED
    )
    all_reduce = equation(
        seconds, all_reduce_latency + all_reduce_bandwidth, "reduce-scatter, then all-gather", source=COUNTED
    )

    crossover = equation(
        bytes_,
        select(n > 2, alpha * W * n / ((n - 1) * (n - 2)), infinite),
        "the payload from which two shots beat one",
        source="equate the two times",
    )


class QuantisedTwoShot(Chapter):
    """`TwoShot` on a payload of fewer bits: q for an element and s more of scale for g elements, in place of B.

    In-switch addition does not apply to integers, and a ring would round in each of its n - 1 steps.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "the reduced array, before it is quantised")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")
    q = given(count, "bits of a quantised element")
    s = given(count, "bits of a scale")
    g = given(count, "elements that share a scale")
    B = given(count, "bits of an element")
    memory_bandwidth = given(bytes_per_second, "memory of a rank")

    ratio = equation(count, (q + s / g) / B, "bytes sent for a byte of payload")
    sent = part(TwoShot, S=ratio * S)
    all_reduce_latency = equation(seconds, sent.all_reduce_latency, "two steps")
    all_reduce_bandwidth = equation(
        seconds,
        sent.all_reduce_bandwidth + select(n > 1, (2 + 4 * ratio) * S / memory_bandwidth, 0),
        "the smaller payload, and the memory traffic of packing and unpacking",
        approximate=PACKING,
    )
    all_reduce = equation(
        seconds, all_reduce_latency + all_reduce_bandwidth, "packed, in two shots, unpacked", approximate=PACKING
    )
