"""Matrix products on one chip: three parameters a chip (share of peak, share of memory bandwidth, launch)."""

from costmodel.equations.axes import MATMUL, PART
from costmodel.symbolic import (
    FLOP,
    Chapter,
    bytes_,
    bytes_per_second,
    count,
    cube_root,
    equation,
    flop,
    flop_per_second,
    given,
    part,
    rows,
    seconds,
)


class Matmul(Chapter):
    """[M, K] times [K, N], all operands and the result through memory once.

    Compute and memory overlap, but not sharply: measured kernels near the ridge follow the cube root of the sum of cubes.
    """

    M = given(count, "rows of the product")
    N = given(count, "columns of the product")
    K = given(count, "features summed over")
    element_size = given(bytes_, "an element of activations and weights in compute", owner="workload")
    peak = given(flop_per_second, "dense peak of the chip at this precision", owner="chip")
    matmul_share = given(count, "share of the peak that large products sustain in training", owner="chip")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    memory_share = given(count, "share of the memory bandwidth that kernels attain", owner="chip")
    launch_gap = given(seconds, "between two kernels", owner="chip")

    work = equation(flop, 2 * M * N * K * FLOP, "a multiplication and an addition for each term")
    traffic = equation(bytes_, (M * K + K * N + M * N) * element_size, "both operands and the result")
    compute_time = equation(seconds, work / (matmul_share * peak), "on the matrix units")
    memory_time = equation(seconds, traffic / (memory_share * memory_bandwidth), "through memory")
    time = equation(
        seconds,
        launch_gap + cube_root(compute_time**3 + memory_time**3),
        "one product",
        source="fit of public kernel tables: three parameters a chip, 7 to 13 % median error",
        approximate="no tiles or waves; below about 1000 rows expect 10 to 16 %",
    )


class WeightMatmuls(Chapter):
    """The three products of one weight matrix in training: forward, gradient of its input, gradient of the weights."""

    tokens = given(count, "tokens of a micro-batch on a rank")
    features_in = given(count, "input features on a rank")
    features_out = given(count, "output features on a rank")

    product = part(
        Matmul,
        shared=True,
        M=rows(PART, {"forward": tokens, "input_gradient": tokens, "weight_gradient": features_out}),
        N=rows(PART, {"forward": features_out, "input_gradient": features_in, "weight_gradient": features_in}),
        K=rows(PART, {"forward": features_in, "input_gradient": features_out, "weight_gradient": tokens}),
    )


class LayerMatmuls(Chapter):
    """The weight products of one dense decoder layer on one tensor-parallel rank: forward, input gradient, weight gradient."""

    tokens = given(count, "tokens of a micro-batch on a rank")
    tp = given(count, "tensor-parallel ranks")
    hidden_size = given(count, "width of the model (D)", owner="model")
    ffn_size = given(count, "width of the feed-forward (F)", owner="model")
    ffn_inputs = given(count, "matrices into the feed-forward: 2 when gated, else 1", owner="model")
    query_size = given(count, "query heads times head size", owner="model")
    kv_size = given(count, "key-value heads times head size", owner="model")

    features_out = equation(
        count,
        rows(
            MATMUL,
            {
                "qkv": (query_size + 2 * kv_size) / tp,
                "attention_output": hidden_size,
                "ffn_in": ffn_inputs * ffn_size / tp,
                "ffn_out": hidden_size,
            },
        ),
        "output features on a rank: column-parallel into a block, whole out of it",
        source="Megatron-LM (Shoeybi et al. 2019), section 3",
    )
    features_in = equation(
        count,
        rows(
            MATMUL,
            {"qkv": hidden_size, "attention_output": query_size / tp, "ffn_in": hidden_size, "ffn_out": ffn_size / tp},
        ),
        "input features on a rank",
    )
    product = part(WeightMatmuls, features_in=features_in, features_out=features_out)
