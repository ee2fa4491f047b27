"""Pipeline schedules: bubble, messages that show, and micro-batches in flight."""

from costmodel.equations.axes import SCHEDULE, STAGE
from costmodel.equations.parallelism.layout import SCHEDULES
from costmodel.symbolic import (
    Chapter,
    choice,
    choose,
    count,
    equal,
    equation,
    given,
    largest,
    rows,
    seconds,
    select,
    smallest,
)


class Pipeline(Chapter):
    """1F1B (PipeDream-flush) and interleaved 1F1B (Megatron, groups of pp) over stages that may differ.

    A step lasts m times the slowest stage's share, and the bubble: what the pipeline takes to fill and drain, which is the
    mean share of the other stages, divided by the chunks of a rank.
    """

    pp = given(count, "pipeline stages (p)")
    schedule = choice(SCHEDULES, "pipeline schedule", SCHEDULE)
    virtual_stages = given(count, "chunks of layers on a rank (v)", SCHEDULE, owner="layout")
    micro_batches = given(count, "micro-batches of a step (m)")
    slowest = given(seconds, "forward and backward of a micro-batch on the slowest stage")
    all_stages = given(seconds, "forward and backward of a micro-batch on all stages together")
    pass_forward = given(seconds, "forward of a micro-batch on the average stage")
    pass_backward = given(seconds, "backward of a micro-batch on the average stage")
    send = given(seconds, "one message between neighbouring stages (c)")
    send_exposed_share = given(count, "share of asynchronous messages that shows", owner="assumption")

    busy = equation(seconds, micro_batches * slowest, "work of the slowest stage")
    bubble = equation(
        seconds,
        (all_stages - slowest) / virtual_stages,
        "idle time of the slowest stage: (p - 1) times the mean share of the others, over v",
        source="Narayanan et al. 2021, sections 2.2 and 2.3; an event simulator for unequal stages",
        valid="interleaved: pp divides m",
        approximate="exact for equal stages and a heavy last one; where both ends are light high by 2 % of a step on average, "
        "with a heavy first stage by 7 %; within 25 %",
    )
    blocking_sends = equation(
        count,
        select(
            micro_batches <= 1,
            2 * (pp - 1),
            select(equal(pp, 2), micro_batches + 1, 2 * (micro_batches + pp - 2) - 1),
        ),
        "exchanges of plain 1F1B that show: Megatron does not overlap them",
        source="an event simulator with rendezvous exchanges",
        valid="a message is shorter than the forward and the backward of a stage",
    )
    chunk = equation(
        seconds, (pass_forward + pass_backward) / virtual_stages, "forward and backward of the average chunk"
    )
    chunk_cover = equation(
        seconds, smallest(pass_forward, pass_backward) / virtual_stages, "the pass that has to hide a message"
    )
    stalled_chunk = equation(
        seconds,
        largest(chunk, chunk_cover + send, (pp * chunk + 2 * (pp - 1) * send) / (2 * pp - 1)),
        "the same where a message takes longer than the pass that should hide it",
    )
    interleaved_stall = equation(
        seconds,
        select(send > chunk_cover, largest(0, micro_batches - pp) * virtual_stages * (stalled_chunk - chunk), 0),
        "steady state of interleaving waiting for messages",
        source="an event simulator",
        approximate="within 12 %",
    )
    sends = equation(
        seconds,
        select(
            pp > 1,
            choose(
                schedule,
                {
                    "1f1b": blocking_sends * send,
                    "interleaved": send_exposed_share * 2 * (pp * virtual_stages - 1) * send + interleaved_stall,
                },
            ),
            0,
        ),
        "messages that show",
    )
    total = equation(seconds, busy + bubble + sends, "all micro-batches through the pipeline")


class InFlight(Chapter):
    """Micro-batches whose activations a stage holds at its fullest moment, in whole shares of the stage."""

    pp = given(count, "pipeline stages (p)")
    schedule = choice(SCHEDULES, "pipeline schedule", SCHEDULE)
    virtual_stages = given(count, "chunks of layers on a rank (v)", SCHEDULE, owner="layout")
    micro_batches = given(count, "micro-batches of a step (m)")

    rank = equation(
        count,
        rows(STAGE, {"first": 0, "middle": smallest(1, pp - 1), "last": pp - 1}),
        "position in the pipeline; of the middle stages the fullest is the second",
    )
    in_flight = equation(
        count,
        choose(
            schedule,
            {
                "1f1b": smallest(pp - rank, micro_batches),
                "interleaved": smallest(
                    2 * (pp - rank - 1) + (virtual_stages - 1) * pp + 1, micro_batches * virtual_stages
                )
                / virtual_stages,
            },
        ),
        "micro-batches in flight",
        source="Narayanan et al. 2021, section 2.2; Megatron-LM's warm-up counts",
    )
