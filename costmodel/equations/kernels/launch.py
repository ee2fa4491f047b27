"""A chain of kernels and who launches it: eager code, a Python kernel language, a CUDA graph, programmatic dependent launch."""

from costmodel.symbolic import Chapter, count, equation, given, largest, seconds

GUIDE = "CUDA Programming Guide, programmatic dependent launch: it hides work that does not depend on the kernel before"


class LaunchChain(Chapter):
    """`kernels` kernels after one another on one stream; the host runs ahead of the device where it can.

    In eager code the slower of two queues sets the pace: the host that launches, and the device with a gap after each kernel.
    """

    kernels = given(count, "kernels of the chain", owner="workload")
    kernel_time = given(seconds, "of an average one on the device, without gap", owner="workload")
    slow_kernels = given(count, "of these, those launched through a Python kernel language", owner="workload")
    prologue_time = given(
        seconds,
        "of a kernel before it needs what the one before wrote: barriers, descriptors, weights",
        owner="workload",
    )
    host_launch = given(seconds, "of the host for a launch, framework included", owner="assumption")
    slow_host_launch = given(seconds, "of the host for a launch through a Python kernel language", owner="assumption")
    device_gap = given(seconds, "between two kernels that wait in the queue", owner="chip")
    graph_gap = given(seconds, "between two kernels of a graph", owner="chip")
    graph_launch = given(seconds, "of the host for a whole graph", owner="assumption")

    busy_time = equation(seconds, kernels * kernel_time, "of the device in kernels")

    # Eager, all through a fast path
    eager_host = equation(seconds, kernels * host_launch, "of the host, all by the fast path")
    eager_device = equation(seconds, busy_time + kernels * device_gap, "of the device, kernels and gaps")
    eager_time = equation(
        seconds,
        largest(eager_host, eager_device),
        "the slower of the two",
        source="two queues in series",
        approximate="the first launch and the last kernel overlap with nothing: left out of long chains",
    )
    eager_gap = equation(
        seconds, largest(device_gap, host_launch - kernel_time), "the device waits between two kernels, fast path"
    )

    # Eager, some through a Python kernel language
    dsl_host = equation(
        seconds,
        (kernels - slow_kernels) * host_launch + slow_kernels * slow_host_launch,
        "of the host, some by the slow path",
    )
    dsl_time = equation(seconds, largest(dsl_host, eager_device), "the slower of host and device")
    dsl_gap = equation(
        seconds,
        largest(device_gap, slow_host_launch - kernel_time),
        "the device waits before a kernel launched by the slow path",
    )

    # One launch for all
    graph_time = equation(
        seconds, graph_launch + busy_time + kernels * graph_gap, "as a graph: one launch, a shorter gap"
    )

    # Programmatic dependent launch
    pdl_gap = equation(
        seconds,
        largest(0, device_gap - prologue_time),
        "left of a gap when the next kernel begins before the last has ended",
        source=GUIDE,
        valid="NVIDIA compute capability 9.0 and up",
    )
    pdl_device = equation(
        seconds, busy_time + device_gap + (kernels - 1) * pdl_gap, "of the device, the first gap in full"
    )
    pdl_time = equation(seconds, largest(eager_host, pdl_device), "the slower of host and device")
    pdl_graph_gap = equation(seconds, largest(0, graph_gap - prologue_time), "the same in a graph")
    pdl_graph_time = equation(
        seconds,
        graph_launch + busy_time + graph_gap + (kernels - 1) * pdl_graph_gap,
        "as a graph with such edges",
        source=GUIDE,
    )

    # What of each is no kernel
    eager_overhead = equation(seconds, eager_time - busy_time, "of eager launching by the fast path")
    dsl_overhead = equation(seconds, dsl_time - busy_time, "where some go by the slow path")
    graph_overhead = equation(seconds, graph_time - busy_time, "of a graph")
    pdl_overhead = equation(seconds, pdl_time - busy_time, "of programmatic dependent launch")
    pdl_graph_overhead = equation(seconds, pdl_graph_time - busy_time, "of a graph with such edges")
