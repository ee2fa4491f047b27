"""What is bound by memory traffic: norms, residuals, activations, rotary positions, the loss, the optimizer."""

from costmodel.symbolic import (
    FLOP,
    Chapter,
    bytes_,
    bytes_per_second,
    count,
    equation,
    flop_per_second,
    given,
    seconds,
)


class Elementwise(Chapter):
    """The traffic between the products of one decoder layer, on one rank, for one micro-batch."""

    tokens = given(count, "tokens of a micro-batch on a rank")
    tp = given(count, "tensor-parallel ranks")
    sequence_split = given(
        count, "ranks that share what lies between the products: tp with sequence parallelism, else 1"
    )
    hidden_size = given(count, "width of the model (D)", owner="model")
    ffn_size = given(count, "width of the feed-forward (F)", owner="model")
    rotated_size = given(count, "features of queries and keys that rotary positions turn")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    memory_share = given(count, "share of the memory bandwidth that kernels attain", owner="chip")
    norms_run = given(count, "norms of a layer")
    norm_bytes_forward = given(bytes_, "of one norm, a hidden feature: read and written", owner="assumption")
    state_bytes_forward = given(bytes_, "a hidden feature, forward: norms and residuals, fused")
    state_bytes_backward = given(bytes_, "a hidden feature, backward")
    activation_bytes_forward = given(bytes_, "a feed-forward feature, forward: the activation", owner="assumption")
    activation_bytes_backward = given(bytes_, "a feed-forward feature, backward", owner="assumption")
    rotary_bytes = given(bytes_, "a query or key feature, each way: rotary positions", owner="assumption")
    elementwise_traffic_factor = given(
        count, "measured traffic over that of perfectly fused kernels", owner="assumption"
    )

    rate = equation(bytes_per_second, memory_share * memory_bandwidth / elementwise_traffic_factor, "of fused bytes")
    rotary = equation(bytes_, rotary_bytes * rotated_size / tp, "a token, each way")
    norm = equation(
        seconds,
        tokens * norm_bytes_forward * hidden_size / sequence_split / rate,
        "one norm alone, forward: it reads its input and writes its output",
    )
    norms = equation(seconds, norms_run * norm, "the norms of a layer alone, forward")
    activation = equation(
        seconds, tokens * activation_bytes_forward * ffn_size / tp / rate, "the activation of a layer alone, forward"
    )
    forward = equation(
        seconds,
        tokens
        * (state_bytes_forward * hidden_size / sequence_split + activation_bytes_forward * ffn_size / tp + rotary)
        / rate,
        "norms, residuals, activation and rotary positions of a layer, forward",
    )
    backward = equation(
        seconds,
        tokens
        * (state_bytes_backward * hidden_size / sequence_split + activation_bytes_backward * ffn_size / tp + rotary)
        / rate,
        "the same, backward",
    )


class LossTraffic(Chapter):
    """The softmax and its gradient over the vocabulary, on one rank of the last stage."""

    tokens = given(count, "tokens of a micro-batch on a rank")
    vocabulary_on_rank = given(count, "columns of the head on a rank")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    memory_share = given(count, "share of the memory bandwidth that kernels attain", owner="chip")
    loss_traffic_bytes = given(bytes_, "a logit, both ways", owner="assumption")

    time = equation(
        seconds,
        tokens * vocabulary_on_rank * loss_traffic_bytes / (memory_share * memory_bandwidth),
        "logits, softmax and their gradient through memory",
    )


class OptimizerTraffic(Chapter):
    """The update of the weights that a rank owns, and the accumulation of gradients over micro-batches."""

    owned_parameters = given(count, "weights whose optimizer state a rank holds")
    local_parameters = given(count, "weights that a rank computes with")
    copied_parameters = given(count, "weights that a rank writes again from their gathered or master form")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    memory_share = given(count, "share of the memory bandwidth that kernels attain", owner="chip")
    update_bytes = given(
        bytes_, "an owned weight: gradient, master weight and moments read and written", owner="assumption"
    )
    copy_bytes = given(bytes_, "a local weight: its gradient zeroed, its copy written", owner="assumption")
    accumulation_bytes = given(bytes_, "a local weight and micro-batch: the sum of gradients", owner="assumption")

    hidden_size = given(count, "width of the model (D)", owner="model")
    half_peak = given(flop_per_second, "dense peak of the chip in 16 bits", owner="chip")
    half_share = given(count, "share of it that large products sustain in training", owner="chip")
    orthogonalisation_steps = given(count, "Newton-Schulz steps of the optimizer, 0 for most", owner="assumption")

    rate = equation(bytes_per_second, memory_share * memory_bandwidth, "attained")
    orthogonalisation = equation(
        seconds,
        orthogonalisation_steps * 6 * FLOP * hidden_size * owned_parameters / (half_peak * half_share),
        "making the update of each matrix orthogonal: three products a step",
        source="Jordan et al. 2024",
        approximate="as if all matrices were square, which takes the most, and came together at no cost",
    )
    update = equation(
        seconds,
        (update_bytes * owned_parameters + copy_bytes * copied_parameters) / rate + orthogonalisation,
        "one optimizer step",
    )
    accumulation = equation(seconds, accumulation_bytes * local_parameters / rate, "of one micro-batch's gradients")
