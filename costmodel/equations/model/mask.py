"""The causal mask: how many pairs of tokens attend to each other: to all before, in a sliding window, or in chunks."""

from costmodel.symbolic import Chapter, count, equation, floor_divide, given, largest, select, smallest


class CausalMask(Chapter):
    """A sequence in which each token attends to those before it in its document, at most to a window of them, or to those of its chunk.

    A window moves with the token; chunks lie side by side, and a token at the start of one sees nothing of the one before.
    """

    sequence_length = given(count, "tokens of a sequence (T)", owner="workload")
    document_length = given(
        count,
        "tokens of the document that a token is in, on the mean over tokens; the sequence length where a sequence is one",
        owner="workload",
    )
    window = given(count, "tokens that a query sees back; the sequence length when it sees all", owner="model")
    attention_chunk = given(
        count, "tokens of the chunks inside which tokens attend, 0 where these are not cut", owner="model"
    )

    span = equation(count, smallest(document_length, sequence_length), "tokens that can attend to each other")
    seen = equation(
        count,
        smallest(select(attention_chunk > 0, attention_chunk, window), span),
        "tokens that the last query of a document, or of a chunk, sees",
    )
    documents = equation(
        count,
        select(document_length < sequence_length, sequence_length / document_length, 1),
        "documents of a sequence",
    )
    whole_chunks = equation(
        count,
        select(attention_chunk > 0, floor_divide(span, largest(1, attention_chunk)), 0),
        "whole chunks of a document",
    )
    last_chunk = equation(
        count, span - whole_chunks * attention_chunk, "tokens of its last chunk, where it is no whole one"
    )
    causal_pairs = equation(
        count,
        select(
            attention_chunk > 0,
            documents * (whole_chunks * attention_chunk**2 + last_chunk**2) / 2,
            seen * (sequence_length - documents * seen / 2),
        ),
        "query-key pairs of one head and sequence under the causal mask, half of the diagonal",
        source="area under the mask: T W - W^2/2, which is T^2/2 when the window is the whole sequence; of T/d documents alike; "
        "of chunks of C, T C/2, the last one by its own length",
        approximate="with a window or chunks, documents are taken to be of one length, and chunks to begin with them",
        valid="the half token by which the exact mean (T + 1) / 2 is more is left out, as all published counts do",
    )
    attended = equation(
        count,
        select(attention_chunk > 0, 2 * causal_pairs / sequence_length, seen),
        "tokens that a query would see if none were later, on the mean over a sequence",
    )
