"""Context parallelism: ranks that share the tokens of a sequence, what they exchange to attend to all of them, and what shows."""

from costmodel.equations.axes import CONTEXT
from costmodel.equations.parallelism.layout import Layout
from costmodel.symbolic import (
    Chapter,
    bytes_,
    choice,
    choose,
    count,
    equation,
    given,
    largest,
    part,
    seconds,
    select,
    smallest,
)


class ContextPayloads(Chapter):
    """What the attention of one layer and micro-batch exchanges among the context-parallel ranks, in bytes of a rank."""

    layout = part(Layout, shared=True)
    tp, cp, tokens, e = layout.tp, layout.cp, layout.tokens, layout.element_size
    u, r = layout.ulysses_ranks, layout.ring_ranks
    kv_gradient_bytes = given(bytes_, "a gradient of a key or value as it is exchanged", owner="assumption")

    head_features = equation(count, layout.key_head_size + layout.value_features, "features of a key and a value")
    exchanged_kv_heads = equation(
        count,
        largest(layout.kv_heads_on_rank, u),
        "key-value heads of a tensor-parallel rank once each of u ranks has one: copies where they are too few",
        source="Jacobs et al. 2023, arXiv 2309.14509; copies as DeepSpeed's users make them for grouped queries",
    )
    exchanged_in = equation(
        bytes_,
        tokens * (layout.queries_size / tp + exchanged_kv_heads * head_features) * e,
        "queries, keys and values of a rank's tokens, all heads of tp",
    )
    exchanged_out = equation(bytes_, tokens * layout.outputs_size / tp * e, "the attention's output, likewise")
    kv_features = equation(
        count,
        tokens * exchanged_kv_heads * head_features,
        "numbers in the keys and values that a rank begins with",
    )
    kv_block = equation(bytes_, kv_features * e, "keys and values that a rank begins with")
    kv_gradient_block = equation(bytes_, kv_features * kv_gradient_bytes, "their gradients")
    gathered_kv = equation(bytes_, cp * kv_block, "keys and values of all tokens")
    gathered_kv_gradient = equation(bytes_, cp * kv_gradient_block, "their gradients")
    copied_keys = equation(
        bytes_,
        select(
            u > 1,
            tokens * (exchanged_kv_heads * head_features / 2 - (layout.keys_size + layout.values_size) / (2 * tp)) * e,
            0,
        ),
        "keys (or values) that a rank keeps as copies of another rank's",
    )
    exchange_buffers = equation(
        bytes_,
        select(u > 1, exchanged_in, 0) + select(r > 1, 2 * kv_block, 0),
        "what is sent for heads; keys and values in use and arriving",
    )
    forward_buffers = equation(
        bytes_,
        choose(
            layout.cp_type,
            {
                "ring": exchange_buffers,
                "ring-contiguous": exchange_buffers,
                "all-gather": select(cp > 1, gathered_kv, 0),
                "ulysses": exchange_buffers,
                "usp": exchange_buffers,
            },
        ),
        "held for the exchange, or the keys and values of all tokens",
    )
    ring_gradient_buffers = equation(
        bytes_, select(r > 1, 2 * kv_gradient_block, 0), "gradients of keys and values in use and arriving"
    )
    gradient_buffers = equation(
        bytes_,
        choose(
            layout.cp_type,
            {
                "ring": ring_gradient_buffers,
                "ring-contiguous": ring_gradient_buffers,
                "all-gather": select(cp > 1, gathered_kv_gradient, 0),
                "ulysses": 0,
                "usp": ring_gradient_buffers,
            },
        ),
        "besides, in the backward pass",
    )


