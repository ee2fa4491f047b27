"""What a decoder layer keeps of its forward pass for its backward pass, by what is run again."""

from costmodel.equations.model.block import Block
from costmodel.equations.parallelism.context import ContextPayloads
from costmodel.equations.parallelism.experts import KeptExperts
from costmodel.equations.parallelism.layout import Layout
from costmodel.equations.parallelism.recomputation import Recomputation
from costmodel.symbolic import (
    BYTE,
    Chapter,
    bytes_,
    choose,
    equation,
    given,
    largest,
    part,
    select,
    smallest,
)


class KeptActivations(Chapter):
    """Bytes that one decoder layer keeps for its backward pass, on one rank, for one micro-batch.

    Outside what tp splits: the inputs of norms, and of attention and feed-forward. Inside, split over tp: queries, keys, values,
    the attention's output and statistics, and the feed-forward's inputs and output.
    """

    layout = part(Layout, shared=True)
    context = part(ContextPayloads, shared=True)
    experts = part(KeptExperts, shared=True)
    again = part(Recomputation, shared=True)
    block = part(Block, shared=True)
    tokens, e = layout.tokens, layout.element_size
    tp, sequence_split = layout.tp, layout.sequence_split
    gated = 2 + layout.gated_ffn
    score_bytes = given(
        bytes_, "kept of a score between two tokens and a head: 0 in fused attention", owner="assumption"
    )
    score_dropout_bytes = given(
        bytes_, "more where scores are dropped: the mask and what is left of the score; else 0", owner="assumption"
    )
    dropout_bytes = given(
        bytes_, "kept of a hidden feature for the dropout after each block: 0 without dropout", owner="assumption"
    )

    kept_outside = equation(
        bytes_,
        tokens * (block.kept_states * layout.hidden_size * e + 2 * layout.hidden_size * dropout_bytes),
        "norm and block inputs, and masks of dropout",
        source="Korthikanti et al. 2022, section 4.1",
    )
    kept_inside = equation(
        bytes_,
        tokens
        * (
            e * (layout.queries_size + layout.outputs_size + layout.keys_size + layout.values_size)
            + e * gated * layout.mean_ffn_size
            + 4 * layout.heads * BYTE
        ),
        "queries, keys, values, the output and fp32 statistics of fused attention; inputs and output of the activation",
        source="Megatron-core blocks, checked against exact allocator readings to 2 %",
    )
    kept_scores = equation(
        bytes_,
        tokens * layout.sequence_length * layout.heads * (score_bytes + score_dropout_bytes),
        "scores of attention that is not fused, their dropout mask and what is left of them",
        source="Korthikanti et al. 2022, section 4.1: 5 bytes",
    )
    kept_latents = equation(
        bytes_,
        tokens * 2 * layout.latents_size * e / sequence_split,
        "inputs and outputs of the norms of latent queries, keys and values",
    )
    kept_experts = equation(
        bytes_,
        select(
            layout.experts > 0,
            layout.expert_share * (experts.kept_rows + experts.kept_features + experts.kept_router),
            0,
        ),
        "of routed experts, in the average layer",
    )
    whole_layer = equation(
        bytes_,
        kept_outside / sequence_split
        + kept_latents
        + (kept_inside + kept_scores) / tp
        + kept_experts
        + 2 * context.copied_keys,
        "with nothing recomputed",
    )
    norm_outputs = equation(
        bytes_,
        tokens * block.norms_run * layout.hidden_size * e / sequence_split,
        "of the norms, which are the inputs of the blocks: 4 H a token in two bytes and of two norms",
        source="Megatron-core, --recompute-modules layernorm",
    )
    activation_output = equation(
        bytes_,
        tokens * layout.mean_ffn_size * e / tp
        + select(layout.experts > 0, layout.expert_share * experts.kept_products, 0),
        "of the activation, which is the product with the gate in a gated feed-forward: 2 F a token in two bytes",
        source="Megatron-core, --recompute-modules moe_act, which there is that of routed experts alone",
    )
    dense_product = equation(bytes_, tokens * layout.dense_ffn_size * e / tp, "of this, of dense feed-forwards")
    shared_product = equation(bytes_, tokens * layout.shared_mean_size * e / tp, "of this, of shared experts")
    attention_core = equation(
        bytes_,
        (kept_scores + tokens * 4 * layout.heads * BYTE) / tp + 2 * context.copied_keys,
        "between queries, keys, values and the output, which their products keep: statistics in fused attention, else scores",
        source="Korthikanti et al. 2022, section 5: selective recomputation",
    )
    selective_layer = equation(
        bytes_,
        tokens
        * (
            2 * layout.hidden_size * e / sequence_split
            + (
                e * (layout.queries_size + layout.outputs_size + layout.values_size + layout.mean_ffn_size)
                + 4 * layout.heads * BYTE
            )
            / tp
        )
        + select(layout.experts > 0, layout.expert_share * (experts.kept_rows + experts.kept_products), 0)
        + context.copied_keys,
        "block input, every second product and the attention output",
        source="torchtitan's per-operation selective checkpointing",
    )
    layer_input = equation(bytes_, tokens * layout.hidden_size * e / sequence_split, "the input of a layer alone")
    heads_from_latents = equation(
        bytes_,
        tokens * e * (layout.queries_size + layout.keys_size + layout.values_size) / tp,
        "queries, keys and values, which come up from latents",
        source="Megatron-core, --recompute-modules mla_up_proj: the products from normed latents, and the rotary positions",
    )
    attention_dropped = equation(
        bytes_,
        select(
            again.in_attention > 0,
            again.recomputed_core_attn * attention_core + again.recomputed_mla_up_proj * heads_from_latents,
            0,
        ),
        "of the attention, dropped with its modules",
    )
    blocks_dropped = equation(
        bytes_,
        select(
            again.whole_blocks > 0,
            again.recomputed_mlp * gated * dense_product
            + again.shared_again * gated * shared_product
            + again.recomputed_moe * kept_experts,
            0,
        ),
        "inputs and output of the activation of feed-forwards that are run again from their inputs; rows and router of experts",
        source="Megatron-core, --recompute-modules mlp, moe and shared_experts",
    )
    products_left = equation(
        bytes_,
        activation_output
        - select(
            again.whole_blocks > 0,
            again.recomputed_mlp * dense_product + again.shared_again * shared_product,
            0,
        ),
        "outputs of the activation, those apart that are dropped with their whole feed-forward",
    )
    feed_forward_dropped = equation(
        bytes_, blocks_dropped + again.recomputed_moe_act * products_left, "of feed-forwards and experts, dropped"
    )
    recomputed_kept = equation(
        bytes_,
        choose(
            again.recompute,
            {
                "modules": whole_layer
                - again.recomputed_layernorm * norm_outputs
                - feed_forward_dropped
                - attention_dropped,
                "selective": selective_layer,
                "full": layer_input * again.inputs_of_layer,
            },
        ),
        "kept by one layer that is recomputed",
    )
    kept_layer = equation(
        bytes_,
        recomputed_kept + (1 - 1 / again.layers_for_one) * (whole_layer - recomputed_kept),
        "kept by the average layer",
    )
    stage_kept_layer = equation(
        bytes_,
        select(
            again.by_method > 0,
            (again.stage_inputs * layer_input + (layout.stage_layers - again.stage_rerun) * whole_layer)
            / largest(1, layout.stage_layers),
            kept_layer,
        ),
        "kept by the average layer of a stage",
        approximate="modules that predict further tokens are taken to be as the layers of their stage",
    )
    kept_joining = equation(
        bytes_,
        choose(again.recompute, {"modules": 4, "selective": 4, "full": 1}) * layer_input,
        "beside its layer by a module that predicts a further token: inputs of two norms and of the projection, 4 H a token; "
        "its other input, where all is run again",
        source="Megatron-core: MultiTokenPredictionLayer, checkpointed as a whole with full recomputation",
    )
    embedding_kept = equation(
        bytes_,
        tokens * layout.hidden_size * (dropout_bytes + layout.embedding_norm * 2 * e) / sequence_split,
        "of the embedding's output: its mask where it is dropped, what its norm reads and writes",
    )
    gathered_sequence = equation(
        bytes_,
        tokens * layout.hidden_size * e * (1 - 1 / sequence_split),
        "what the products of a layer gather of other ranks' tokens where the sequence is split between them",
        source="Korthikanti et al. 2022, section 4.2.2",
    )
    not_together = equation(
        bytes_,
        select(
            again.in_attention > 0,
            choose(
                again.recompute,
                {"modules": smallest(attention_dropped, feed_forward_dropped), "selective": 0, "full": 0},
            ),
            0,
        ),
        "of modules, what is not there together: the backward pass is done with the feed-forward when it comes to the attention",
    )
    recomputed_layer = equation(
        bytes_,
        select(
            again.layers_at_once > 1,
            again.layers_at_once * whole_layer - layer_input,
            whole_layer - recomputed_kept - not_together,
        ),
        "of one layer, or of those that a method takes together, while the backward pass runs them again",
        approximate="modules of the average layer: those of a dense one and of one with experts, by their shares",
    )
