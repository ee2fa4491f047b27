"""What follows from an all-gather: run backwards it is a reduce-scatter, and both in a row are an all-reduce."""

from costmodel.symbolic import Chapter, equation, given, part, seconds

REVERSED = "every send turned round, sums in place of copies; equals a step-by-step simulation"


class RunBackwards(Chapter):
    """A reduce-scatter that sends what an all-gather sends, the other way, in the opposite order."""

    all_gather_latency = given(seconds, "of the all-gather, for a payload of nothing")
    all_gather_bandwidth = given(seconds, "what the payload adds to it")

    reduce_scatter_latency = equation(seconds, all_gather_latency, "the all-gather run backwards", source=REVERSED)
    reduce_scatter_bandwidth = equation(seconds, all_gather_bandwidth, "the all-gather run backwards", source=REVERSED)
    reduce_scatter = equation(
        seconds, reduce_scatter_latency + reduce_scatter_bandwidth, "the all-gather run backwards", source=REVERSED
    )


class ThereAndBack(Chapter):
    """An all-reduce as a reduce-scatter and the all-gather that it is run backwards."""

    back = part(RunBackwards, shared=True)

    all_reduce_latency = equation(
        seconds, back.reduce_scatter_latency + back.all_gather_latency, "both phases", source=REVERSED
    )
    all_reduce_bandwidth = equation(
        seconds, back.reduce_scatter_bandwidth + back.all_gather_bandwidth, "both phases", source=REVERSED
    )
    all_reduce = equation(
        seconds, all_reduce_latency + all_reduce_bandwidth, "reduce-scatter, then all-gather", source=REVERSED
    )
