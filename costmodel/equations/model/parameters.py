"""The parameters of a decoder, item by item: what a checkpoint holds.

Symbols in the literature: L layers, D hidden_size, F ffn_size, N heads, K kv_heads, H head_size, V vocabulary,
E experts. Flags (tied_embeddings, gated_ffn, ...) are 1 where they hold and 0 where not.

The items add up to a checkpoint's parameter count to the last one. Heads that predict further tokens, vision towers
and the indexers of sparse attention are not counted.
"""

from __future__ import annotations

from costmodel.symbolic import Chapter, ceil_divide, choice, choose, count, equation, given, part, select

NORMS = ("rmsnorm", "layernorm", "layernorm-no-bias", "none")
QK_NORMS = ("none", "per-head", "full")
ATTENTION_BIASES = ("none", "qkv", "qkvo")
RECURRENT_KINDS = ("none", "mamba2", "gated-delta-net", "lightning")


class Attention(Chapter):
    """One attention layer: heads that share keys and values in groups, or multi-head latent attention.

    With latent attention `head_size` is not used: queries and keys have rope_head_size + plain_head_size features.
    """

    hidden_size = given(count, "features of a token between layers (D)", owner="model")
    heads = given(count, "query heads (N)", owner="model")
    kv_heads = given(count, "key and value heads (K): heads for full, 1 for multi-query attention", owner="model")
    head_size = given(count, "features of a head (H)", owner="model")
    attention_bias = choice(ATTENTION_BIASES, "which projections have a bias", owner="model")
    qk_norm = choice(
        QK_NORMS, "norm of queries and keys: none, shared by the heads, or over all of them", owner="model"
    )
    attention_gate = given(count, "1 when the output is gated by a projection of its own size, else 0", owner="model")
    attention_sinks = given(count, "1 when each head has one learned logit beside the keys, else 0", owner="model")
    query_rank = given(
        count, "width of the compressed query of latent attention, 0 when it is not compressed", owner="model"
    )
    kv_rank = given(
        count,
        "width of the compressed key and value of latent attention, 0 when attention is not latent",
        owner="model",
    )
    rope_head_size = given(count, "rotary features of a latent head", owner="model")
    plain_head_size = given(count, "features of a latent head without position", owner="model")
    value_head_size = given(count, "features of the value of a latent head", owner="model")

    query_size = equation(count, heads * head_size, "features of all queries of a token")
    kv_size = equation(count, kv_heads * head_size, "features of all keys, or values, of a token")

    # What the attention itself sees: latent keys and values are multiplied out to all heads in training.
    key_head_size = equation(
        count, select(kv_rank > 0, rope_head_size + plain_head_size, head_size), "features of a query or key"
    )
    value_features = equation(count, select(kv_rank > 0, value_head_size, head_size), "features of a value")
    key_value_heads = equation(count, select(kv_rank > 0, heads, kv_heads), "heads of keys and values")
    queries_size = equation(count, heads * key_head_size, "features of all queries that attend")
    keys_size = equation(count, key_value_heads * key_head_size, "features of all keys")
    values_size = equation(count, key_value_heads * value_features, "features of all values")
    outputs_size = equation(count, heads * value_features, "features of the attention's output")
    rotated_size = equation(
        count,
        select(kv_rank > 0, heads * rope_head_size + rope_head_size, query_size + kv_size),
        "features of queries and keys that rotary positions turn",
    )
    latents_size = equation(
        count,
        select(kv_rank > 0, query_rank + kv_rank + rope_head_size, 0),
        "features of the compressed query, key and value",
    )
    grouped_matrices = equation(
        count,
        hidden_size * ((2 + attention_gate) * query_size + 2 * kv_size),
        "query, output and gate; key and value",
        source="Ainslie et al. 2023, arXiv 2305.13245; How To Scale Your Model, part 4: 2D(N+K)H",
    )
    latent_query_size = equation(
        count, heads * (rope_head_size + plain_head_size), "features of all latent queries of a token"
    )
    latent_query_matrices = equation(
        count,
        select(query_rank > 0, query_rank * (hidden_size + latent_query_size), hidden_size * latent_query_size),
        "down to the compressed query and up to the heads, or straight to the heads",
    )
    latent_matrices = equation(
        count,
        latent_query_matrices
        + hidden_size * (kv_rank + rope_head_size)
        + kv_rank * heads * (plain_head_size + value_head_size)
        + heads * value_head_size * hidden_size,
        "query; down to the compressed key and value and the shared rotary key; up to the heads; output",
        source="DeepSeek-AI 2024, arXiv 2405.04434, section 2.1",
    )
    attention_matrices = equation(
        count, select(kv_rank > 0, latent_matrices, grouped_matrices), "weights that multiply in one attention layer"
    )
    qkv_bias_parameters = equation(
        count,
        choose(attention_bias, {"none": 0, "qkv": query_size + 2 * kv_size, "qkvo": query_size + 2 * kv_size}),
        "biases of queries, keys and values of one layer",
    )
    output_bias_parameters = equation(
        count,
        choose(attention_bias, {"none": 0, "qkv": 0, "qkvo": hidden_size}),
        "bias of the output of one attention layer",
    )
    qk_norm_parameters = equation(
        count,
        choose(qk_norm, {"none": 0, "per-head": 2 * head_size, "full": query_size + kv_size}),
        "norms of queries and keys of one layer",
    )
    latent_norm_parameters = equation(
        count, query_rank + kv_rank, "norms of the compressed query and key-value of one layer"
    )
    attention_layer_parameters = equation(
        count,
        attention_matrices
        + qkv_bias_parameters
        + output_bias_parameters
        + qk_norm_parameters
        + latent_norm_parameters
        + attention_sinks * heads,
        "one attention layer",
    )


