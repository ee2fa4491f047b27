"""Matrix products on one chip: three parameters a chip (share of peak, share of memory bandwidth, launch)."""

from costmodel.equations.axes import MATMUL, PART
from costmodel.equations.kernels.alignment import misalignment
from costmodel.equations.kernels.streaming import overlapped
from costmodel.equations.parallelism.experts import ExpertLoad
from costmodel.equations.parallelism.layout import Layout
from costmodel.symbolic import (
    FLOP,
    Chapter,
    bytes_,
    bytes_per_second,
    count,
    equation,
    flop,
    flop_per_second,
    given,
    holds,
    part,
    rows,
    seconds,
    select,
    total,
)


class Matmul(Chapter):
    """[M, K] times [K, N], all operands and the result through memory once.

    Compute and memory overlap, but not sharply: measured kernels near the ridge follow the cube root of the sum of cubes.
    """

    M = given(count, "rows of the product")
    N = given(count, "columns of the product")
    K = given(count, "features summed over")
    groups = given(count, "products of this shape in one kernel: those of a rank's experts, else 1")
    element_size = given(bytes_, "an element of activations and weights in compute", owner="workload")
    operand_size = given(bytes_, "an element of the operands; the result has that of the activations")
    peak = given(flop_per_second, "dense peak of the chip at the precision of the operands")
    matmul_share = given(count, "share of the peak that large products sustain in training")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    memory_share = given(count, "share of the memory bandwidth that kernels attain", owner="chip")
    launch_gap = given(seconds, "between two kernels", owner="chip")

    work = equation(flop, groups * 2 * M * N * K * FLOP, "a multiplication and an addition for each term")
    traffic = equation(
        bytes_, groups * ((M * K + K * N) * operand_size + M * N * element_size), "both operands and the result"
    )
    misalignment_slope = given(count, "time more for each halving below 64 of what divides N and K", owner="assumption")
    short_vector_factor = given(count, "time for each halving below 16 bytes", owner="assumption")
    misaligned = equation(
        count,
        misalignment(N, K, misalignment_slope, short_vector_factor),
        "how much longer the product takes than one of even sizes",
        source="runs of BLOOM's layout search with heads and widths of odd sizes",
    )
    compute_time = equation(seconds, misaligned * work / (matmul_share * peak), "on the matrix units")
    memory_time = equation(seconds, traffic / (memory_share * memory_bandwidth), "through memory")
    time = equation(
        seconds,
        launch_gap + overlapped(compute_time, memory_time),
        "one product",
        source="fit of public kernel tables: three parameters a chip, 7 to 13 % median error",
        approximate="no tiles or waves; below about 1000 rows expect 10 to 16 %",
    )


class WeightMatmuls(Chapter):
    """The three products of one weight matrix in training: forward, gradient of its input, gradient of the weights."""

    tokens = given(count, "rows: tokens of a micro-batch on a rank")
    features_in = given(count, "input features on a rank")
    features_out = given(count, "output features on a rank")
    groups = given(count, "matrices of this shape, each with its own rows")

    product = part(
        Matmul,
        shared=True,
        M=rows(PART, {"forward": tokens, "input_gradient": tokens, "weight_gradient": features_out}),
        N=rows(PART, {"forward": features_out, "input_gradient": features_in, "weight_gradient": features_in}),
        K=rows(PART, {"forward": features_in, "input_gradient": features_out, "weight_gradient": tokens}),
    )


