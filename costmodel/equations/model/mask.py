"""The causal mask: how many pairs of tokens attend to each other, with and without a sliding window."""

from costmodel.symbolic import Chapter, count, equation, given, smallest


class CausalMask(Chapter):
    """A sequence in which each token attends to those before it, at most to a window of them."""

    sequence_length = given(count, "tokens of a sequence (T)", owner="workload")
    window = given(count, "tokens that a query sees back; the sequence length when it sees all", owner="model")

    seen = equation(count, smallest(window, sequence_length), "tokens that the last query sees")
    causal_pairs = equation(
        count,
        seen * (sequence_length - seen / 2),
        "query-key pairs of one head and sequence under the causal mask, half of the diagonal",
        source="area under the mask: T W - W^2/2, which is T^2/2 when the window is the whole sequence",
        valid="the half token by which the exact mean (T + 1) / 2 is more is left out, as all published counts do",
    )
