"""Pipeline schedules: bubble and messages that show."""

from costmodel.equations.axes import SCHEDULE
from costmodel.equations.parallelism.bidirectional import Chimera, DualPipe
from costmodel.equations.parallelism.groups import Groups
from costmodel.equations.parallelism.schedules import ASYNCHRONOUS, by_schedule
from costmodel.equations.parallelism.unequal import UnequalEnds
from costmodel.equations.parallelism.unequal_chunks import UnequalChunks
from costmodel.equations.parallelism.zero_bubble import Folded, ZeroBubble
from costmodel.symbolic import (
    Chapter,
    count,
    equal,
    equation,
    floor_divide,
    given,
    holds,
    largest,
    part,
    seconds,
    select,
    smallest,
)


class Pipeline(Chapter):
    """Every schedule, over stages that may differ.

    A step lasts m times the slowest rank's share, and the bubble: what the pipeline takes to fill and drain, by a bound of the ranks
    that matter where all run in a line, else at the mean share of the other ranks.
    """

    groups = part(Groups, shared=True)
    pp, schedule, micro_batches = groups.pp, groups.schedule, groups.micro_batches
    virtual_stages = given(count, "chunks of layers on a rank (v)", SCHEDULE, owner="layout")
    slowest = given(seconds, "forward and backward of a micro-batch on the slowest rank")
    all_stages = given(seconds, "forward and backward of a micro-batch on all ranks together")
    layers = given(count, "layers of the average rank")
    forward = given(seconds, "forward of a micro-batch in a layer")
    input_gradient = given(seconds, "gradient of the layer's inputs")
    weight_gradient = given(seconds, "gradient of the layer's weights")
    send = given(seconds, "one message between neighbouring stages (c)")
    messages_block = given(
        count, "1 where messages hold up the ranks that exchange them, 0 where they overlap", SCHEDULE, owner="layout"
    )
    send_exposed_share = given(count, "share of asynchronous messages that shows", owner="assumption")

    backward = equation(seconds, input_gradient + weight_gradient, "backward of a micro-batch in a layer")
    zero_bubble = part(ZeroBubble)
    folded = part(Folded)
    dual = part(DualPipe, p=pp, m=micro_batches, pair=forward + backward)
    dual_v = part(DualPipe, p=2 * pp, m=2 * micro_batches, pair=forward + backward)
    chimera = part(Chimera)
    unequal = part(UnequalEnds)
    chunked = part(UnequalChunks)

    busy = equation(seconds, micro_batches * slowest, "work of the slowest rank")
    plain_gaps = equation(
        count,
        by_schedule(
            schedule,
            {
                ("1f1b", "gpipe"): pp - 1,
                "interleaved": (pp - 1) / virtual_stages,
                "breadth-first": (pp - 1 + (virtual_stages - 1) * largest(0, pp - micro_batches)) / virtual_stages,
            },
            others=0,
        ),
        "micro-batches that a rank could do while it waits, of schedules with whole backward passes; none where the pipeline never drains",
        source="Narayanan et al. 2021, sections 2.2 and 2.3",
        valid="interleaved: groups of pp or more, the last one too; asynchronous: m >= p",
    )
    split_bubble = equation(
        seconds,
        by_schedule(
            schedule,
            {
                ("zb-v", "v-half", "v-min"): folded.bubble,
                "dualpipe": dual.bubble,
                "dualpipev": dual_v.bubble / 2,
                "chimera": chimera.bubble,
            },
            others=zero_bubble.bubble,
        ),
        "idle time as layers would take it, of the other schedules",
    )
    gaps = equation(
        count,
        plain_gaps + select(forward + backward > 0, split_bubble / (forward + backward), 0),
        "micro-batches that a rank could do while it waits",
        approximate="what FSDP shows counts for F, I and W alike",
    )
    gaps_for_each = equation(
        count,
        select(chunked.known > 0, chunked.gaps, unequal.share * gaps / largest(1, pp - 1)),
        "of these for each other rank, more or fewer where ranks differ",
    )
    bubble = equation(
        seconds,
        gaps_for_each * (all_stages - slowest),
        "idle time of the slowest rank: that of equal ranks, at the mean share of the others where there is no closer form",
        source="an event simulator for unequal stages",
        approximate="closer forms are those of unequal ends and of unequal chunks. Folded and two-way schedules, zb-2p, breadth-first "
        "and zb-h1 with m < p, zb-h2 with m < 2p - 1 take the mean share. Folded and two-way ones are within 2 % of a step (chimera "
        "3 %) where the last stage has fewer layers for its head, 1 to 10 % high where the head is on top of a full stage; short steps "
        "are 2 to 6 % high at the median. What FSDP shows counts for all stages alike",
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
    blocking_interleaved = equation(
        count,
        micro_batches * virtual_stages + 2 * (pp - 1) + (virtual_stages - 1) * pp - 1,
        "exchanges of an interleaved pipeline that show where they do not overlap",
        source="an event simulator with rendezvous exchanges",
    )
    waited = equation(
        count,
        micro_batches + pp - 2 - floor_divide(micro_batches + pp - 2, pp),
        "messages of 1F1B that show each way although they overlap: only p - i micro-batches are in flight on rank i",
        source="an event simulator",
    )
    plain_sends = equation(
        count,
        by_schedule(
            schedule,
            {"1f1b": 2 * waited, ASYNCHRONOUS: 2 * (pp - 1) * micro_batches / pp},
            others=2 * (pp - 1),
        ),
        "asynchronous messages that show of schedules with whole backward passes, turns between chunks apart",
        source="an event simulator",
    )
    async_sends = equation(
        count,
        by_schedule(
            schedule,
            {
                ("zb-h1", "zb-h2", "zb-1p", "zb-2p", "interleaved-zb"): zero_bubble.sends,
                ("zb-v", "v-half", "v-min"): folded.sends,
                "dualpipe": dual.sends,
                "dualpipev": 2 * (pp - 1) * micro_batches / pp + 2 * pp - 4,
                "chimera": chimera.sends,
            },
            others=plain_sends,
        ),
        "asynchronous messages that show, turns between chunks apart",
    )
    turn_sends = equation(
        count,
        by_schedule(
            schedule,
            {
                ("interleaved", "breadth-first"): (virtual_stages - 1)
                * pp
                * (holds(groups.whole_group <= pp) + holds(groups.last_group <= pp))
            },
            others=0,
        ),
        "messages that show when a group comes back to a rank for its next chunk, on the way forth and back",
        source="an event simulator",
        approximate="a group larger than the pipeline hides them if each extra pass takes as long as the pipeline's messages",
    )
    send_count = equation(
        count,
        select(
            pp > 1,
            select(
                messages_block > 0,
                by_schedule(schedule, {"1f1b": blocking_sends}, others=blocking_interleaved),
                send_exposed_share * (async_sends + turn_sends),
            ),
            0,
        ),
        "messages that show, but for stalls",
    )
    chunk = equation(
        seconds, layers * (forward + backward) / virtual_stages, "forward and backward of the average chunk"
    )
    chunk_cover = equation(
        seconds, layers * smallest(forward, backward) / virtual_stages, "the pass that has to hide a message"
    )
    stalled_chunk = equation(
        seconds,
        largest(chunk, chunk_cover + send, (pp * chunk + 2 * (pp - 1) * send) / (2 * pp - 1)),
        "a chunk where a message takes longer than the pass that should hide it",
    )
    stalls = equation(
        count,
        select(
            messages_block > 0,
            0,
            by_schedule(schedule, {"interleaved": largest(0, micro_batches - pp) * virtual_stages}, others=0),
        ),
        "chunks of a steady interleaved pipeline",
    )
    stall = equation(
        seconds,
        select(send > chunk_cover, stalls * (stalled_chunk - chunk), 0),
        "steady state of interleaving waiting for messages",
        source="an event simulator",
        approximate="within 12 %",
    )
    sends = equation(seconds, send_count * send + stall, "messages that show")
    total = equation(seconds, busy + bubble + sends, "all micro-batches through the pipeline")
