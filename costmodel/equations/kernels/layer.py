"""The kernels of one decoder layer and of the loss on one rank, put together."""

from costmodel.equations.axes import MATMUL, PART
from costmodel.equations.kernels.attention import Attention
from costmodel.equations.kernels.elementwise import Elementwise, LossTraffic
from costmodel.equations.kernels.expert_traffic import ExpertTraffic
from costmodel.equations.kernels.host import HostLaunches, smooth_largest
from costmodel.equations.kernels.matmul import LayerMatmuls, WeightMatmuls
from costmodel.equations.model.block import Block
from costmodel.equations.model.flops import Windows
from costmodel.equations.parallelism.layout import Layout
from costmodel.equations.parallelism.recomputation import Recomputation
from costmodel.symbolic import (
    Chapter,
    bytes_,
    choose,
    count,
    equation,
    given,
    part,
    row,
    rows,
    seconds,
    select,
    total,
)


class LayerCompute(Chapter):
    """Kernels of one decoder layer and of the loss on one rank, for one micro-batch, without communication."""

    layout = part(Layout, shared=True)
    again = part(Recomputation, shared=True)
    block = part(Block, shared=True)
    tp, tokens = layout.tp, layout.tokens
    windows = part(Windows, shared=True)
    sliding_share = equation(
        count, windows.sliding_layers / windows.attention_layers, "share of the layers that slide or have chunks"
    )
    products = part(LayerMatmuls, shared=True)
    pair_size = equation(
        count,
        (layout.key_head_size + layout.value_features) / 2,
        "features of a head, the mean of keys and values",
        approximate="the backward pass multiplies keys three times and values twice",
    )
    core = part(
        Attention,
        head_size=pair_size,
        sequences=layout.micro_batch_size,
        attention_heads=layout.heads / tp,
        cp=layout.cp,
        ring_ranks=layout.ring_ranks,
        window=layout.sequence_length,
        attention_chunk=0,
    )
    sliding_core = part(
        Attention,
        head_size=pair_size,
        sequences=layout.micro_batch_size,
        attention_heads=layout.heads / tp,
        cp=layout.cp,
        ring_ranks=layout.ring_ranks,
        window=select(windows.window > 0, windows.window, layout.sequence_length),
    )
    gated_activation_bytes_forward = given(
        bytes_, "a feature of a gated feed-forward, forward: the activation", owner="assumption"
    )
    gated_activation_bytes_backward = given(bytes_, "the same, backward", owner="assumption")
    plain_activation_bytes_forward = given(
        bytes_, "a feature of a feed-forward without gate, forward: the activation", owner="assumption"
    )
    plain_activation_bytes_backward = given(bytes_, "the same, backward", owner="assumption")
    activation_bytes_forward = equation(
        bytes_,
        select(layout.gated_ffn > 0, gated_activation_bytes_forward, plain_activation_bytes_forward),
        "traffic of a feature of the feed-forward, forward",
    )
    activation_bytes_backward = equation(
        bytes_,
        select(layout.gated_ffn > 0, gated_activation_bytes_backward, plain_activation_bytes_backward),
        "the same, backward",
    )
    between = part(Elementwise, ffn_size=layout.mean_ffn_size)
    routed = part(ExpertTraffic)
    loss_chunks = given(count, "pieces in which head and loss are computed, 1 for all tokens at once", owner="workload")
    head = part(
        WeightMatmuls,
        tokens=tokens / loss_chunks,
        features_in=layout.hidden_size,
        features_out=layout.vocabulary_on_rank,
        groups=1,
        operand_size=layout.element_size,
        peak=products.half_peak,
        matmul_share=products.half_share,
    )
    softmax = part(LossTraffic, tokens=tokens, vocabulary_on_rank=layout.vocabulary_on_rank)

    layer_products = equation(seconds, total(products.taken, MATMUL), "all weight products of a layer")
    matmul_forward = equation(seconds, row(layer_products, PART, "forward"), "weight products, forward")
    weight_gradient_compute = equation(
        seconds, row(layer_products, PART, "weight_gradient"), "gradients of the weights of a layer"
    )
    matmul_backward = equation(
        seconds, row(layer_products, PART, "input_gradient") + weight_gradient_compute, "weight products, backward"
    )
    attention_forward = equation(
        seconds,
        (1 - sliding_share) * core.forward + sliding_share * sliding_core.forward,
        "attention of the average layer, forward",
    )
    attention_backward = equation(
        seconds,
        (1 - sliding_share) * core.backward + sliding_share * sliding_core.backward,
        "attention of the average layer, backward",
    )
    first_forward = equation(
        seconds,
        (1 - sliding_share) * core.first_forward + sliding_share * sliding_core.first_forward,
        "of this, what a context-parallel rank does with its own keys",
    )
    first_backward = equation(
        seconds,
        (1 - sliding_share) * core.first_backward + sliding_share * sliding_core.first_backward,
        "of this, what a context-parallel rank does with its own keys",
    )
    elementwise_forward = equation(
        seconds,
        between.forward + routed.forward + products.casts_forward,
        "traffic between the products, of rows to experts, and of casts, forward",
    )
    elementwise_backward = equation(
        seconds, between.backward + routed.backward + products.casts_backward, "the same, backward"
    )
    shared_forward = equation(
        seconds,
        row(row(products.product_time, PART, "forward"), MATMUL, "shared_in")
        + row(row(products.product_time, PART, "forward"), MATMUL, "shared_out"),
        "products of the shared experts of a layer that has them, forward",
    )
    shared_backward = equation(seconds, 2 * shared_forward, "the same, backward: two products for each")
    launching = part(HostLaunches, shared=True)
    forward_work = equation(seconds, matmul_forward + attention_forward + elementwise_forward, "kernels of a layer")
    backward_work = equation(seconds, matmul_backward + attention_backward + elementwise_backward, "the same, backward")
    forward_compute = equation(
        seconds,
        smooth_largest(forward_work, launching.host_forward),
        "a layer, forward: its kernels, or the host that launches them where that takes longer",
    )
    recomputed_products = equation(
        count,
        rows(
            MATMUL,
            {
                "qkv": layout.kv_size / (layout.query_size + 2 * layout.kv_size),
                "latents": 1,
                "query_up": 0,
                "key_value_up": 0,
                "attention_output": 1,
                "ffn_in": layout.gated_ffn / 2,
                "ffn_out": 0,
                "router": 1,
                "shared_in": layout.gated_ffn / 2,
                "shared_out": 0,
                "expert_in": layout.gated_ffn / 2,
                "expert_out": 0,
            },
        ),
        "share of each product that selective recomputation runs again: every second one",
        source="torchtitan's per-operation selective checkpointing",
    )
    activation_forward = equation(
        seconds, between.activation + routed.activation, "the activation of feed-forwards and experts alone, forward"
    )
    selective_compute = equation(
        seconds,
        total(recomputed_products * row(products.taken, PART, "forward"), MATMUL) + elementwise_forward,
        "what selective recomputation runs again in a layer",
    )
    products_in_modules = equation(
        count,
        rows(
            MATMUL,
            dict.fromkeys(MATMUL.labels, 0)
            | dict.fromkeys(("query_up", "key_value_up"), again.recomputed_mla_up_proj)
            | dict.fromkeys(("ffn_in", "ffn_out"), again.recomputed_mlp)
            | dict.fromkeys(("shared_in", "shared_out"), again.shared_again)
            | dict.fromkeys(("router", "expert_in", "expert_out"), again.recomputed_moe),
        ),
        "1 for products of modules that are run again",
        source="Megatron-core, --recompute-modules",
    )
    module_products = equation(
        seconds,
        select(
            again.whole_blocks + again.recomputed_mla_up_proj > 0,
            total(products_in_modules * row(products.taken, PART, "forward"), MATMUL)
            + total(products_in_modules * products.cast_elements, MATMUL) * products.cast_bytes / products.cast_rate
            + again.recomputed_mla_up_proj * layout.tokens * between.rotary / between.rate,
            0,
        ),
        "products of these modules, with their casts; rotary positions where queries and keys come up from latents",
    )
    dense_activation = equation(
        seconds,
        layout.tokens * activation_bytes_forward * layout.dense_ffn_size / tp / between.rate,
        "of the activation, forward, that of dense feed-forwards",
    )
    shared_activation = equation(
        seconds,
        layout.tokens * activation_bytes_forward * layout.shared_mean_size / tp / between.rate,
        "of the activation, forward, that of shared experts",
    )
    block_traffic = equation(
        seconds,
        select(
            again.whole_blocks > 0,
            again.recomputed_mlp * dense_activation
            + again.shared_again * shared_activation
            + again.recomputed_moe * routed.forward,
            0,
        ),
        "between the products of whole feed-forwards that are run again, rows to experts and back with them",
    )
    activation_left = equation(
        seconds,
        activation_forward
        - select(
            again.whole_blocks > 0,
            again.recomputed_mlp * dense_activation + again.shared_again * shared_activation,
            0,
        ),
        "the activation, forward, that apart which is run again with its whole feed-forward",
    )
    recomputed_modules = equation(
        seconds,
        again.recomputed_layernorm * between.norms
        + again.recomputed_moe_act * activation_left
        + again.recomputed_core_attn * attention_forward
        + module_products
        + block_traffic,
        "what modules by name run again in a layer",
        source="Megatron-core, --recompute-modules",
    )
    recomputed_compute = equation(
        seconds,
        choose(
            again.recompute,
            {"modules": recomputed_modules, "selective": selective_compute, "full": forward_compute},
        )
        / again.layers_for_one,
        "run again in the backward pass of the average layer",
    )
    backward_compute = equation(
        seconds,
        smooth_largest(backward_work, launching.host_backward),
        "a layer, backward, what is run again apart",
    )
    gradient_of_pieces = equation(
        seconds,
        (loss_chunks - 1)
        * layout.vocabulary_on_rank
        * layout.hidden_size
        * 3
        * layout.element_size
        / (softmax.memory_share * softmax.memory_bandwidth),
        "adding the gradient of the head's weights of each further piece: it and the sum read, the sum written",
        source="Hsu et al. 2024, arXiv 2410.10989, section 3.2: FusedLinearCrossEntropy",
    )
    loss_compute = equation(
        seconds,
        loss_chunks * total(head.time, PART) + softmax.time + gradient_of_pieces,
        "head and loss, forward and backward, of a micro-batch: every piece launches its products and reads the head again",
    )
    loss_forward = equation(
        seconds,
        loss_chunks * row(head.time, PART, "forward"),
        "of this, the head's forward pass; the loss is where backward begins",
    )
    loss_weight_gradient = equation(
        seconds,
        loss_chunks * row(head.time, PART, "weight_gradient") + gradient_of_pieces,
        "of this, the gradient of the head's weights",
    )
