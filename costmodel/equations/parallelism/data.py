"""Data parallelism: DDP, ZeRO-1, ZeRO-2 and ZeRO-3 (FSDP): what is exchanged, when, and what shows of it."""

from costmodel.equations.axes import SCHEDULE, SHARDING
from costmodel.symbolic import Chapter, count, equation, given, seconds, select, smallest


class FullySharded(Chapter):
    """ZeRO-3 (FSDP): a layer's weights are gathered before use, forward and backward, and its gradients scattered.

    Gathers are prefetched behind the layer before, scatters behind the layer after.
    """

    dp = given(count, "data-parallel ranks")
    weights_sharded = given(count, "1 when the weights are shared", SHARDING, owner="layout")
    gather_layer = given(seconds, "all-gather of the weights of one layer")
    scatter_layer = given(seconds, "reduce-scatter of the gradients of one layer")
    forward_compute = given(seconds, "of a layer and micro-batch, its tensor-parallel communication included")
    backward_compute = given(seconds, "of a layer and micro-batch, its tensor-parallel communication included")
    wire_factor = given(count, "measured time of overlapped gathers over that of lone ones", owner="assumption")
    hidden_share = given(count, "share of the communication that hides behind compute", owner="assumption")

    forward = equation(
        seconds, select(weights_sharded > 0, wire_factor * gather_layer, 0), "of a layer and micro-batch, forward"
    )
    backward = equation(
        seconds,
        select(weights_sharded > 0, wire_factor * (gather_layer + scatter_layer), 0),
        "of a layer and micro-batch, backward",
        source="Rajbhandari et al. 2020, section 7.2.2: 1.5 times the volume of an all-reduce",
    )
    exposed_forward = equation(
        seconds, forward - hidden_share * smallest(forward, forward_compute), "what shows of it, forward"
    )
    exposed_backward = equation(
        seconds, backward - hidden_share * smallest(backward, backward_compute), "what shows of it, backward"
    )


class ShardedTables(Chapter):
    """ZeRO-3 (FSDP) of embedding and head: gathered once a micro-batch, as they stay until the backward pass, scattered once.

    The embedding is used first and its gradient is complete last, when nothing is left to hide behind; the head has what the
    traffic of a layer leaves of its compute.
    """

    weights_sharded = given(count, "1 when the weights are shared", SHARDING, owner="layout")
    gather_layer = given(seconds, "all-gather of the weights of one layer")
    scatter_layer = given(seconds, "reduce-scatter of the gradients of one layer")
    embedding_size = given(count, "weights of the embedding over those of a layer")
    head_size = given(count, "weights of the head over those of a layer")
    forward_left = given(seconds, "what a layer's own traffic leaves of its forward pass to hide behind")
    backward_left = given(seconds, "what a layer's own traffic leaves of its backward pass to hide behind")
    wire_factor = given(count, "measured time of overlapped gathers over that of lone ones", owner="assumption")
    hidden_share = given(count, "share of the communication that hides behind compute", owner="assumption")

    embedding = equation(
        seconds,
        select(weights_sharded > 0, wire_factor * embedding_size * (gather_layer + scatter_layer), 0),
        "of the embedding and a micro-batch",
        approximate="at the rate of a layer",
    )
    head_forward = equation(
        seconds,
        select(weights_sharded > 0, wire_factor * head_size * gather_layer, 0),
        "of the head and a micro-batch, forward",
        approximate="at the rate of a layer",
    )
    head_backward = equation(
        seconds,
        select(weights_sharded > 0, wire_factor * head_size * scatter_layer, 0),
        "of the head and a micro-batch, backward",
        approximate="at the rate of a layer",
    )
    total = equation(seconds, embedding + head_forward + head_backward, "of a micro-batch, hidden or not")
    exposed = equation(
        seconds,
        total - hidden_share * (smallest(head_forward, forward_left) + smallest(head_backward, backward_left)),
        "what shows of it",
    )


