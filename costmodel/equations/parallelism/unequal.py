"""Pipelines whose first and last stage take another time than those between: exact forms of the schedules that have one."""

from costmodel.equations.axes import SCHEDULE
from costmodel.equations.parallelism.schedules import SCHEDULES, by_schedule
from costmodel.symbolic import (
    Chapter,
    choice,
    count,
    equation,
    given,
    largest,
    part,
    seconds,
    select,
    smallest,
)


class StageBound(Chapter):
    """How long a step of 1F1B lasts at least because of one stage: the longest over all stages is how long it lasts.

    A stage starts when the first micro-batch reaches it and must do all of its own work. Where it has more micro-batches than
    stages after it, it waits for those twice, filling and draining; else it runs all forward passes, then all backward ones.
    """

    before = given(seconds, "forward and backward of a micro-batch on all stages before")
    forward = given(seconds, "forward of a micro-batch on the stage (f)")
    backward = given(seconds, "its backward (b)")
    after = given(seconds, "forward and backward of a micro-batch on all stages after (D)")
    last = given(seconds, "of these, on the last one")
    alternating_after = given(seconds, "the same on the last m - 1 stages, which alternate")
    stages_after = given(count, "stages after (w)")
    micro_batches = given(count, "micro-batches of a step (m)")

    own = equation(seconds, micro_batches * (forward + backward), "its own work")
    filling = equation(
        seconds,
        largest(0, after - stages_after * forward, after - last - largest(stages_after - 1, 0) * forward),
        "wait for the first gradient, which takes turns with the forward passes of the stages after, the last apart or not",
    )
    draining = equation(
        seconds,
        largest(0, after - stages_after * backward, after - last - largest(stages_after - 1, 0) * backward),
        "wait for the last gradient, likewise",
    )
    alternating = equation(
        seconds,
        before + own + filling + draining,
        "with more micro-batches than stages after",
        source="an event simulator",
        approximate="exact but where the first stage is heavier than those between and the last lighter: up to 6 % low then",
    )
    one_after_the_other = equation(
        seconds,
        before
        + largest(
            own + largest(0, after - alternating_after),
            forward + backward + after + (micro_batches - 1) * largest(forward, backward),
        ),
        "with no more micro-batches than these and itself",
        source="an event simulator",
    )
    bound = equation(
        seconds,
        select(micro_batches > stages_after + 1, alternating, one_after_the_other),
        "what the stage makes of the step",
    )


class UnequalEnds(Chapter):
    """1F1B and GPipe over a first stage, equal ones between, and a last stage.

    Among equal stages the bound is convex in the position, so that only those at the ends of each case can be the longest.
    """

    pp = given(count, "pipeline stages (p)")
    micro_batches = given(count, "micro-batches of a step (m)")
    schedule = choice(SCHEDULES, "pipeline schedule", SCHEDULE)
    first_forward = given(seconds, "forward of a micro-batch on the first stage")
    first_backward = given(seconds, "its backward")
    middle_forward = given(seconds, "forward of a micro-batch on each stage between")
    middle_backward = given(seconds, "its backward")
    last_forward = given(seconds, "forward of a micro-batch on the last stage")
    last_backward = given(seconds, "its backward")

    first_both = equation(seconds, first_forward + first_backward, "both ways on the first stage")
    middle_both = equation(
        seconds, select(pp > 2, middle_forward + middle_backward, 0), "both ways on a stage between, where there is one"
    )
    last_both = equation(seconds, last_forward + last_backward, "both ways on the last stage")
    every = equation(seconds, first_both + (pp - 2) * middle_both + last_both, "both ways on all stages")
    heaviest = equation(seconds, largest(first_both, middle_both, last_both), "both ways on the slowest stage")

    alternating_stages = equation(
        seconds,
        select(micro_batches > 1, last_both + (micro_batches - 2) * middle_both, 0),
        "both ways on the last m - 1 stages",
        valid="m < p",
    )

    first = part(
        StageBound,
        before=0,
        forward=first_forward,
        backward=first_backward,
        after=every - first_both,
        last=last_both,
        alternating_after=alternating_stages,
        stages_after=pp - 1,
    )
    second = part(
        StageBound,
        before=first_both,
        forward=middle_forward,
        backward=middle_backward,
        after=every - first_both - middle_both,
        last=last_both,
        alternating_after=alternating_stages,
        stages_after=pp - 2,
    )
    turning = equation(
        count,
        smallest(pp - 2, largest(micro_batches - 2, 1)),
        "stages after the first of the middle ones that alternates",
    )
    turning_point = part(
        StageBound,
        before=every - last_both - turning * middle_both,
        forward=middle_forward,
        backward=middle_backward,
        after=last_both + (turning - 1) * middle_both,
        last=last_both,
        alternating_after=alternating_stages,
        stages_after=turning,
    )
    next_to_last = part(
        StageBound,
        before=every - last_both - middle_both,
        forward=middle_forward,
        backward=middle_backward,
        after=last_both,
        last=last_both,
        alternating_after=alternating_stages,
        stages_after=1,
    )
    last = part(
        StageBound,
        before=every - last_both,
        forward=last_forward,
        backward=last_backward,
        after=0,
        last=0,
        alternating_after=alternating_stages,
        stages_after=0,
    )
    between = equation(
        seconds,
        select(pp > 2, largest(second.bound, turning_point.bound, next_to_last.bound), 0),
        "what the stages between make of it",
    )
    alternating = equation(seconds, largest(first.bound, between, last.bound), "a step of 1F1B without messages")
    all_forward_first = equation(
        seconds,
        every
        + (micro_batches - 1)
        * (
            largest(first_forward, select(pp > 2, middle_forward, 0), last_forward)
            + largest(first_backward, select(pp > 2, middle_backward, 0), last_backward)
        ),
        "a step of GPipe without messages: the slowest stage paces each way",
    )
    at_mean = equation(seconds, every - heaviest, "bubble at the mean time of the other stages")
    idle = equation(
        seconds,
        by_schedule(schedule, {"1f1b": alternating, "gpipe": all_forward_first}, others=0) - micro_batches * heaviest,
        "idle time of the slowest stage with these two schedules",
    )
    share = equation(
        count,
        by_schedule(schedule, {("1f1b", "gpipe"): select(at_mean > 0, idle / at_mean, 1)}, others=1),
        "bubble of unequal stages over that at the mean time of the others; 1 for schedules without an exact form",
    )
