"""Bytes that a rank sends in a step, by what they are for.

Counted as rings, direct exchanges and messages send them; whatever algorithm is faster sends as much, but for switches that add,
where an all-reduce sends half. Embedding and head are gathered once a micro-batch, as FSDP2's root group is. A token is sent
once to each of its experts, though one copy for those on a rank or node would do.
"""

from costmodel.equations.axes import CONTEXT, SEQUENCE
from costmodel.symbolic import Chapter, bytes_, choice, choose, count, equation, given, select


class Traffic(Chapter):
    """What one rank of the stage with most layers sends; its weights are those of the heaviest stage."""

    tp = given(count, "tensor-parallel ranks (t)")
    cp = given(count, "context-parallel ranks")
    pp = given(count, "pipeline stages")
    replicas = given(count, "ranks that hold the same weights (n)")
    sharing_ranks = given(count, "of these, the ranks that share what is shared: all, or a group of them (HSDP)")
    micro_batches = given(count, "micro-batches of a step (m)")
    layer_passes = given(count, "layers that the slowest stage runs in a step")
    virtual_stages = given(count, "chunks of layers on a rank (v)", owner="layout")
    sequence_parallel = choice(SEQUENCE.labels, "Megatron sequence parallelism")
    cp_type = choice(CONTEXT.labels, "how context-parallel ranks attend to all tokens")
    optimizer_sharded = given(count, "1 when they share the optimizer states", owner="layout")
    gradients_sharded = given(count, "1 when they share the gradients", owner="layout")
    weights_sharded = given(count, "1 when they share the weights", owner="layout")
    backward_gathers = given(count, "gathers of a layer's weights for its backward pass")
    embedding_gathers = given(count, "gathers of the embedding")
    served = given(count, "micro-batches that one gather and one scatter serve")
    tp_blocks = given(count, "blocks of a layer that tensor-parallel ranks share")
    repeated_tp = given(count, "times that recomputation repeats the tensor-parallel communication of a forward pass")
    repeated_layer = given(
        count, "times that it runs a whole layer again, with what joins tokens in a module before it"
    )
    repeated_ep = given(count, "times that it repeats the exchanges of experts")
    repeated_cp = given(count, "times that it repeats the context-parallel communication")
    sequence_split = given(count, "ranks that share what lies between the products")
    hidden_state_bytes = given(bytes_, "the hidden states of a micro-batch on a rank (H)")
    heaviest_stage = given(count, "weights on a rank of the heaviest stage (P), routed experts apart")
    layer_parameters = given(count, "weights of the average layer on a rank, routed experts apart")
    ep = given(count, "expert-parallel ranks", owner="layout")
    expert_replicas = given(count, "ranks that hold the same routed experts")
    expert_sharing_ranks = given(count, "of these, the ranks that share what is shared")
    heaviest_experts = given(count, "weights of routed experts on a rank of the stage with most")
    layer_experts = given(count, "weights of routed experts of the average layer on a rank")
    expert_share = given(count, "share of layers with experts")
    experts_per_token = given(count, "experts that a token takes", owner="model")
    sent_tokens = given(count, "tokens of a rank and micro-batch that go to experts")
    dispatched_token = given(bytes_, "a token on its way to an expert")
    combined_token = given(bytes_, "its result on the way back")
    etp = given(count, "ranks that share an expert's features", owner="layout")
    gathered_rows = given(bytes_, "rows that they gather")
    embedding_on_rank = given(count, "weights of the embedding on a rank")
    head_on_rank = given(count, "weights of the head on a rank")
    beside_head = given(count, "weights that are gathered with the head for modules that predict further tokens")
    module_passes = given(count, "such modules that the slowest stage runs in a step")
    element_size = given(bytes_, "a weight as it is gathered (e)", owner="workload")
    gradient_wire_bytes = given(bytes_, "a gradient as it is exchanged (g)", owner="assumption")
    ulysses_ranks = given(count, "ranks that exchange heads (u)")
    ring_ranks = given(count, "groups of them in a ring (r)")
    exchanged_in = given(bytes_, "queries, keys and values of a rank's tokens")
    exchanged_out = given(bytes_, "the attention's output")
    kv_block = given(bytes_, "keys and values that a rank begins with")
    kv_gradient_block = given(bytes_, "their gradients")
    gathered_kv = given(bytes_, "keys and values of all tokens")
    gathered_kv_gradient = given(bytes_, "their gradients")

    # Tensor parallelism, a layer and micro-batch
    tp_shards = equation(bytes_, (tp - 1) / tp * hidden_state_bytes, "one gather or scatter: (t - 1)/t of H")
    tp_forward = equation(bytes_, 2 * tp_blocks * tp_shards, "of each block, an all-reduce, or a gather and a scatter")
    tp_backward = equation(
        bytes_,
        tp_forward + choose(sequence_parallel, {"off": 0, "on": tp_blocks * tp_shards}),
        "as many, and with sequence parallelism the inputs gathered once more",
        source="Korthikanti et al. 2022, section 4.2.2",
    )
    joining_forward = equation(
        bytes_,
        choose(sequence_parallel, {"off": tp_shards, "on": 3 * tp_shards}),
        "of the projection of a module that predicts a further token: its result gathered, with sequence parallelism its two inputs too",
    )
    joining_backward = equation(
        bytes_,
        choose(sequence_parallel, {"off": 4 * tp_shards, "on": 5 * tp_shards}),
        "gradients of both inputs summed, or scattered and the inputs gathered once more, with that of the result",
    )
    sent_tp = equation(
        bytes_,
        layer_passes * ((1 + repeated_tp) * tp_forward + tp_backward)
        + module_passes * ((1 + repeated_layer) * joining_forward + joining_backward),
        "of tensor parallelism in a step",
    )

    # Context parallelism, a layer and micro-batch
    heads_exchanged = equation(
        bytes_,
        (ulysses_ranks - 1) / ulysses_ranks * (exchanged_in + exchanged_out),
        "heads for tokens and back",
        source="Jacobs et al. 2023, arXiv 2309.14509",
    )
    ring_forward = equation(bytes_, (ring_ranks - 1) * kv_block, "keys and values passed round")
    ring_backward = equation(
        bytes_,
        ring_forward + select(ring_ranks > 1, ring_ranks * kv_gradient_block, 0),
        "once more, and their gradients, which make one hop more",
        source="Liu et al. 2023, arXiv 2310.01889",
    )
    kv_gather = equation(bytes_, (cp - 1) / cp * gathered_kv, "keys and values gathered")
    kv_scatter = equation(bytes_, (cp - 1) / cp * gathered_kv_gradient, "their gradients scattered")
    cp_forward = equation(
        bytes_,
        choose(
            cp_type,
            dict.fromkeys(CONTEXT.labels, heads_exchanged + ring_forward) | {"all-gather": kv_gather},
        ),
        "forward",
    )
    cp_backward = equation(
        bytes_,
        choose(
            cp_type,
            dict.fromkeys(CONTEXT.labels, heads_exchanged + ring_backward) | {"all-gather": kv_gather + kv_scatter},
        ),
        "backward",
    )
    sent_cp = equation(
        bytes_, layer_passes * ((1 + repeated_cp) * cp_forward + cp_backward), "of context parallelism in a step"
    )

    # Expert parallelism, a layer of experts and micro-batch
    tokens_out = equation(
        count,
        sent_tokens * experts_per_token * (ep - 1) / ep,
        "copies of tokens that leave a rank: one for each expert",
    )
    rows_out = equation(
        bytes_,
        2 * (etp - 1) / etp * gathered_rows,
        "rows gathered and results scattered among the ranks that share an expert's features, each way",
    )
    ep_forward = equation(bytes_, tokens_out * (dispatched_token + combined_token) + rows_out, "there and back")
    ep_backward = equation(
        bytes_, 2 * tokens_out * combined_token + rows_out, "gradients both ways, at the precision of the way back"
    )
    sent_ep = equation(
        bytes_,
        layer_passes * expert_share * ((1 + repeated_ep) * ep_forward + ep_backward),
        "of expert parallelism in a step",
    )

    # Data parallelism; routed experts are held by other ranks than all else
    ranks = equation(count, select(optimizer_sharded > 0, sharing_ranks, replicas), "ranks of a group (n)")
    expert_ranks = equation(
        count, select(optimizer_sharded > 0, expert_sharing_ranks, expert_replicas), "the same of routed experts"
    )
    other_shards = equation(count, (ranks - 1) / ranks, "share of an array that others of the group hold: (n - 1)/n")
    other_expert_shards = equation(count, (expert_ranks - 1) / expert_ranks, "the same of routed experts")
    sent_across = equation(
        bytes_,
        2
        * gradient_wire_bytes
        * (
            (1 - ranks / replicas) * heaviest_stage / ranks
            + (1 - expert_ranks / expert_replicas) * heaviest_experts / expert_ranks
        ),
        "a rank's share of the gradients summed with those of other groups, once a step; nothing where there is one group",
        source="Zhao et al. 2023, arXiv 2304.11277, section 3.2.2: hybrid sharding",
    )
    owed = equation(
        count,
        other_shards * heaviest_stage + other_expert_shards * heaviest_experts,
        "weights whose gradients others need, or hold",
    )
    reductions = equation(
        count,
        select(gradients_sharded > 0, micro_batches, select(optimizer_sharded > 0, 1, 2)),
        "times that a gradient is sent: twice in an all-reduce, once scattered, every micro-batch with ZeRO-2",
        source="Rajbhandari et al. 2020, section 7",
    )
    updated = equation(
        bytes_,
        select(optimizer_sharded > 0, owed * element_size, 0),
        "updated weights, gathered once a step",
    )
    sent_dp = equation(
        bytes_,
        select(weights_sharded > 0, 0, reductions * owed * gradient_wire_bytes + updated) + sent_across,
        "of gradients and weights in a step, those of FSDP apart",
    )
    fsdp_layers = equation(
        bytes_,
        layer_passes
        * (other_shards * layer_parameters + other_expert_shards * layer_experts)
        * ((1 + backward_gathers) * element_size + gradient_wire_bytes)
        / served,
        "weights of every layer gathered forward, and backward unless they are kept, gradients scattered",
        source="Rajbhandari et al. 2020, section 7.2.2: 1.5 times the volume of an all-reduce",
    )
    tables_on_rank = equation(
        count,
        head_on_rank + beside_head + select(pp > 1, 0, embedding_on_rank),
        "embedding and head on a rank that has the head",
    )
    fsdp_tables = equation(
        bytes_,
        other_shards
        * micro_batches
        / served
        * (
            tables_on_rank * (element_size + gradient_wire_bytes)
            + select(pp > 1, 0, (embedding_gathers - 1) * embedding_on_rank * element_size)
        ),
        "embedding and head, which stay gathered between the passes, but for an embedding that is a group of its own",
        source="PyTorch FSDP2: one root group beside the blocks",
    )
    sent_fsdp = equation(
        bytes_, select(weights_sharded > 0, fsdp_layers + fsdp_tables, 0), "of FSDP (ZeRO-3) in a step"
    )

    # The pipeline
    message = equation(bytes_, hidden_state_bytes / sequence_split, "one message between stages")
    sent_pp = equation(
        bytes_,
        select(pp > 1, 2 * micro_batches * virtual_stages * message, 0),
        "of a stage with neighbours on both sides in a step: forward and backward, once a chunk",
    )