class GradientSync(Chapter):
    """DDP, ZeRO-1 and ZeRO-2: gradients are summed during the last backward pass, updated weights gathered during the next forward.

    An interleaved stage exchanges chunk by chunk. One, the last to be reduced or the first to be gathered, has a single pass to
    hide behind; every other has those of p micro-batches through the chunk next to it.
    ZeRO-2 keeps no whole gradient, so it scatters the gradients of every micro-batch.
    """

    dp = given(count, "data-parallel ranks")
    pp = given(count, "pipeline stages (p)")
    virtual_stages = given(count, "chunks of layers on a rank (v)", SCHEDULE, owner="layout")
    micro_batches = given(count, "micro-batches of a step")
    optimizer_sharded = given(count, "1 when the optimizer states are shared", SHARDING, owner="layout")
    gradients_sharded = given(count, "1 when the gradients are shared", SHARDING, owner="layout")
    weights_sharded = given(count, "1 when the weights are shared", SHARDING, owner="layout")
    all_reduce = given(seconds, "of the gradients of a stage")
    reduce_scatter = given(seconds, "of the gradients of a stage")
    all_gather = given(seconds, "of the weights of a stage")
    across = given(
        seconds, "all-reduce of a rank's share of the gradients with other groups that share; 0 with one group"
    )
    forward_compute = given(seconds, "of a stage and micro-batch")
    backward_compute = given(seconds, "of a stage and micro-batch")
    last_backward_compute = given(seconds, "the same, for what follows the last backward pass to hide behind")
    wire_factor = given(count, "measured time of overlapped reductions over that of lone ones", owner="assumption")
    hidden_share = given(count, "share of the communication that hides behind compute", owner="assumption")

    scatters = equation(
        count, select(gradients_sharded > 0, micro_batches, 1), "times that the gradients are reduced in a step"
    )
    one_reduction = equation(
        seconds, wire_factor * select(optimizer_sharded > 0, reduce_scatter, all_reduce), "of all gradients of a stage"
    )
    across_groups = equation(
        seconds,
        select(optimizer_sharded > 0, wire_factor * across, 0),
        "sums of the shares of several groups, once a step",
        source="Zhao et al. 2023, arXiv 2304.11277, section 3.2.2: hybrid sharding",
    )
    last_reduction = equation(
        seconds,
        select(weights_sharded > 0, 0, one_reduction) + across_groups,
        "what follows the last backward pass of a step",
    )
    gradient = equation(
        seconds,
        select(weights_sharded > 0, 0, (scatters - 1) * one_reduction) + last_reduction,
        "reductions of a step",
    )
    weight = equation(
        seconds,
        select(weights_sharded > 0, 0, select(optimizer_sharded > 0, wire_factor * all_gather, 0)),
        "gathering the updated weights",
    )
    gradient_behind_one = equation(
        seconds,
        hidden_share
        * (
            select(weights_sharded > 0, 0, (scatters - 1) * smallest(one_reduction, backward_compute))
            + smallest(last_reduction, last_backward_compute)
        ),
        "what hides of the reductions where each has the backward pass of one micro-batch",
    )
    gradient_behind_group = equation(
        seconds,
        select(
            gradients_sharded > 0,
            gradient_behind_one,
            hidden_share * smallest(last_reduction, pp * last_backward_compute),
        ),
        "what would hide if every chunk had the passes of a whole group",
    )
    least_gradient = equation(seconds, gradient - gradient_behind_group, "what would show then")
    last_gradient = equation(seconds, gradient_behind_group - gradient_behind_one, "what shows if no chunk has them")
    exposed_gradient = equation(
        seconds,
        least_gradient + last_gradient / virtual_stages,
        "what shows of the reductions: the chunk that is computed last has no group behind it",
        source="an event simulator",
    )
    weight_behind_one = equation(
        seconds, hidden_share * smallest(weight, forward_compute), "what hides of the gather behind one forward pass"
    )
    weight_behind_group = equation(
        seconds,
        hidden_share * smallest(weight, pp * forward_compute),
        "what would hide if every chunk had the passes of a whole group",
    )
    least_weight = equation(seconds, weight - weight_behind_group, "what would show then")
    first_weight = equation(seconds, weight_behind_group - weight_behind_one, "what shows if no chunk has them")
    exposed_weight = equation(
        seconds,
        least_weight + first_weight / virtual_stages,
        "what shows of the gather: the chunk that is computed first has no group before it",
        source="an event simulator",
    )