class FeedForward(Chapter):
    """One dense feed-forward layer, gated (three matrices: SwiGLU, GeGLU) or plain (two)."""

    hidden_size = given(count, "features of a token between layers (D)", owner="model")
    ffn_size = given(count, "features inside the feed-forward (F)", owner="model")
    gated_ffn = given(count, "1 when the feed-forward has a gate matrix, else 0", owner="model")
    ffn_bias = given(count, "1 when the feed-forward's matrices have biases, else 0", owner="model")

    ffn_matrices = equation(
        count,
        (2 + gated_ffn) * hidden_size * ffn_size,
        "weights that multiply in one dense feed-forward",
        source="Shazeer 2020, arXiv 2002.05202",
    )
    ffn_layer_parameters = equation(
        count, ffn_matrices + ffn_bias * ((1 + gated_ffn) * ffn_size + hidden_size), "one dense feed-forward"
    )


class MixtureOfExperts(Chapter):
    """One layer of experts: routed ones of which a token takes some, shared ones that all take, and the router."""

    feed_forward = part(FeedForward, shared=True)
    hidden_size, gated_ffn, ffn_bias = feed_forward.hidden_size, feed_forward.gated_ffn, feed_forward.ffn_bias
    experts = given(count, "routed experts of a layer (E), 0 when the model is dense", owner="model")
    experts_per_token = given(count, "routed experts that a token takes", owner="model")
    expert_ffn_size = given(count, "features inside a routed expert", owner="model")
    shared_experts = given(count, "experts that every token takes", owner="model")
    shared_ffn_size = given(count, "features inside a shared expert", owner="model")
    latent_size = given(count, "width that routed experts work on, 0 for the hidden size", owner="model")
    router_bias = given(count, "1 when the router has a bias per expert, else 0", owner="model")
    shared_gate = given(count, "1 when a learned gate weighs the shared experts, else 0", owner="model")

    expert_width = equation(
        count, select(latent_size > 0, latent_size, hidden_size), "features that a routed expert reads and writes"
    )
    expert_matrices = equation(
        count, (2 + gated_ffn) * expert_width * expert_ffn_size, "weights that multiply in one routed expert"
    )
    expert_parameters = equation(
        count, expert_matrices + ffn_bias * ((1 + gated_ffn) * expert_ffn_size + expert_width), "one routed expert"
    )
    shared_expert_matrices = equation(
        count,
        shared_experts * (2 + gated_ffn) * hidden_size * shared_ffn_size + shared_gate * hidden_size,
        "weights that multiply in the shared experts of one layer and their gate",
    )
    router_matrices = equation(
        count,
        hidden_size * experts + 2 * hidden_size * latent_size,
        "weights of one layer's router, and of the way to the latent width and back",
    )
    router_layer_parameters = equation(count, router_matrices + router_bias * experts, "one layer's router")
    expert_layer_parameters = equation(
        count, experts * expert_parameters + shared_expert_matrices + router_layer_parameters, "one layer of experts"
    )


