"""Interleaving where two ranks are slow in turns: the last one in its last chunk, with the head, and another one in all others."""

from costmodel.symbolic import Chapter, both, count, equation, given, largest, part, seconds, select


class TurnWait(Chapter):
    """How long the last rank waits from the last micro-batch of a group in the last chunk to the first of the next group."""

    v = given(count, "chunks of layers on a rank")
    group = given(count, "micro-batches of the next group (g)")
    hops = given(
        seconds, "forward and gradient of inputs in a chunk of the other rank and of those between it and the last"
    )
    chunk = given(seconds, "all of a micro-batch in a chunk of the other rank")
    lighter = given(seconds, "what a micro-batch takes less in its first chunk")
    last_rank_chunk = given(seconds, "all of a micro-batch in a chunk of the last rank, the last of all apart")
    last_rank_late = given(seconds, "the same, with the gradient of weights of the last chunk, which waited")
    waits = given(count, "gradients of weights that wait on the last rank")
    ahead = given(count, "forward passes that the other rank is ahead of the last one")
    wraps = given(
        count, "1 where the other rank is the first, to which the last one passes on what goes to the next chunk"
    )

    chunks_between = equation(count, (v - 1) * group - ahead, "chunks that the other rank does meanwhile")
    chunks_after_wrapping = equation(
        count,
        (v - 3) * group + ahead,
        "the same where the last rank first passes a chunk on to it, and gets one back, both around the ends",
    )
    wait = equation(
        seconds,
        largest(
            0,
            select(
                chunks_between >= 0,
                hops
                + chunks_between * chunk
                - group * lighter
                + select(chunks_between >= waits, waits * largest(0, last_rank_late - chunk), 0),
                0,
            ),
            select(
                both(wraps > 0, chunks_after_wrapping >= 0),
                last_rank_chunk + chunks_after_wrapping * chunk - group * lighter,
                0,
            ),
        ),
        "of the last rank between two groups",
    )


class TurnsBound(Chapter):
    """How long a step lasts at least because the last rank is slow in its last chunk, and another rank in all others.

    The head makes the last chunk heavy. While a group of micro-batches is in it, the last rank holds up the others; while the group
    is in other chunks, a rank with more layers in those holds up the last one, and neither catches up. Before a last group that is
    smaller the last rank waits for fewer chunks, and has gradients of the group before left.
    """

    v = given(count, "chunks of layers on a rank")
    group = given(count, "micro-batches of a group (g)")
    last_group = given(count, "micro-batches of the last group")
    turns = given(count, "groups but one")
    heavy = given(seconds, "what the last rank does in its last chunk, over the whole step")
    left_over = given(seconds, "what it has left of the group before a smaller last one")
    before_forward = given(seconds, "forward of a micro-batch in the first chunk of each rank before the other one")
    ending = given(seconds, "what the ranks before it take at the end beyond its gradients of weights")
    hops = given(
        seconds, "forward and gradient of inputs in a chunk of the other rank and of those between it and the last"
    )
    chunk = given(seconds, "all of a micro-batch in a chunk of the other rank")
    lighter = given(seconds, "what a micro-batch takes less in its first chunk")
    first_forward = given(seconds, "forward of a micro-batch in its first chunk")
    first_backward = given(seconds, "both gradients there")
    forward = given(seconds, "forward in another of its chunks")
    backward = given(seconds, "both gradients there")
    weight_gradient = given(seconds, "of these, that of the weights")
    last_rank_chunk = given(seconds, "all of a micro-batch in a chunk of the last rank, the last of all apart")
    last_rank_late = given(seconds, "the same, with the gradient of weights of the last chunk, which waited")
    waits = given(count, "gradients of weights that wait on the last rank")
    ahead = given(count, "forward passes that the other rank is ahead of the last one")
    wraps = given(
        count, "1 where the other rank is the first, to which the last one passes on what goes to the next chunk"
    )

    filling = equation(
        seconds, before_forward + group * (first_forward + (v - 2) * forward), "the first group up to the last chunk"
    )
    draining = equation(
        seconds,
        last_group * (first_backward + (v - 2) * backward) + weight_gradient + ending,
        "the last group from the last chunk on",
    )
    of_whole = part(TurnWait)
    of_last = part(TurnWait, group=last_group)
    waiting = equation(
        seconds,
        turns * of_whole.wait
        + select(both(turns > 0, last_group < group), (1 - wraps) * of_last.wait - of_whole.wait, 0),
        "of the last rank between groups",
        approximate="before a smaller last group for the rank beside it alone, which makes a step that is bound by the first rank low",
    )
    bound = equation(
        seconds,
        filling + hops + heavy + waiting + left_over + draining,
        "what the two ranks make of the step",
        source="an event simulator",
    )
