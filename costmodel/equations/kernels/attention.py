"""Attention: one fused kernel (FlashAttention and its kin), or products with passes over the scores between them."""

from costmodel.equations.axes import ATTENTION_KERNELS, CONTEXT
from costmodel.equations.kernels.matmul import Matmul
from costmodel.equations.model.mask import CausalMask
from costmodel.symbolic import (
    BYTE,
    FLOP,
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_divide,
    choice,
    choose,
    count,
    equation,
    flop_per_second,
    given,
    part,
    per_second,
    seconds,
    select,
)


class Attention(Chapter):
    """Scores, softmax and weighted values: in one kernel that never writes the scores, or each by itself.

    Fused, the forward pass does two products for each query-key pair, the backward pass five; pairs under the mask are left out
    but for those that share a block with others. Not fused, it is batched products over all pairs, and passes over the scores.
    Context-parallel ranks share the pairs: evenly, but where each holds one piece of the sequence the last rank, which sees all
    others, has the most.
    """

    attention_kernel = choice(ATTENTION_KERNELS, "whether the attention is fused", owner="workload")

    sequences = given(count, "sequences of a micro-batch")
    attention_heads = given(count, "query heads on a tensor-parallel rank")
    cp = given(count, "context-parallel ranks (n)")
    ring_ranks = given(count, "steps of the ring of context-parallel ranks (r)")
    cp_type = choice(CONTEXT.labels, "how context-parallel ranks attend to all tokens", CONTEXT)
    element_size = given(bytes_, "an element of activations and weights in compute", owner="workload")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    memory_share = given(count, "share of the memory bandwidth that kernels attain", owner="chip")
    head_size = given(count, "features of a head (H)", owner="model")
    attention_head_multiple = given(
        count, "features of a head are filled up to a multiple of this in the fused kernel", owner="assumption"
    )
    attention_block = given(count, "queries and keys of a block of the fused kernel", owner="assumption")
    score_traffic_forward = given(bytes_, "a score between the two products, forward: the softmax", owner="assumption")
    score_traffic_backward = given(bytes_, "the same, backward", owner="assumption")
    score_dropout_traffic = given(bytes_, "more, each way, where scores are dropped; else 0", owner="assumption")
    half_peak = given(flop_per_second, "dense peak of the chip in 16 bits", owner="chip")
    half_share = given(count, "share of it that large products sustain in training", owner="chip")
    attention_share = given(count, "share of the peak that the fused forward kernel attains", owner="chip")
    exponential_rate = given(per_second, "exponentials of the whole chip", owner="chip")
    attention_backward_factor = given(count, "time of a backward operation over a forward one", owner="assumption")
    launch_gap = given(seconds, "between two kernels", owner="chip")

    mask = part(CausalMask, shared=True)
    sequence_length, causal_pairs = mask.sequence_length, mask.causal_pairs

    # The pairs of a rank
    own_tokens = equation(count, sequence_length / cp, "tokens of a sequence on a rank")
    own = part(CausalMask, sequence_length=own_tokens)
    earlier_tokens = equation(count, sequence_length - own_tokens, "tokens before those of the last rank")
    earlier = part(CausalMask, sequence_length=earlier_tokens)
    rank_pairs = equation(
        count,
        choose(
            cp_type,
            {
                "ring": causal_pairs / cp,
                "ring-contiguous": causal_pairs - earlier.causal_pairs,
                "all-gather": causal_pairs / cp,
                "ulysses": causal_pairs / cp,
                "usp": causal_pairs / cp,
            },
        ),
        "pairs of one head of tp and sequence on the slowest rank",
        source="counted: with an early and a late piece every rank has two pairs of pieces in every step of the ring",
        approximate="a window, or chunks, shorter than the sequence are shared as evenly as the whole",
    )
    first_pairs = equation(
        count,
        choose(
            cp_type,
            {
                "ring": rank_pairs / ring_ranks,
                "ring-contiguous": own.causal_pairs,
                "all-gather": rank_pairs,
                "ulysses": rank_pairs,
                "usp": rank_pairs / ring_ranks,
            },
        ),
        "of these, those among the tokens of the rank itself, which a ring begins with",
    )
    kernels = equation(
        count,
        choose(
            cp_type,
            {
                "ring": ring_ranks,
                "ring-contiguous": ring_ranks,
                "all-gather": select(cp > 1, 2, 1),
                "ulysses": 1,
                "usp": ring_ranks,
            },
        ),
        "kernels: one a step of the ring; one each for the early and the late piece where all keys are there",
    )
    merge = equation(
        seconds,
        launch_gap
        + sequences
        * own_tokens
        * attention_heads
        * head_size
        * (8 * BYTE + element_size)
        / (memory_share * memory_bandwidth),
        "adding the result of a step of the ring to what there is: the sum in fp32 read and written, the new part read",
        source="Liu et al. 2023, arXiv 2310.01889, algorithm 1",
        approximate="all queries, though in zig-zag every second half-step has only the later ones",
    )

    masked_pairs = equation(
        count,
        own_tokens * (attention_block - 1) / 2,
        "pairs of a head that are computed though the mask leaves them out: half of the blocks on the diagonal",
    )
    pairs = equation(
        count, sequences * attention_heads * (rank_pairs + masked_pairs), "query-key pairs that a rank computes"
    )
    filled_head_size = equation(
        count,
        ceil_divide(head_size, attention_head_multiple) * attention_head_multiple,
        "features of a head as the kernel computes them",
    )
    forward_pair = equation(
        seconds,
        4 * filled_head_size * FLOP / (attention_share * half_peak) + 1 / exponential_rate,
        "two products and an exponential",
    )
    backward_pair = equation(
        seconds,
        10 * filled_head_size * attention_backward_factor * FLOP / (attention_share * half_peak) + 1 / exponential_rate,
        "five products and an exponential",
    )
    fused_forward = equation(
        seconds,
        kernels * launch_gap + pairs * forward_pair + (ring_ranks - 1) * merge,
        "two products and an exponential a pair",
        source="fit of public kernel tables: prefill attention, 9 to 14 % median error",
        approximate="drawing the numbers by which scores are dropped (--dropout) is left out: no public table measures it",
    )
    fused_backward = equation(
        seconds,
        kernels * launch_gap + pairs * backward_pair + (ring_ranks - 1) * merge,
        "five products and an exponential a pair",
        source="FlashAttention-2 (Dao 2023), section 3.1; the factor from published training runs",
        approximate="the least certain constant of a training step: 1.4 to 2.0",
    )
    fused_first_pairs = equation(
        count,
        sequences * attention_heads * (first_pairs + masked_pairs),
        "of the pairs that are computed, those among the tokens of the rank itself",
    )

    # Not fused: every pair, masked or not
    batched = {
        "groups": sequences * attention_heads,
        "operand_size": element_size,
        "peak": half_peak,
        "matmul_share": half_share,
        "M": own_tokens,
    }
    score_product = part(Matmul, **batched, N=sequence_length, K=head_size)
    value_product = part(Matmul, **batched, N=head_size, K=sequence_length)
    scores = equation(
        count, sequences * attention_heads * own_tokens * sequence_length, "scores of a rank, masked or not"
    )
    both_products = equation(
        seconds, score_product.time + value_product.time, "queries with keys, and scores with values, of all pairs"
    )
    unfused_forward = equation(
        seconds,
        both_products + scores * (score_traffic_forward + score_dropout_traffic) / (memory_share * memory_bandwidth),
        "two products, and the softmax through memory",
        source="Megatron-LM's core attention with its fused softmax",
    )
    unfused_backward = equation(
        seconds,
        2 * both_products
        + scores * (score_traffic_backward + score_dropout_traffic) / (memory_share * memory_bandwidth),
        "the gradients of both operands of each, and that of the softmax",
    )
    forward = equation(
        seconds,
        choose(attention_kernel, {"fused": fused_forward, "unfused": unfused_forward}),
        "of the slowest rank",
    )
    backward = equation(
        seconds,
        choose(attention_kernel, {"fused": fused_backward, "unfused": unfused_backward}),
        "of the slowest rank, backward",
    )
    first_forward = equation(
        seconds,
        choose(
            attention_kernel,
            {"fused": launch_gap + fused_first_pairs * forward_pair, "unfused": unfused_forward / ring_ranks},
        ),
        "the first step, forward",
    )
    first_backward = equation(
        seconds,
        choose(
            attention_kernel,
            {"fused": launch_gap + fused_first_pairs * backward_pair, "unfused": unfused_backward / ring_ranks},
        ),
        "the first step, backward",
    )
