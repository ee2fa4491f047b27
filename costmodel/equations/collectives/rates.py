"""The bandwidths by which measured collectives are told."""

from costmodel.symbolic import Chapter, bytes_, bytes_per_second, choice, choose, count, equation, given, seconds

OPERATIONS = (
    *("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "reduce", "gather", "scatter"),
    *("send_recv", "dispatch", "combine", "host_load", "barrier"),
)
"""What ranks do together, in the order in which the generated code numbers them."""

NCCL_TESTS = "nccl-tests, doc/PERFORMANCE.md"


class Rates(Chapter):
    """algbw and busbw as nccl-tests prints them.

    busbw is what each rank's link carries when the algorithm is flat, whatever the number of ranks. With in-switch addition
    or levels of different speed it is no rate of any wire, and can exceed the wire's.
    """

    operation = choice(
        OPERATIONS,
        "what was measured",
        owner="workload",
    )
    n = given(count, "ranks in the group")
    S = given(bytes_, "payload, by the convention of nccl-tests")
    time = given(seconds, "how long it took")

    others = equation(count, (n - 1) / n, "share of the payload that is not a rank's own")
    bus_factor = equation(
        count,
        choose(
            operation,
            {
                "all_gather": others,
                "reduce_scatter": others,
                "all_reduce": 2 * others,
                "all_to_all": others,
                "broadcast": 1,
                "reduce": 1,
                "gather": others,
                "scatter": others,
                "send_recv": 1,
                "dispatch": 1,
                "combine": 1,
                "host_load": 1,
                "barrier": 1,
            },
        ),
        "payloads over each rank's link",
        source=NCCL_TESTS,
    )
    algorithm_bandwidth = equation(bytes_per_second, S / time, "payload over time (algbw)", source=NCCL_TESTS)
    bus_bandwidth = equation(bytes_per_second, bus_factor * algorithm_bandwidth, "busbw", source=NCCL_TESTS)
