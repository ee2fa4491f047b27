"""Tensor parallelism: what a layer communicates, and how much of it shows."""

from costmodel.equations.axes import SEQUENCE
from costmodel.symbolic import Chapter, choice, choose, count, equation, given, seconds, select, smallest


class TensorParallel(Chapter):
    """The collectives of one decoder layer among the tensor-parallel ranks, for one micro-batch.

    Without sequence parallelism each of the two blocks ends in an all-reduce, forward and backward. With it an all-gather
    opens each block and a reduce-scatter ends it, and the backward pass gathers each block's input once more for the
    weight gradient.
    """

    tp = given(count, "tensor-parallel ranks")
    sequence_parallel = choice(SEQUENCE.labels, "Megatron sequence parallelism", SEQUENCE)
    all_gather = given(seconds, "of the hidden states of a micro-batch")
    reduce_scatter = given(seconds, "of the hidden states of a micro-batch")
    all_reduce = given(seconds, "of the hidden states of a micro-batch")
    blocks = given(count, "blocks of a layer that the ranks share: attention, and a feed-forward that is not routed")
    forward_compute = given(seconds, "of a layer and micro-batch")
    backward_compute = given(seconds, "of a layer and micro-batch")
    hidden_share = given(count, "share of the communication that hides behind compute", owner="assumption")

    forward = equation(
        seconds,
        select(
            tp > 1,
            choose(sequence_parallel, {"off": blocks * all_reduce, "on": blocks * (all_gather + reduce_scatter)}),
            0,
        ),
        "communication of a layer, forward",
        source="Shoeybi et al. 2019, figure 4; Korthikanti et al. 2022, figure 5",
    )
    backward = equation(
        seconds,
        select(
            tp > 1,
            choose(sequence_parallel, {"off": blocks * all_reduce, "on": blocks * (2 * all_gather + reduce_scatter)}),
            0,
        ),
        "communication of a layer, backward",
        source="Korthikanti et al. 2022, section 4.2.2: the extra gather in the backward pass",
    )
    exposed_forward = equation(
        seconds, forward - hidden_share * smallest(forward, forward_compute), "what shows of it, forward"
    )
    exposed_backward = equation(
        seconds, backward - hidden_share * smallest(backward, backward_compute), "what shows of it, backward"
    )
