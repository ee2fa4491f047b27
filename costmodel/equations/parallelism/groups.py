"""Groups of micro-batches that go through the chunks of an interleaved pipeline together."""

from costmodel.equations.axes import SCHEDULE
from costmodel.equations.parallelism.schedules import SCHEDULES, by_schedule
from costmodel.symbolic import Chapter, choice, count, equation, floor_divide, given, select, smallest


class Groups(Chapter):
    """Interleaving sends groups of micro-batches through all chunks of a rank, one group after the other."""

    pp = given(count, "pipeline stages (p)")
    schedule = choice(SCHEDULES, "pipeline schedule", SCHEDULE)
    group_size = given(count, "micro-batches that go through a chunk together; 0: pp", SCHEDULE, owner="layout")
    micro_batches = given(count, "micro-batches of a step (m)")

    whole_group = equation(
        count,
        by_schedule(
            schedule,
            {"breadth-first": micro_batches},
            others=smallest(select(group_size > 0, group_size, pp), micro_batches),
        ),
        "micro-batches of a group (g); breadth-first takes all at once",
        source="Narayanan et al. 2021, section 2.2; Lamy-Poirier 2023, section 3",
    )
    rest = equation(
        count, micro_batches - floor_divide(micro_batches, whole_group) * whole_group, "left over for a last group"
    )
    last_group = equation(count, select(rest > 0, rest, whole_group), "micro-batches of the last group")
