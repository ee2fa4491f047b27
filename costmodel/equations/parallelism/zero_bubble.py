"""Zero-bubble schedules: the gradients of the weights, which nobody waits for, fill what would be idle.

A pass forward takes F, the gradient of the inputs I, that of the weights W, of a stage and micro-batch. Every bubble is against
the common end of all stages, as an optimizer that clips by the norm of all gradients needs it.
"""

from costmodel.equations.axes import SCHEDULE
from costmodel.equations.parallelism.schedules import SCHEDULES, by_schedule
from costmodel.symbolic import (
    Chapter,
    choice,
    count,
    equation,
    floor_divide,
    given,
    largest,
    seconds,
    select,
    smallest,
)


class ZeroBubble(Chapter):
    """ZB-H1, ZB-H2, ZB-1p, ZB-2p and their interleaved kin, on stages in a line."""

    pp = given(count, "pipeline stages (p)")
    schedule = choice(SCHEDULES, "pipeline schedule", SCHEDULE)
    virtual_stages = given(count, "chunks of layers on a rank (v)", SCHEDULE, owner="layout")
    micro_batches = given(count, "micro-batches of a step (m)")
    forward = given(seconds, "forward of a micro-batch on a stage (F)")
    input_gradient = given(seconds, "gradient of its inputs (I)")
    weight_gradient = given(seconds, "gradient of its weights (W)")

    both_ways = equation(seconds, (pp - 1) * (forward + input_gradient), "to fill and to drain with F and I")
    least = equation(
        seconds, smallest(forward, input_gradient, weight_gradient), "what one delayed W can fill, at the least"
    )
    filled = equation(count, smallest(micro_batches - 1, pp - 1), "gaps that a delayed W fills")
    one_warm_up = equation(
        seconds,
        both_ways - filled * least,
        "bubble of ZB-H1 and ZB-1p, with no more in flight than 1F1B",
        source="Qi et al. 2024, table 2, where W is shortest; an event simulator for the rest",
    )
    filled_twice = equation(count, smallest(micro_batches - 1, 2 * (pp - 1)), "gaps that a delayed W of ZB-H2 fills")
    pairs_filled = equation(count, floor_divide(filled_twice, 2), "of them in pairs, on the way forth and back")
    two_warm_ups = equation(
        seconds,
        both_ways
        - smallest(
            filled_twice * weight_gradient, pairs_filled * input_gradient + (filled_twice - 2 * pairs_filled) * least
        ),
        "bubble of ZB-H2, with twice as much in flight",
        source="an event simulator",
        approximate="exact where F, I and W differ by no more than a factor of two, up to 4 % of a step low beyond",
    )
    drain = equation(seconds, (pp - 1) * forward, "what no W fills, as the last stage starts late")
    searched = equation(
        seconds,
        largest(drain, both_ways - (micro_batches - 1) * weight_gradient),
        "bubble of ZB-2p, searched for under the same limit of memory",
        source="Qi et al. 2024, algorithm 1",
        valid="m >= 2p",
        approximate="up to 1.2 % of a step high where F and I are alike",
    )
    bubble = equation(
        seconds,
        by_schedule(
            schedule,
            {
                ("zb-h1", "zb-1p"): one_warm_up,
                "zb-h2": two_warm_ups,
                "zb-2p": searched,
                "interleaved-zb": (both_ways - (pp - 1) * least) / virtual_stages,
            },
            others=0,
        ),
        "idle time of these schedules, 0 of others",
        valid="interleaved: m >= p",
    )
    line_sends = equation(
        count,
        2 * (pp - 1) + 2 * smallest(largest(micro_batches - 2, 0), pp - 1),
        "messages of ZB-H1 that show",
        source="an event simulator",
        approximate="up to 4 % of a step high where W is longer than F or I",
    )
    sends = equation(
        count,
        by_schedule(
            schedule,
            {
                ("zb-h1", "zb-1p"): line_sends,
                "zb-h2": (pp - 1) * select(input_gradient >= 2 * weight_gradient, 2, 1),
                "zb-2p": (pp - 1) * select(input_gradient * (pp - 1) >= (micro_batches - 1) * weight_gradient, 2, 1),
                "interleaved-zb": 4 * (pp - 1) + (virtual_stages - 1) * pp,
            },
            others=0,
        ),
        "messages that show",
        source="an event simulator",
        approximate="messages that are short beside a pass: within 5 % of a step up to a fiftieth of a stage",
    )


class Folded(Chapter):
    """ZB-V, V-Half and V-Min: two chunks a rank, the second on the way back, for balanced memory."""

    pp = given(count, "pipeline stages (p)")
    schedule = choice(SCHEDULES, "pipeline schedule", SCHEDULE)
    micro_batches = given(count, "micro-batches of a step (m)")
    forward = given(seconds, "forward of a micro-batch on a rank (F)")
    input_gradient = given(seconds, "gradient of its inputs (I)")
    weight_gradient = given(seconds, "gradient of its weights (W)")

    late_weights = equation(seconds, (pp / 2 - 1) * weight_gradient, "what half a pipeline of W takes")
    zb_v = equation(
        seconds,
        largest(
            (pp - 1) * input_gradient / 2,
            (2 * pp - 3) * forward / 2 - (pp / 2 - 1) * input_gradient,
            (pp - 1) * (input_gradient - weight_gradient),
            input_gradient / 2 + late_weights,
            forward / 2 + late_weights,
            (2 * pp - 3) * forward / 2 + input_gradient / 2 - (pp - 1) * weight_gradient,
        ),
        "bubble of ZB-V; zero only if every rank steps its optimizer alone",
        source="Qi et al. 2024 (controllable memory); an event simulator",
        valid="m >= 2p - 1",
        approximate="exact where F, I and W differ by no more than a factor of two, up to 2 % of a step low beyond",
    )
    unlike = equation(seconds, largest(input_gradient - forward, forward - input_gradient), "how F and I differ")
    v_half = equation(
        seconds,
        micro_batches * largest(0, unlike - weight_gradient / 2)
        + largest(
            0,
            (pp - select(floor_divide(pp, 2) * 2 < pp, 1, 3)) * forward / 2
            + 3 * (pp - 1) * input_gradient / 2
            - pp * weight_gradient / 2,
        ),
        "bubble of V-Half, with half of 1F1B's activations",
        source="Qi et al. 2024 (controllable memory); an event simulator",
        valid="m >= 2p",
        approximate="within 2 % of a step where F is at most I",
    )
    v_min = equation(
        seconds,
        micro_batches * largest(0, 3 * largest(forward, input_gradient) - (forward + input_gradient + weight_gradient))
        + (4 * pp - select(floor_divide(pp, 3) * 3 < pp, 5, 7)) * (forward + input_gradient) / 4,
        "bubble of V-Min, with a third of 1F1B's activations: it loses in every micro-batch unless F, I and W are alike",
        source="Qi et al. 2024 (controllable memory); an event simulator",
        valid="m >= 2p",
        approximate="within 3 % of a step where F and I are alike, else 7 %",
    )
    bubble = equation(
        seconds,
        by_schedule(schedule, {"zb-v": zb_v, "v-half": v_half, "v-min": v_min}, others=0),
        "idle time of these schedules, 0 of others",
    )
    sends = equation(
        count,
        by_schedule(
            schedule, {"zb-v": 5 * pp - 7, "v-half": 6 * pp - 2, "v-min": (6 - 8 / pp) * micro_batches}, others=0
        ),
        "messages that show",
        source="an event simulator",
        approximate="messages of up to a tenth of a pass; V-Min shows them in every micro-batch",
    )
