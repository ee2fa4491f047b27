"""Matrix products on chips with large systolic arrays (TPUs and their kin): operands padded to the array."""

from costmodel.symbolic import (
    FLOP,
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_divide,
    count,
    equation,
    flop,
    flop_per_second,
    given,
    largest,
    seconds,
)

SOURCE = "How To Scale Your Model, chapters 1 and 2: both sides of the weights padded to the array, rows to sublanes"


class SystolicGemm(Chapter):
    """`groups` products of [M, K] and [K, N]; the compiler streams operands while the arrays multiply."""

    groups = given(count, "products of this shape (G)", owner="workload")
    M = given(count, "rows of the result", owner="workload")
    N = given(count, "columns of the result", owner="workload")
    K = given(count, "features summed over", owner="workload")
    operand_size = given(bytes_, "an element of the operands", owner="workload")
    result_size = given(bytes_, "an element of the result", owner="workload")
    array_size = given(count, "rows and columns of an array (128 or 256)", owner="chip")
    sublanes = given(count, "rows that a register holds, which M is padded to", owner="assumption")
    peak = given(flop_per_second, "dense peak at this precision", owner="chip")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    peak_share = given(count, "share of the peak that large products attain", owner="chip")
    memory_share = given(count, "share of the memory bandwidth that kernels attain", owner="chip")
    start = given(seconds, "of the kernel", owner="chip")

    work = equation(flop, 2 * groups * M * N * K * FLOP, "a multiplication and an addition for each term")
    padded_work = equation(
        flop,
        2
        * groups
        * ceil_divide(M, sublanes)
        * sublanes
        * ceil_divide(N, array_size)
        * array_size
        * ceil_divide(K, array_size)
        * array_size
        * FLOP,
        "with both sides of the weights padded to the array",
        source=SOURCE,
    )
    padding = equation(count, padded_work / work, "operations done over those asked for")
    traffic = equation(
        bytes_, groups * ((M * K + K * N) * operand_size + M * N * result_size), "operands and result, each once"
    )
    compute_time = equation(seconds, padded_work / (peak_share * peak), "on the arrays")
    memory_time = equation(seconds, traffic / (memory_share * memory_bandwidth), "through memory")
    overlapped_time = equation(seconds, largest(compute_time, memory_time), "the two overlapped")
    time = equation(
        seconds,
        start + overlapped_time,
        "the product",
        source=SOURCE,
        approximate="no measured kernels of such chips are at hand",
    )
    rate = equation(flop_per_second, work / time, "attained")
    share_of_peak = equation(count, work / (time * peak), "attained")
