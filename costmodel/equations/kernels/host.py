"""What the host takes to launch the kernels of a layer: it runs ahead of the chip, until kernels are short."""

from costmodel.equations.model.block import Block
from costmodel.equations.parallelism.expert_grid import ExpertGrid
from costmodel.symbolic import Chapter, count, equation, given, holds, part, seconds, square_root
from costmodel.symbolic.nodes import Expression


def smooth_largest(work: Expression, host: Expression) -> Expression:
    """The larger of the two, a fifth more where they are equal: neither is even over a layer."""
    return square_root(square_root(work**4 + host**4))


class HostLaunches(Chapter):
    """Kernels of a decoder layer times what the host takes for each; graphs and compilers make it short, or next to nothing."""

    grid = part(ExpertGrid, shared=True)
    block = part(Block, shared=True)
    launch_time = given(seconds, "of the host for one kernel", owner="assumption")
    expert_launch_time = given(
        seconds, "of the host for the product of one expert, 0 where those of a rank are one kernel", owner="assumption"
    )
    dense_kernels = given(count, "kernels of a layer, forward", owner="assumption")
    expert_kernels = given(count, "more in a layer of experts: router, sorting, exchanges", owner="assumption")
    latent_kernels = given(count, "more with latent attention", owner="assumption")
    cast_kernels = given(count, "more where products are in 8 bits or fewer", owner="workload")
    expert_launches = given(count, "launches for the products of one expert, and its casts", owner="workload")

    host_forward = equation(
        seconds,
        launch_time
        * (
            dense_kernels
            - block.kernels_fewer
            + expert_kernels * grid.expert_share
            + latent_kernels * holds(grid.kv_rank > 0)
            + cast_kernels
        )
        + expert_launch_time * expert_launches * grid.expert_share * grid.local_experts,
        "the host, launching a layer, forward",
        source="kernels of Megatron-core's layers, counted",
    )
    host_backward = equation(
        seconds, 2 * host_forward, "the same, backward", approximate="1.75 times the kernels in a dense layer"
    )
