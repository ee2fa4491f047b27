"""Data parallelism: DDP, ZeRO-1, ZeRO-2 and ZeRO-3 (FSDP): what is exchanged, when, and what shows of it."""

from costmodel.equations.axes import RESHARD, SCHEDULE, SHARDING
from costmodel.symbolic import Chapter, choice, choose, count, equation, given, seconds, select, smallest

FSDP2 = "PyTorch FSDP2: reshard_after_forward, set_reshard_after_backward, set_requires_gradient_sync"


class Resharding(Chapter):
    """How long FSDP keeps what it gathered: to the end of a layer's forward pass, of its backward pass, or of the step.

    What is kept to the end of a step is gathered once a step, and its gradients are scattered once, whole until then.
    """

    pp = given(count, "pipeline stages")
    micro_batches = given(count, "micro-batches of a step (m)")
    weights_sharded = given(count, "1 when the weights are shared", SHARDING, owner="layout")
    reshard = choice(RESHARD, "after what FSDP gives up the weights that it gathered", SHARDING)
    fsdp_keeps_stage = given(
        count,
        "1 where FSDP in a pipeline keeps the gathered weights and whole gradients of a stage",
        owner="assumption",
    )

    fsdp_tables_apart = given(
        count,
        "1 where FSDP shards the embedding, and the head with the final norm, as groups of their own",
        owner="assumption",
    )

    by_framework = equation(
        count, fsdp_keeps_stage * select(pp > 1, 1, 0), "1 where the framework keeps them to the end of a step"
    )
    kept_to_backward = equation(
        count,
        select(
            weights_sharded > 0, choose(reshard, {"default": by_framework, "forward": 0, "backward": 1, "step": 1}), 0
        ),
        "1 where the backward pass finds them gathered",
        source=FSDP2,
    )
    kept_to_end = equation(
        count,
        select(
            weights_sharded > 0, choose(reshard, {"default": by_framework, "forward": 0, "backward": 0, "step": 1}), 0
        ),
        "1 where the next micro-batch does",
        source=FSDP2,
    )
    backward_gathers = equation(count, 1 - kept_to_backward, "gathers of a layer for its backward pass")
    embedding_gathers = equation(
        count,
        1 + fsdp_tables_apart * backward_gathers,
        "gathers of the embedding: a group of its own is given up after its forward pass, as a layer is",
        source="pytorch/torchtitan pull request 1094",
    )
    served = equation(
        count, select(kept_to_end > 0, micro_batches, 1), "micro-batches that one gather and one scatter serve"
    )


class FullySharded(Chapter):
    """ZeRO-3 (FSDP): a layer's weights are gathered before use, forward and backward, and its gradients scattered.

    The backward pass needs no gather where weights are kept. Gathers are prefetched behind the layer before, scatters behind the layer after.
    """

    dp = given(count, "data-parallel ranks")
    weights_sharded = given(count, "1 when the weights are shared", SHARDING, owner="layout")
    gather_layer = given(seconds, "all-gather of the weights of one layer")
    scatter_layer = given(seconds, "reduce-scatter of the gradients of one layer")
    forward_compute = given(seconds, "of a layer and micro-batch, its tensor-parallel communication included")
    backward_compute = given(seconds, "of a layer and micro-batch, its tensor-parallel communication included")
    wire_factor = given(count, "measured time of overlapped gathers over that of lone ones", owner="assumption")
    hidden_share = given(count, "share of the communication that hides behind compute", owner="assumption")
    backward_gathers = given(count, "gathers of a layer for its backward pass")
    served = given(count, "micro-batches that one gather and one scatter serve")

    forward_once = equation(
        seconds, select(weights_sharded > 0, wire_factor * gather_layer, 0), "of a layer, forward, each time"
    )
    backward_once = equation(
        seconds,
        select(weights_sharded > 0, wire_factor * (backward_gathers * gather_layer + scatter_layer), 0),
        "of a layer, backward, each time",
        source="Rajbhandari et al. 2020, section 7.2.2: 1.5 times the volume of an all-reduce",
    )
    forward = equation(seconds, forward_once / served, "of a layer and micro-batch, forward")
    backward = equation(seconds, backward_once / served, "of a layer and micro-batch, backward")
    hidden_of_each = equation(count, hidden_share / served, "of what hides each time, the part of a micro-batch")
    exposed_forward = equation(
        seconds, forward - hidden_of_each * smallest(forward_once, forward_compute), "what shows of it, forward"
    )
    exposed_backward = equation(
        seconds, backward - hidden_of_each * smallest(backward_once, backward_compute), "what shows of it, backward"
    )


class ShardedTables(Chapter):
    """ZeRO-3 (FSDP) of embedding and head: gathered once a micro-batch, as they stay until the backward pass, scattered once.

    Once a step where they are kept to its end. The embedding is used first and its gradient is complete last, when nothing is left to hide behind; the head has what the
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
    embedding_gathers = given(count, "gathers of the embedding")
    served = given(count, "micro-batches that one gather and one scatter serve")

    embedding_again = equation(
        seconds,
        select(weights_sharded > 0, wire_factor * embedding_size * (embedding_gathers - 1) * gather_layer, 0),
        "of the embedding for its backward pass, each time",
        approximate="at the rate of a layer, and taken to hide behind the backward pass of the first layer",
    )
    embedding = equation(
        seconds,
        select(weights_sharded > 0, wire_factor * embedding_size * (gather_layer + scatter_layer), 0),
        "of the embedding, each time",
        approximate="at the rate of a layer",
    )
    head_forward = equation(
        seconds,
        select(weights_sharded > 0, wire_factor * head_size * gather_layer, 0),
        "of the head, forward, each time",
        approximate="at the rate of a layer",
    )
    head_backward = equation(
        seconds,
        select(weights_sharded > 0, wire_factor * head_size * scatter_layer, 0),
        "of the head, backward, each time",
        approximate="at the rate of a layer",
    )
    total = equation(
        seconds,
        (embedding + embedding_again + head_forward + head_backward) / served,
        "of a micro-batch, hidden or not",
    )
    hidden_of_each = equation(count, hidden_share / served, "of what hides each time, the part of a micro-batch")
    unprefetched = equation(
        seconds, total - hidden_of_each * embedding_again, "without what hides of the embedding's second gather"
    )
    exposed = equation(
        seconds,
        unprefetched - hidden_of_each * (smallest(head_forward, forward_left) + smallest(head_backward, backward_left)),
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
