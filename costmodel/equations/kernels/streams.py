"""Elementwise and row-wise kernels, bound by memory traffic: fused into one, or one operation after another."""

from costmodel.equations.kernels.streaming import cached_slowness, share_in_cache
from costmodel.symbolic import (
    Chapter,
    bytes_,
    bytes_per_second,
    choice,
    choose,
    count,
    equation,
    given,
    seconds,
)

OPERATIONS = ("copy", "cast", "add", "norm", "residual-norm", "swiglu", "bias-gelu", "rotary", "softmax")
COUNTED = "counted, as eager PyTorch runs it; weights of a norm, biases, angles and row statistics stay in the cache"


class Stream(Chapter):
    """One operation on [rows, columns]: what moves is counted in whole passes over the array."""

    row_operation = choice(OPERATIONS, "what is done to each row", owner="workload")
    rows = given(count, "rows, tokens mostly", owner="workload")
    columns = given(count, "features of a row", owner="workload")
    element_size = given(bytes_, "an element", owner="workload")
    narrow_size = given(bytes_, "an element that a cast writes", owner="workload")
    array_copies = given(count, "arrays used in turn: 1 when the same comes again at once", owner="workload")
    cache_reach = given(
        count, "last-level caches of operands used in turn from which on none are found", owner="assumption"
    )
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    memory_share = given(count, "share of the memory bandwidth that such kernels attain", owner="chip")
    start = given(seconds, "of a kernel", owner="chip")
    cache_capacity = given(bytes_, "of the last-level cache", owner="chip")
    cached_speedup = given(count, "rate of what lies in the last-level cache over that of memory", owner="chip")

    array_bytes = equation(bytes_, rows * columns * element_size, "one pass over the array")
    traffic = equation(
        bytes_,
        choose(
            row_operation,
            {
                "copy": 2 * array_bytes,
                "cast": array_bytes + rows * columns * narrow_size,
                "add": 3 * array_bytes,
                "norm": 2 * array_bytes,
                "residual-norm": 4 * array_bytes,
                "swiglu": 3 * array_bytes,
                "bias-gelu": 2 * array_bytes,
                "rotary": 2 * array_bytes,
                "softmax": 2 * array_bytes,
            },
        ),
        "in one fused kernel: what comes from outside and what goes there",
        source="counted",
    )
    unfused_traffic = equation(
        bytes_,
        choose(
            row_operation,
            {
                "copy": 2 * array_bytes,
                "cast": array_bytes + rows * columns * narrow_size,
                "add": 3 * array_bytes,
                "norm": 7 * array_bytes,
                "residual-norm": 10 * array_bytes,
                "swiglu": 5 * array_bytes,
                "bias-gelu": 4 * array_bytes,
                "rotary": 10 * array_bytes,
                "softmax": 8 * array_bytes,
            },
        ),
        "one operation after another, each reading and writing",
        source=COUNTED,
    )
    unfused_kernels = equation(
        count,
        choose(
            row_operation,
            {
                "copy": 1,
                "cast": 1,
                "add": 1,
                "norm": 6,
                "residual-norm": 7,
                "swiglu": 2,
                "bias-gelu": 2,
                "rotary": 5,
                "softmax": 5,
            },
        ),
        "kernels, one operation after another",
        source=COUNTED,
    )
    cached = equation(
        count,
        share_in_cache(array_copies * traffic, cache_capacity, cache_reach),
        "share found in the last-level cache: all of what fits it, none from some times that on",
    )
    rate = equation(
        bytes_per_second,
        memory_share * memory_bandwidth / cached_slowness(cached, cached_speedup),
        "at which arrays stream",
    )
    memory_time = equation(seconds, traffic / rate, "fused, through memory")
    time = equation(
        seconds,
        start + memory_time,
        "in one fused kernel",
        source="start and share fitted to public tables of a cast to eight bits",
    )
    unfused_time = equation(
        seconds, unfused_kernels * start + unfused_traffic / rate, "one operation after another, on the device alone"
    )
    fusion_gain = equation(count, unfused_time / time, "unfused over fused")
    share_of_bandwidth = equation(count, traffic / (time * memory_bandwidth), "attained by the fused kernel")
