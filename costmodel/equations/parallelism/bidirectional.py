"""Schedules whose micro-batches meet: DualPipe, DualPipeV, Chimera."""

from costmodel.symbolic import Chapter, count, equal, equation, given, largest, seconds, select


class DualPipe(Chapter):
    """DualPipe. DualPipeV is the same over twice the stages and micro-batches, folded, so that it takes half as long.

    Forward and backward passes that meet run as a pair, which may take less than both after each other.
    """

    p = given(count, "stages of a way")
    m = given(count, "micro-batches of a step, of both ways together")
    forward = given(seconds, "forward of a micro-batch on a rank (F)")
    input_gradient = given(seconds, "gradient of its inputs (I)")
    weight_gradient = given(seconds, "gradient of its weights (W)")
    pair = given(seconds, "a forward and a backward pass that run together")

    half_weights = equation(seconds, (p / 2 - 1) * weight_gradient, "W that have waited for half a pipeline")
    forward_first = equation(
        seconds, 3 * p / 2 * forward + (p + 1) * input_gradient, "filling and draining, the wait being for F"
    )
    backward_first = equation(
        seconds, p * forward + 3 * p / 2 * input_gradient, "filling and draining, the wait being for I"
    )
    weights_last = equation(
        seconds,
        3 * p / 2 * forward + (p / 2 + 2) * input_gradient + half_weights,
        "filling and draining, the wait being for F and W",
    )
    weights_alone = equation(
        seconds, p * forward + (p + 1) * input_gradient + half_weights, "filling and draining, the wait being for W"
    )
    filling = equation(
        seconds, largest(forward_first, backward_first, weights_last, weights_alone), "filling and draining"
    )
    whole = equation(seconds, forward + input_gradient + weight_gradient, "a micro-batch on a rank, nothing paired")
    bubble = equation(
        seconds,
        filling + 3 * weight_gradient - (p / 2 + 2) * whole - (m - p / 2 - 2) * (whole - pair),
        "idle time, less what pairs save",
        source="deepseek-ai/DualPipe: the order of step(); its printed form is exact where F and I are alike",
        valid="m >= 2p, both even; a pair takes at least a backward pass",
    )
    later_sends = equation(
        count,
        select(
            backward_first >= filling,
            p / 2 - 1,
            select(equal(largest(forward_first, weights_alone), filling), 0, 1 - p / 2),
        ),
        "further messages that show where the wait is for I, or fewer where it is for W",
    )
    sends = equation(
        count,
        (p - 1) * m / p + 3 * p / 2 - 3 + later_sends,
        "messages that show; not of DualPipeV",
        source="an event simulator",
        approximate="short messages, of up to a hundredth of a stage",
    )


class Chimera(Chapter):
    """Two 1F1B pipelines that run against each other, in units of p micro-batches after one another."""

    pp = given(count, "pipeline stages (p)")
    micro_batches = given(count, "micro-batches of a step, of both ways together (m)")
    forward = given(seconds, "forward of a micro-batch on a stage (F)")
    backward = given(seconds, "its backward pass (B)")

    longer = equation(seconds, largest(forward, backward), "the longer of the two passes")
    unlike = equation(seconds, 2 * longer - forward - backward, "how F and B differ")
    bubble = equation(
        seconds,
        select(
            micro_batches <= pp,
            (pp - micro_batches) * (forward + backward) + (micro_batches - 2) * longer,
            (pp - 2) * (longer + (micro_batches / pp - 1) * unlike),
        ),
        "idle time",
        source="Li and Hoefler 2021, section 3.5, direct concatenation; an event simulator where F and B differ",
        valid="p even; m even and at most p, or a multiple of p",
    )
    sends = equation(
        count, (2 - 4 / pp) * micro_batches + pp - 1, "messages that show", source="an event simulator", valid="m >= p"
    )