class RecurrentLayer(Chapter):
    """One layer that keeps a state in place of attention: Mamba-2, gated delta net or lightning attention."""

    hidden_size = given(count, "features of a token between layers (D)", owner="model")
    recurrent_kind = choice(RECURRENT_KINDS, "kind of the recurrent layers", owner="model")
    recurrent_heads = given(count, "heads of a recurrent layer", owner="model")
    recurrent_head_size = given(count, "value features of a recurrent head", owner="model")
    recurrent_groups = given(count, "keys and queries that the heads share", owner="model")
    state_size = given(count, "features of a key or query of a recurrent layer", owner="model")
    convolution = given(count, "length of the short convolution before the recurrence", owner="model")

    recurrent_value_size = equation(count, recurrent_heads * recurrent_head_size, "value features of all heads")
    recurrent_key_size = equation(count, recurrent_groups * state_size, "features of all keys, or queries")
    convolved_size = equation(
        count, recurrent_value_size + 2 * recurrent_key_size, "features that the convolution runs over"
    )
    recurrent_matrices = equation(
        count,
        hidden_size
        * (
            3 * recurrent_value_size
            + 2 * recurrent_key_size
            + choose(
                recurrent_kind,
                {"none": 0, "mamba2": recurrent_heads, "gated-delta-net": 2 * recurrent_heads, "lightning": 0},
            )
        ),
        "value, gate, output, key and query; steps and decays of each head",
        source="Dao and Gu 2024, arXiv 2405.21060; Yang et al. 2024, arXiv 2412.06464; Qin et al. 2024, arXiv 2401.04658",
    )
    recurrent_layer_parameters = equation(
        count,
        recurrent_matrices
        + choose(
            recurrent_kind,
            {
                "none": 0,
                "mamba2": convolved_size * (convolution + 1) + 3 * recurrent_heads + recurrent_value_size,
                "gated-delta-net": convolved_size * convolution + 2 * recurrent_heads + recurrent_head_size,
                "lightning": recurrent_value_size,
            },
        ),
        "one recurrent layer with its convolution, per-head constants and norm",
    )


