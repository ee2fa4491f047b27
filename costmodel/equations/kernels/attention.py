"""Fused attention (FlashAttention and its kin): matrix work of the causal pairs, and their exponentials."""

from costmodel.equations.model.mask import CausalMask
from costmodel.symbolic import FLOP, Chapter, count, equation, flop_per_second, given, part, per_second, seconds


class Attention(Chapter):
    """Scores, softmax and weighted values in one kernel that never writes the scores.

    The forward pass does two products for each query-key pair, the backward pass five.
    """

    sequences = given(count, "sequences of a micro-batch")
    attention_heads = given(count, "query heads on a rank")
    head_size = given(count, "features of a head (H)", owner="model")
    peak = given(flop_per_second, "dense peak of the chip at this precision", owner="chip")
    attention_share = given(count, "share of the peak that the fused forward kernel attains", owner="chip")
    exponential_rate = given(per_second, "exponentials of the whole chip", owner="chip")
    attention_backward_factor = given(count, "time of a backward operation over a forward one", owner="assumption")
    launch_gap = given(seconds, "between two kernels", owner="chip")

    mask = part(CausalMask, shared=True)
    pairs = equation(count, sequences * attention_heads * mask.causal_pairs, "query-key pairs on a rank")
    forward = equation(
        seconds,
        launch_gap + pairs * (4 * head_size * FLOP / (attention_share * peak) + 1 / exponential_rate),
        "two products and an exponential a pair",
        source="fit of public kernel tables: prefill attention, 9 to 14 % median error",
        approximate="no partly filled blocks on the diagonal",
    )
    backward = equation(
        seconds,
        launch_gap
        + pairs * (10 * head_size * attention_backward_factor * FLOP / (attention_share * peak) + 1 / exponential_rate),
        "five products and an exponential a pair",
        source="FlashAttention-2 (Dao 2023), section 3.1; the factor from published training runs",
        approximate="the least certain constant of a training step: 1.4 to 2.0",
    )
