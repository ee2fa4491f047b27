"""What a pipeline schedule holds: micro-batches in flight, copies and versions of the weights."""

from sympy import Rational

from costmodel.equations.axes import SCHEDULE, STAGE
from costmodel.equations.parallelism.groups import Groups
from costmodel.equations.parallelism.schedules import by_schedule
from costmodel.symbolic import Chapter, count, equation, floor_divide, given, largest, part, rows, smallest


class InFlight(Chapter):
    """Micro-batches whose activations a rank holds at its fullest moment, in whole shares of a rank.

    Activations are held until the gradient of the weights is done: with fused attention nearly all of them are for that.
    """

    groups = part(Groups, shared=True)
    pp, schedule, micro_batches = groups.pp, groups.schedule, groups.micro_batches
    virtual_stages = given(count, "chunks of layers on a rank (v)", SCHEDULE, owner="layout")

    rank = equation(
        count,
        rows(STAGE, {"first": 0, "middle": smallest(1, pp - 1), "last": pp - 1}),
        "position in the pipeline; of the middle stages the fullest is the second",
    )
    group_chunks = equation(
        count, (virtual_stages - 1) * groups.whole_group, "passes of a group through all chunks but the last"
    )
    chunk_passes = equation(count, micro_batches * virtual_stages, "passes of a step through a rank")
    chimera = equation(
        count,
        smallest(pp, pp / 2 + rows(STAGE, {"first": 1, "middle": pp / 2, "last": 1})),
        "of Chimera, most in the middle of the pipeline",
        source="Li and Hoefler 2021, table 2",
        valid="m >= p, else fewer",
    )
    in_flight = equation(
        count,
        by_schedule(
            schedule,
            {
                ("1f1b", "pipedream", "pipedream-2bw"): smallest(pp - rank, micro_batches),
                "interleaved": smallest(2 * (pp - rank - 1) + group_chunks + 1, chunk_passes) / virtual_stages,
                ("zb-h1", "zb-1p", "zb-v"): smallest(pp, micro_batches),
                ("zb-h2", "zb-2p"): smallest(2 * pp - 1, micro_batches),
                "interleaved-zb": smallest(group_chunks + pp, chunk_passes) / virtual_stages,
                "v-half": floor_divide(pp + 2, 2),
                "v-min": floor_divide(pp + 4, 3),
                "dualpipe": pp + 1,
                "dualpipev": (2 * pp + 1) / 2,
                "chimera": smallest(chimera, micro_batches),
            },
            others=micro_batches,
        ),
        "micro-batches in flight",
        source="Narayanan et al. 2021, section 2.2; Megatron-LM's warm-up counts; Qi et al. 2024; an event simulator",
    )
    waiting = equation(
        count,
        by_schedule(
            schedule,
            {
                ("zb-h1", "zb-1p"): smallest(rank + 1, micro_batches),
                "zb-h2": smallest(2 * rank + 1, micro_batches),
                "zb-v": smallest(rank + Rational(1, 2), micro_batches),
                "interleaved-zb": smallest(rank + 1, chunk_passes) / virtual_stages,
                ("zb-2p", "v-half", "v-min"): in_flight,
                "dualpipe": smallest(rank, pp - 1 - rank) + 1,
                "dualpipev": (rank + 1) / 2,
            },
            others=0,
        ),
        "of these, those that only the gradient of the weights still waits for, at most",
        source="Qi et al. 2024; an event simulator",
        approximate="of zb-2p, v-half and v-min all in flight are taken to wait",
    )
    head_in_flight = equation(
        count,
        by_schedule(schedule, {("gpipe", "breadth-first"): micro_batches}, others=largest(1, waiting)),
        "micro-batches in flight in the last chunk: its backward pass follows at once, where not all forward passes come first",
    )
    weight_versions = equation(
        count,
        by_schedule(schedule, {"pipedream": largest(1, pp - rank), "pipedream-2bw": 2}, others=1),
        "versions of its weights that a stage keeps for passes that are under way",
        source="Narayanan et al. 2019, section 3.3; Narayanan et al. 2021 (PipeDream-2BW), section 3.1",
    )