class LayerMatmuls(Chapter):
    """The weight products of one decoder layer on one rank: forward, input gradient, weight gradient.

    Those that a layer does not have are absent; those of only some layers count by their share.
    """

    layout = part(Layout, shared=True)
    load = part(ExpertLoad, shared=True)
    tp, etp, gated = layout.tp, layout.etp, 1 + layout.gated_ffn
    expert_share = layout.expert_share
    latent = holds(layout.kv_rank > 0)

    present = equation(
        count,
        rows(
            MATMUL,
            {
                "qkv": 1 - latent,
                "latents": latent,
                "query_up": latent,
                "key_value_up": latent,
                "attention_output": 1,
                "ffn_in": 1 - expert_share,
                "ffn_out": 1 - expert_share,
                "router": expert_share,
                "shared_in": expert_share * holds(layout.shared_experts > 0),
                "shared_out": expert_share * holds(layout.shared_experts > 0),
                "expert_in": expert_share,
                "expert_out": expert_share,
            },
        ),
        "how often the average layer has each",
    )
    features_out = equation(
        count,
        rows(
            MATMUL,
            {
                "qkv": ((1 + layout.attention_gate) * layout.query_size + 2 * layout.kv_size) / tp,
                "latents": layout.latents_size,
                "query_up": layout.latent_query_size / tp,
                "key_value_up": layout.heads * (layout.plain_head_size + layout.value_head_size) / tp,
                "attention_output": layout.hidden_size,
                "ffn_in": gated * layout.ffn_size / tp,
                "ffn_out": layout.hidden_size,
                "router": layout.experts,
                "shared_in": gated * layout.shared_experts * layout.shared_ffn_size / tp,
                "shared_out": layout.hidden_size,
                "expert_in": gated * layout.expert_ffn_size / etp,
                "expert_out": layout.expert_width,
            },
        ),
        "output features on a rank: column-parallel into a block, whole out of it",
        source="Megatron-LM (Shoeybi et al. 2019), section 3",
    )
    features_in = equation(
        count,
        rows(
            MATMUL,
            {
                "qkv": layout.hidden_size,
                "latents": layout.hidden_size,
                "query_up": select(layout.query_rank > 0, layout.query_rank, layout.hidden_size),
                "key_value_up": layout.kv_rank,
                "attention_output": layout.outputs_size / tp,
                "ffn_in": layout.hidden_size,
                "ffn_out": layout.ffn_size / tp,
                "router": layout.hidden_size,
                "shared_in": layout.hidden_size,
                "shared_out": layout.shared_experts * layout.shared_ffn_size / tp,
                "expert_in": layout.expert_width,
                "expert_out": layout.expert_ffn_size / etp,
            },
        ),
        "input features on a rank",
    )
    split_tokens = equation(
        count, layout.tokens / layout.sequence_split, "tokens of a rank where sequence parallelism splits them"
    )
    product_rows = equation(
        count,
        rows(
            MATMUL,
            {
                "qkv": layout.tokens,
                "latents": split_tokens,
                "query_up": layout.tokens,
                "key_value_up": layout.tokens,
                "attention_output": layout.tokens,
                "ffn_in": layout.tokens,
                "ffn_out": layout.tokens,
                "router": split_tokens,
                "shared_in": layout.tokens,
                "shared_out": layout.tokens,
                "expert_in": load.rows_of_expert,
                "expert_out": load.rows_of_expert,
            },
        ),
        "rows of each",
    )
    matrices = equation(
        count,
        rows(
            MATMUL,
            dict.fromkeys(MATMUL.labels, 1) | {"expert_in": layout.local_experts, "expert_out": layout.local_experts},
        ),
        "matrices of this shape in one kernel",
    )
    half_peak = given(flop_per_second, "dense peak of the chip in 16 bits", owner="chip")
    half_share = given(count, "share of it that large products sustain in training", owner="chip")
    element_size = layout.element_size
    peak = given(flop_per_second, "dense peak of the chip at the precision of the weight products", owner="chip")
    matmul_share = given(count, "share of it that large products sustain in training", owner="chip")
    product_share = given(
        count, "share of peak of this kind of product over that of the best at its precision", owner="workload"
    )
    operand_bytes = given(bytes_, "an element that enters a weight product", owner="workload")
    expert_product_factor = given(
        count, "measured time of grouped products over that of one large product", owner="assumption"
    )
    expert_path_factor = given(
        count,
        "time of sorting, casts and exchanges of experts over that of separate kernels; 1 where they are separate",
        owner="assumption",
    )
    routed = equation(
        count,
        rows(MATMUL, dict.fromkeys(MATMUL.labels, 0) | {"expert_in": 1, "expert_out": 1}),
        "1 for products of routed experts",
    )
    low = equation(
        count,
        rows(MATMUL, dict.fromkeys(MATMUL.labels, 1) | {"router": 0}),
        "1 for products at the precision of the training, 0 for those that stay in 16 bits",
        source="Micikevicius et al. 2022, arXiv 2209.05433; DeepSeek-V3 technical report 2024, section 3.3.1",
    )
    product = part(
        WeightMatmuls,
        tokens=product_rows,
        features_in=features_in,
        features_out=features_out,
        groups=matrices,
        operand_size=select(low > 0, operand_bytes, element_size),
        peak=select(low > 0, peak, half_peak),
        matmul_share=select(low > 0, matmul_share * product_share, half_share),
    )
    taken = equation(
        seconds,
        present * select(routed > 0, expert_product_factor, 1) * product.time,
        "by each in the average layer",
    )

    # Casts
    cast_bytes = given(
        bytes_,
        "of an element cast for a weight product: read, its scale found, written; 0 in 16 bits",
        owner="workload",
    )
    cast_traffic_factor = given(count, "measured traffic over that of perfectly fused kernels", owner="assumption")
    cast_rate = equation(
        bytes_per_second,
        product.memory_share * product.memory_bandwidth / cast_traffic_factor,
        "of the bytes of perfectly fused casts",
    )
    casts = equation(
        count,
        present * low * select(routed > 0, expert_path_factor, 1),
        "of each product, in the time of separate ones",
    )
    cast_elements = equation(count, casts * matrices * product_rows * features_in, "inputs of each product, cast once")
    cast_gradients = equation(
        count, casts * matrices * product_rows * features_out, "gradients of its results, cast once"
    )
    casts_forward = equation(
        seconds,
        total(cast_elements, MATMUL) * cast_bytes / cast_rate,
        "casts of the average layer, forward",
        approximate="the weights, cast once a step, are left out",
    )
    casts_backward = equation(
        seconds, total(cast_gradients, MATMUL) * cast_bytes / cast_rate, "casts of the average layer, backward"
    )
