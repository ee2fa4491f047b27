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
    kv_gradient_bytes = given(bytes_, "a gradient of a key or value as it is exchanged", owner="assumption")

    kv_heads_on_rank = equation(
        count,
        largest(layout.kv_heads / tp, 1),
        "key-value heads of a tensor-parallel rank; copies where they are too few",
    )
    kv_features = equation(
        count, tokens * 2 * kv_heads_on_rank * layout.head_size, "numbers in the keys and values of a rank's tokens"
    )
    kv_block = equation(bytes_, kv_features * e, "keys and values of a rank's tokens")
    kv_gradient_block = equation(bytes_, kv_features * kv_gradient_bytes, "their gradients")
    gathered_kv = equation(bytes_, cp * kv_block, "keys and values of all tokens")
    gathered_kv_gradient = equation(bytes_, cp * kv_gradient_block, "their gradients")
    exchanged_kv_heads = equation(
        count,
        largest(layout.kv_heads / tp, cp),
        "key-value heads that Ulysses hands out, at least one a rank: copies where they are too few",
        source="Jacobs et al. 2023, arXiv 2309.14509; copies as DeepSpeed's users make them for grouped queries",
    )
    exchanged_in = equation(
        bytes_,
        tokens * (layout.query_size / tp + 2 * exchanged_kv_heads * layout.head_size) * e,
        "queries, keys and values of a rank's tokens, all heads of tp",
    )
    exchanged_out = equation(bytes_, tokens * layout.query_size / tp * e, "the attention's output, likewise")
    copied_keys = equation(
        bytes_,
        choose(
            layout.cp_type,
            {
                "ring": 0,
                "ring-contiguous": 0,
                "all-gather": 0,
                "ulysses": select(
                    cp > 1, tokens * (exchanged_kv_heads * layout.head_size - layout.kv_size / tp) * e, 0
                ),
            },
        ),
        "keys (or values) that a rank keeps as copies of another rank's",
    )
    forward_buffers = equation(
        bytes_,
        select(
            cp > 1,
            choose(
                layout.cp_type,
                {
                    "ring": 2 * kv_block,
                    "ring-contiguous": 2 * kv_block,
                    "all-gather": gathered_kv,
                    "ulysses": exchanged_in,
                },
            ),
            0,
        ),
        "keys and values in use and arriving; all of them; or what is sent",
    )
    gradient_buffers = equation(
        bytes_,
        select(
            cp > 1,
            choose(
                layout.cp_type,
                {
                    "ring": 2 * kv_gradient_block,
                    "ring-contiguous": 2 * kv_gradient_block,
                    "all-gather": gathered_kv_gradient,
                    "ulysses": 0,
                },
            ),
            0,
        ),
        "the same for gradients, in the backward pass",
    )


class ContextParallel(Chapter):
    """The exchanges of one layer and micro-batch, and what shows of them.

    A ring of n ranks attends to its own keys, then to one received block a step, while the next block is under way; backward
    the gradient of each block travels with it, one step behind, and makes one more hop to where it belongs. A gather and the
    exchanges of Ulysses stand before and after the attention and all show.
    """

    cp = given(count, "context-parallel ranks (n)")
    cp_type = choice(CONTEXT.labels, "how context-parallel ranks attend to all tokens", CONTEXT)
    send = given(seconds, "keys and values of a rank to the next (c)")
    send_gradient = given(seconds, "their gradients to the next (d)")
    all_gather = given(seconds, "of all keys and values")
    reduce_scatter = given(seconds, "of their gradients")
    exchange_in = given(seconds, "all-to-all of queries, keys and values")
    exchange_out = given(seconds, "all-to-all of the attention's output")
    attention_forward = given(seconds, "of the slowest rank")
    attention_backward = given(seconds, "of the slowest rank")
    first_forward = given(seconds, "of this, the first step of the ring")
    first_backward = given(seconds, "of this, the first step of the ring")
    hidden_share = given(count, "share that really hides of what a ring can hide", owner="assumption")

    later_forward = equation(
        seconds, (attention_forward - first_forward) / largest(cp - 1, 1), "a later step of the ring, forward"
    )
    later_backward = equation(
        seconds, (attention_backward - first_backward) / largest(cp - 1, 1), "a later step of the ring, backward"
    )
    ring_forward = equation(seconds, (cp - 1) * send, "n - 1 blocks received")
    ring_backward = equation(seconds, (cp - 1) * send + cp * send_gradient, "the same, and n gradients")
    ring_hidden_forward = equation(
        seconds,
        smallest(first_forward, send) + (cp - 2) * smallest(later_forward, send),
        "behind all steps but the last",
        source="executed step by step; one exchange a step, or free to run ahead: the same",
        valid="n of 2 or more",
    )
    ring_hidden_backward = equation(
        seconds,
        smallest(first_backward, send)
        + (cp - 2) * smallest(later_backward, send + send_gradient)
        + smallest(later_backward, send_gradient),
        "the first step has no gradient to send yet, the last no keys; the last hop of a gradient shows",
        source="executed step by step",
        valid="n of 2 or more",
    )
    forward = equation(
        seconds,
        select(
            cp > 1,
            choose(
                cp_type,
                {
                    "ring": ring_forward,
                    "ring-contiguous": ring_forward,
                    "all-gather": all_gather,
                    "ulysses": exchange_in + exchange_out,
                },
            ),
            0,
        ),
        "exchanges of a layer, forward",
        source="Liu et al. 2023, arXiv 2310.01889; Dubey et al. 2024, arXiv 2407.21783, section 3.3.2; Jacobs et al. 2023",
    )
    backward = equation(
        seconds,
        select(
            cp > 1,
            choose(
                cp_type,
                {
                    "ring": ring_backward,
                    "ring-contiguous": ring_backward,
                    "all-gather": all_gather + reduce_scatter,
                    "ulysses": exchange_in + exchange_out,
                },
            ),
            0,
        ),
        "exchanges of a layer, backward: keys and values once more, and their gradients",
    )
    exposed_forward = equation(
        seconds,
        select(
            cp > 1,
            choose(
                cp_type,
                {
                    "ring": forward - hidden_share * ring_hidden_forward,
                    "ring-contiguous": forward - hidden_share * ring_hidden_forward,
                    "all-gather": forward,
                    "ulysses": forward,
                },
            ),
            0,
        ),
        "what shows of them, forward",
        approximate="layers with and without a sliding window are averaged first",
    )
    exposed_backward = equation(
        seconds,
        select(
            cp > 1,
            choose(
                cp_type,
                {
                    "ring": backward - hidden_share * ring_hidden_backward,
                    "ring-contiguous": backward - hidden_share * ring_hidden_backward,
                    "all-gather": backward,
                    "ulysses": backward,
                },
            ),
            0,
        ),
        "what shows of them, backward",
        approximate="layers with and without a sliding window are averaged first",
    )
