"""How far a kernel's measured time may lie from the predicted one."""

from costmodel.symbolic import (
    FLOP,
    Chapter,
    bytes_,
    bytes_per_second,
    count,
    equation,
    flop,
    flop_per_second,
    given,
    largest,
    seconds,
    smallest,
)


class KernelInterval(Chapter):
    """The middle 80 % of what was measured of such kernels on such a chip."""

    time = given(seconds, "predicted")
    low = given(count, "tenth percentile of measured over predicted", owner="chip")
    high = given(count, "ninetieth percentile of measured over predicted", owner="chip")
    near_low = given(count, "more where the constants are those of a sister chip, else 1", owner="assumption")
    near_high = given(count, "more where the constants are those of a sister chip, else 1", owner="assumption")

    work = given(flop, "operations that the result takes; 0 where they are not counted")
    streamed = given(bytes_, "operands and results, each once; 0 where some may stay on the chip")
    peak = given(flop_per_second, "dense peak at this precision", owner="chip")
    cache_capacity = given(bytes_, "of the last-level cache", owner="chip")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")

    shortest = equation(
        seconds,
        largest(work / peak, largest(streamed - cache_capacity, 0) / memory_bandwidth),
        "at the peak, or with what the cache cannot hold at full bandwidth: no kernel is faster",
    )
    low_time = equation(seconds, largest(shortest, time * low * near_low), "one in ten is faster")
    high_time = equation(seconds, largest(low_time, time * high * near_high), "one in ten is slower")


class Attained(Chapter):
    """How much of the memory bandwidth a kernel needs."""

    traffic = given(bytes_, "through memory")
    time = given(seconds, "of the kernel")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")

    share_of_bandwidth = equation(count, traffic / (time * memory_bandwidth), "attained")


class TypicalStreams(Chapter):
    """Small kernels before attention where nobody measured them: what they pass to each other lies in the cache."""

    usual_share = given(
        count, "of the memory bandwidth, where the cache is no faster than the memory", owner="assumption"
    )
    cached_speedup = given(count, "rate of what lies in the last-level cache over that of the memory", owner="chip")

    memory_share = equation(count, smallest(1, usual_share * cached_speedup), "of the memory bandwidth")


class TypicalUnit(Chapter):
    """Operand bandwidth of a unit where nobody measured it: what a square tile needs, with the margin of measured chips."""

    feed_margin = given(count, "bandwidth over what a square tile needs, on measured chips", owner="assumption")
    square_tile = given(count, "rows and columns of that tile", owner="assumption")
    operand_size = given(bytes_, "an element of the operands", owner="workload")
    units = given(count, "units of the chip (SMs)", owner="chip")
    peak = given(flop_per_second, "dense peak at this precision", owner="chip")
    peak_share = given(count, "share of the peak that large products attain", owner="chip")

    unit_bandwidth = equation(
        bytes_per_second,
        feed_margin * 2 * square_tile * operand_size * peak_share * peak / (units * 2 * square_tile**2 * FLOP),
        "of operands into one unit, so that such a tile keeps its matrix units busy",
    )
