"""Work of one token: matrix multiplications and attention, forward and for training, and the 6N rule.

Conventions, as in "How To Scale Your Model" (part 4) and PaLM (arXiv 2204.02311, appendix B): a weight that multiplies
costs two FLOPs a token forward and four backward; looking up the embedding costs nothing; norms, activations, softmax
and the recurrence of hybrid layers are not counted. Attention is counted in full (every token attends to the whole
sequence) and causal (to those before it: half of that), both within the sliding window, or
the chunks, of the layers that have them and within a document.
"""

from __future__ import annotations

from costmodel.equations.model.mask import CausalMask
from costmodel.equations.model.parameters import Parameters
from costmodel.symbolic import FLOP, Chapter, count, either, equation, floor_divide, flop, given, largest, part, select


class Windows(Chapter):
    """How many tokens a token attends to, on the average over a sequence, in layers with and without a sliding window or chunks."""

    sequence_length = given(count, "tokens of a sequence (T)", owner="workload")
    attention_layers = given(count, "layers that attend", owner="model")
    window = given(count, "tokens that a sliding-window layer attends to, 0 when no layer slides", owner="model")
    attention_chunk = given(
        count, "tokens of the chunks that a layer's tokens attend within, 0 when no layer has chunks", owner="model"
    )
    window_every = given(count, "of every this many layers, all but one slide or have chunks; 1: all do", owner="model")

    sliding_layers = equation(
        count,
        select(
            either(window > 0, attention_chunk > 0),
            attention_layers - select(window_every > 1, floor_divide(attention_layers, window_every), 0),
            0,
        ),
        "layers with a sliding window or chunks",
    )
    full_layers = equation(count, attention_layers - sliding_layers, "layers that attend to the whole sequence")
    in_full = part(CausalMask, window=sequence_length, attention_chunk=0)
    in_window = part(CausalMask)
    attended_full = equation(
        count,
        full_layers * in_full.seen + sliding_layers * in_window.attended,
        "tokens attended to, added over layers, as if none were later",
        source="Chowdhery et al. 2022, arXiv 2204.02311, appendix B",
    )
    kept_tokens = equation(
        count,
        full_layers * in_full.seen + sliding_layers * in_window.seen,
        "tokens whose keys and values are kept, added over layers: all, the last window of them, or a chunk",
    )
    attended_causal = equation(
        count,
        (full_layers * in_full.causal_pairs + sliding_layers * in_window.causal_pairs) / sequence_length,
        "tokens attended to, added over layers, none of them later",
    )


class Flops(Chapter):
    """Floating-point operations of one token; a step's are these times its tokens."""

    shape = part(Parameters, shared=True)
    windows = part(Windows, shared=True)
    tied_embeddings = shape.tied_embeddings

    attention_layer_flops = equation(flop, 2 * FLOP * shape.attention_matrices, "projections of one attention layer")
    ffn_layer_flops = equation(flop, 2 * FLOP * shape.ffn_matrices, "one dense feed-forward")
    expert_layer_flops = equation(
        flop,
        2
        * FLOP
        * (shape.experts_per_token * shape.expert_matrices + shape.shared_expert_matrices + shape.router_matrices),
        "router, experts taken and shared experts of one layer",
    )
    projection_flops = equation(
        flop,
        shape.attention_layers * attention_layer_flops,
        "projections of all attention layers, forward",
    )
    recurrent_flops = equation(
        flop,
        2 * FLOP * shape.recurrent_layers * shape.recurrent_matrices,
        "projections of all recurrent layers, forward",
        approximate="the convolution and the recurrence itself are left out",
    )
    ffn_flops = equation(flop, shape.dense_layers * ffn_layer_flops, "dense feed-forwards of all layers, forward")
    expert_flops = equation(
        flop,
        shape.expert_layers * expert_layer_flops,
        "router, experts taken and shared experts of all layers, forward",
    )
    latents_up_flops = equation(
        flop,
        2 * FLOP * shape.attention_layers * shape.latent_up_matrices,
        "of the projections, those from latents to heads",
    )
    shared_flops = equation(
        flop, 2 * FLOP * shape.expert_layers * shape.shared_expert_matrices, "of the experts, the shared ones"
    )
    head_flops = equation(flop, 2 * FLOP * shape.vocabulary * shape.hidden_size, "the head, forward")
    score_size = equation(
        count,
        shape.queries_size + shape.outputs_size,
        "features multiplied for each pair of tokens: query with key, weight with value",
    )
    attention_flops = equation(
        flop, 2 * FLOP * score_size * windows.attended_full, "attention of all layers in full, forward"
    )
    attention_flops_causal = equation(
        flop, 2 * FLOP * score_size * windows.attended_causal, "attention of all layers, causal, forward"
    )
    matmul_flops = equation(
        flop, projection_flops + recurrent_flops + ffn_flops + expert_flops + head_flops, "all weights, forward"
    )
    forward_flops = equation(flop, matmul_flops + attention_flops, "one forward pass, attention in full")
    forward_flops_causal = equation(flop, matmul_flops + attention_flops_causal, "one forward pass, attention causal")
    training_flops = equation(
        flop,
        3 * forward_flops,
        "forward and backward, attention in full, nothing recomputed: the model FLOPs of MFU",
        source="Chowdhery et al. 2022, arXiv 2204.02311, appendix B: 6N + 12 L N H T",
    )
    recomputed_flops = equation(
        flop,
        4 * forward_flops,
        "forward twice and backward, attention in full: hardware FLOPs with everything recomputed",
    )
    training_flops_causal = equation(
        flop, 3 * forward_flops_causal, "forward and backward, attention causal, nothing recomputed"
    )
    six_n_flops = equation(
        flop,
        6 * FLOP * shape.active_parameters,
        "forward and backward by the 6N rule: every active parameter multiplies, attention is free",
        source="Kaplan et al. 2020, arXiv 2001.08361, section 2.1; How To Scale Your Model, part 4",
    )

    # A module that predicts a further token
    joining_flops = equation(
        flop, 2 * FLOP * shape.joining_matrix, "projection of two hidden states to one in such a module, forward"
    )
    module_matmul_flops = equation(
        flop,
        attention_layer_flops
        + select(shape.experts > 0, expert_layer_flops, ffn_layer_flops)
        + joining_flops
        + head_flops,
        "weights of one module that predicts a further token, the head once more among them, forward",
    )
    module_flops = equation(
        flop,
        module_matmul_flops + attention_flops / largest(1, shape.attention_layers),
        "such a module, attention in full, forward",
    )
    module_flops_causal = equation(
        flop,
        module_matmul_flops + attention_flops_causal / largest(1, shape.attention_layers),
        "such a module, attention causal, forward",
    )