class Parameters(Chapter):
    """All parameters of a decoder and those that one token uses."""

    attention = part(Attention, shared=True)
    mixture = part(MixtureOfExperts, shared=True)
    recurrent = part(RecurrentLayer, shared=True)
    hidden_size = attention.hidden_size
    layers = given(count, "layers (L)", owner="model")
    vocabulary = given(count, "rows of the embedding (V)", owner="model")
    tied_embeddings = given(count, "1 when the head is the embedding's table, else 0", owner="model")
    positions = given(count, "rows of the table of learned positions, 0 when there is none", owner="model")
    norm = choice(NORMS, "kind of norm", owner="model")
    norms_per_layer = given(count, "norms of a layer", owner="model")
    final_norm = given(count, "1 when a norm precedes the head, else 0", owner="model")
    embedding_norm = given(count, "1 when a norm follows the embedding, else 0", owner="model")
    first_expert_layer = given(count, "first of the feed-forward layers that holds experts, from 0", owner="model")
    expert_every = given(count, "of every this many layers from the first on, one holds experts", owner="model")
    layers_without_attention = given(count, "layers that do not attend", owner="model")
    layers_without_ffn = given(count, "layers without a feed-forward", owner="model")
    recurrent_layers = given(count, "recurrent layers", owner="model")
    extra_parameters = given(count, "parameters of layers that have no other inputs here", owner="model")

    attention_layers = equation(count, layers - layers_without_attention, "layers that attend")
    ffn_layers = equation(count, layers - layers_without_ffn, "layers with a feed-forward, dense or of experts")
    expert_layers = equation(
        count,
        select(mixture.experts > 0, ceil_divide(ffn_layers - first_expert_layer, expert_every), 0),
        "layers that hold experts",
    )
    dense_layers = equation(count, ffn_layers - expert_layers, "layers with a dense feed-forward")
    norm_size = equation(
        count,
        choose(
            norm, {"rmsnorm": hidden_size, "layernorm": 2 * hidden_size, "layernorm-no-bias": hidden_size, "none": 0}
        ),
        "one norm",
    )
    dense_layer_parameters = equation(
        count,
        attention.attention_layer_parameters + mixture.ffn_layer_parameters + norms_per_layer * norm_size,
        "one layer of attention and a dense feed-forward, with its norms",
    )
    attention_split_parameters = equation(
        count,
        select(
            attention.kv_rank > 0,
            select(attention.query_rank > 0, attention.query_rank, hidden_size) * attention.latent_query_size
            + attention.kv_rank * attention.heads * (attention.plain_head_size + attention.value_head_size)
            + attention.heads * attention.value_head_size * hidden_size,
            attention.attention_matrices + attention.qkv_bias_parameters,
        )
        + attention.attention_sinks * attention.heads,
        "weights of one attention layer that tensor parallelism splits: all that belong to heads",
        source="Shoeybi et al. 2019, arXiv 1909.08053, section 3; Megatron-core's latent attention",
    )
    layer_split_parameters = equation(
        count,
        attention_split_parameters
        + mixture.ffn_matrices
        + mixture.ffn_bias * (1 + mixture.gated_ffn) * mixture.ffn_size,
        "weights of a dense layer that tensor parallelism splits",
        source="Shoeybi et al. 2019, arXiv 1909.08053, section 3",
    )
    layer_whole_parameters = equation(
        count,
        dense_layer_parameters - layer_split_parameters,
        "weights of a dense layer that every tensor-parallel rank holds: norms, down-projections, biases of outputs",
    )
    mixture_split_parameters = equation(
        count,
        attention_split_parameters + mixture.shared_expert_matrices - mixture.shared_gate * hidden_size,
        "weights of a layer of experts that tensor parallelism splits: attention and shared experts",
        source="Megatron-core: routed experts have their own groups, the router is on every rank",
    )
    mixture_whole_parameters = equation(
        count,
        attention.attention_layer_parameters
        - attention_split_parameters
        + norms_per_layer * norm_size
        + mixture.router_layer_parameters
        + mixture.shared_gate * hidden_size,
        "weights of a layer of experts that every tensor-parallel rank holds: norms and router",
    )

    embedding_parameters = equation(count, vocabulary * hidden_size, "the embedding")
    position_parameters = equation(count, positions * hidden_size, "learned positions")
    embedding_norm_parameters = equation(count, embedding_norm * norm_size, "the norm after the embedding")
    attention_parameters = equation(
        count, attention_layers * attention.attention_layer_parameters, "attention of all layers"
    )
    recurrent_parameters = equation(count, recurrent_layers * recurrent.recurrent_layer_parameters, "recurrent layers")
    ffn_parameters = equation(count, dense_layers * mixture.ffn_layer_parameters, "dense feed-forwards of all layers")
    routed_expert_parameters = equation(
        count, expert_layers * mixture.experts * mixture.expert_parameters, "routed experts of all layers"
    )
    shared_expert_parameters = equation(
        count, expert_layers * mixture.shared_expert_matrices, "shared experts of all layers"
    )
    router_parameters = equation(count, expert_layers * mixture.router_layer_parameters, "routers of all layers")
    norm_parameters = equation(count, layers * norms_per_layer * norm_size, "norms of all layers")
    final_norm_parameters = equation(count, final_norm * norm_size, "the norm before the head")
    head_parameters = equation(
        count, (1 - tied_embeddings) * vocabulary * hidden_size, "the head, where it is not the embedding"
    )
    parameters = equation(
        count,
        embedding_parameters
        + position_parameters
        + embedding_norm_parameters
        + attention_parameters
        + recurrent_parameters
        + ffn_parameters
        + routed_expert_parameters
        + shared_expert_parameters
        + router_parameters
        + norm_parameters
        + final_norm_parameters
        + head_parameters
        + extra_parameters,
        "all parameters",
    )
    active_parameters = equation(
        count,
        parameters - expert_layers * (mixture.experts - mixture.experts_per_token) * mixture.expert_parameters,
        "parameters that one token uses: all but the experts that it does not take",
    )
    active_parameters_without_embedding = equation(
        count,
        active_parameters - position_parameters - (1 - tied_embeddings) * embedding_parameters,
        "the same without tables that are only looked up; a tied table stays, as the head",
    )

    # Modules that predict further tokens, which none of the totals count
    joining_matrix = equation(
        count, 2 * hidden_size * hidden_size, "projection of a hidden state beside the embedding of a token (eh_proj)"
    )
    joining_norms = equation(
        count, 3 * norm_size, "norms of a hidden state, of the embedding beside it, and before the head: own ones"
    )
    multi_token_layer_parameters = equation(
        count,
        attention.attention_layer_parameters
        + select(mixture.experts > 0, mixture.expert_layer_parameters, mixture.ffn_layer_parameters)
        + select(layers_without_ffn > 0, 2, 1) * norms_per_layer * norm_size,
        "the decoder layer of a module: attention, and experts where the model has any; of a model whose layers hold one or the "
        "other, one of each",
    )
    multi_token_parameters = equation(
        count,
        multi_token_layer_parameters + joining_matrix + joining_norms,
        "one module that predicts a further token, without embedding and head, which are the model's",
        source="DeepSeek-AI 2024, arXiv 2412.19437, section 2.2; Megatron-core: MultiTokenPredictionLayer",
    )
    multi_token_shared_parameters = equation(
        count, 2 * embedding_parameters, "embedding and head that a module shares with the model"
    )
    multi_token_file_parameters = equation(
        count,
        multi_token_parameters + multi_token_shared_parameters,
        "a module in a checkpoint that stores both again",
        source="deepseek-ai/DeepSeek-V3, README_WEIGHTS.md: 11.5B of its own, 0.9B each of embedding and head",
    )