class ContextParallel(Chapter):
    """The exchanges of one layer and micro-batch, and what shows of them.

    A ring of r groups attends to the keys of its own, then to one received block a step, while the next block is under way;
    backward the gradient of each block travels with it, one step behind, and makes one more hop to where it belongs. Heads
    are exchanged for tokens, or keys gathered, before and after the attention; all of that shows.
    """

    cp = given(count, "context-parallel ranks")
    cp_type = choice(CONTEXT.labels, "how context-parallel ranks attend to all tokens", CONTEXT)
    ring_ranks = given(count, "groups in the ring (r)")
    send = given(seconds, "keys and values of a rank to the next group (c); nothing without a ring")
    send_gradient = given(seconds, "their gradients to the next group (d)")
    all_gather = given(seconds, "of all keys and values")
    reduce_scatter = given(seconds, "of their gradients")
    exchange_in = given(seconds, "all-to-all of queries, keys and values; nothing where no heads are exchanged")
    exchange_out = given(seconds, "all-to-all of the attention's output")
    attention_forward = given(seconds, "of the slowest rank")
    attention_backward = given(seconds, "of the slowest rank")
    first_forward = given(seconds, "of this, the first step of the ring")
    first_backward = given(seconds, "of this, the first step of the ring")
    hidden_share = given(count, "share that really hides of what a ring can hide", owner="assumption")

    later_steps = equation(count, largest(ring_ranks - 1, 1), "steps of the ring after the first")
    later_forward = equation(seconds, (attention_forward - first_forward) / later_steps, "one of them, forward")
    later_backward = equation(seconds, (attention_backward - first_backward) / later_steps, "one of them, backward")
    exchange = equation(seconds, exchange_in + exchange_out, "heads for tokens and back, the same both ways")
    ring_forward = equation(seconds, (ring_ranks - 1) * send, "r - 1 blocks received")
    ring_backward = equation(seconds, (ring_ranks - 1) * send + ring_ranks * send_gradient, "the same, and r gradients")
    ring_hidden_forward = equation(
        seconds,
        smallest(first_forward, send) + (ring_ranks - 2) * smallest(later_forward, send),
        "behind all steps but the last",
        source="executed step by step; one exchange a step, or free to run ahead: the same",
    )
    ring_hidden_backward = equation(
        seconds,
        smallest(first_backward, send)
        + (ring_ranks - 2) * smallest(later_backward, send + send_gradient)
        + smallest(later_backward, send_gradient),
        "the first step has no gradient to send yet, the last no keys; the last hop of a gradient shows",
        source="executed step by step",
    )
    exchanged_forward = equation(seconds, exchange + ring_forward, "of heads and round the ring, forward")
    exchanged_backward = equation(seconds, exchange + ring_backward, "of heads and round the ring, backward")
    forward = equation(
        seconds,
        choose(
            cp_type,
            {
                "ring": exchanged_forward,
                "ring-contiguous": exchanged_forward,
                "all-gather": all_gather,
                "ulysses": exchanged_forward,
                "usp": exchanged_forward,
            },
        ),
        "exchanges of a layer, forward",
        source="Liu et al. 2023, arXiv 2310.01889; Dubey et al. 2024, arXiv 2407.21783, section 3.3.2; Jacobs et al. 2023",
    )
    backward = equation(
        seconds,
        choose(
            cp_type,
            {
                "ring": exchanged_backward,
                "ring-contiguous": exchanged_backward,
                "all-gather": all_gather + reduce_scatter,
                "ulysses": exchanged_backward,
                "usp": exchanged_backward,
            },
        ),
        "exchanges of a layer, backward: keys and values once more, and their gradients",
    )
    hidden_forward = equation(
        seconds,
        choose(
            cp_type,
            {
                "ring": ring_hidden_forward,
                "ring-contiguous": ring_hidden_forward,
                "all-gather": 0,
                "ulysses": 0,
                "usp": ring_hidden_forward,
            },
        ),
        "what can hide of them, forward",
    )
    hidden_backward = equation(
        seconds,
        choose(
            cp_type,
            {
                "ring": ring_hidden_backward,
                "ring-contiguous": ring_hidden_backward,
                "all-gather": 0,
                "ulysses": 0,
                "usp": ring_hidden_backward,
            },
        ),
        "what can hide of them, backward",
    )
    exposed_forward = equation(
        seconds,
        forward - hidden_share * hidden_forward,
        "what shows of them, forward",
        approximate="layers with and without a sliding window are averaged first",
    )
    exposed_backward = equation(
        seconds,
        backward - hidden_share * hidden_backward,
        "what shows of them, backward",
        approximate="layers with and without a sliding window are averaged first",
    )
