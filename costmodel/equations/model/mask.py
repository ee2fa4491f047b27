"""The causal mask: how many pairs of tokens attend to each other, with and without a sliding window."""

from costmodel.symbolic import Chapter, count, equation, given, select, smallest


class CausalMask(Chapter):
    """A sequence in which each token attends to those before it in its document, at most to a window of them."""

    sequence_length = given(count, "tokens of a sequence (T)", owner="workload")
    document_length = given(
        count,
        "tokens of the document that a token is in, on the mean over tokens; the sequence length where a sequence is one",
        owner="workload",
    )
    window = given(count, "tokens that a query sees back; the sequence length when it sees all", owner="model")

    span = equation(count, smallest(document_length, sequence_length), "tokens that can attend to each other")
    seen = equation(count, smallest(window, span), "tokens that the last query of a document sees")
    documents = equation(
        count,
        select(document_length < sequence_length, sequence_length / document_length, 1),
        "documents of a sequence",
    )
    causal_pairs = equation(
        count,
        seen * (sequence_length - documents * seen / 2),
        "query-key pairs of one head and sequence under the causal mask, half of the diagonal",
        source="area under the mask: T W - W^2/2, which is T^2/2 when the window is the whole sequence; of T/d documents alike",
        approximate="with a window, documents are taken to be of one length",
        valid="the half token by which the exact mean (T + 1) / 2 is more is left out, as all published counts do",
    )
