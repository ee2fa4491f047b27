"""Schedules of several chunks, or with gradients of weights that wait, over stages that differ: how long a step lasts at least."""

from costmodel.equations.axes import SCHEDULE
from costmodel.equations.parallelism.groups import Groups
from costmodel.equations.parallelism.schedules import by_schedule
from costmodel.equations.parallelism.turns import TurnsBound
from costmodel.symbolic import (
    Chapter,
    both,
    ceil_divide,
    count,
    equation,
    given,
    holds,
    largest,
    part,
    seconds,
    select,
    smallest,
)


class RankBound(Chapter):
    """How long a step lasts at least because of one rank: the longest over all ranks is mostly how long it lasts.

    A rank starts when the first micro-batch reaches it and does all of its own work. It may wait for the first gradient, for the
    last one, and at the end, when it has only gradients of weights left, for the ranks before it.
    """

    before_forward = given(seconds, "forward of a micro-batch in the first chunk of each rank before")
    before_gradient = given(seconds, "gradient of the inputs there, and that of the weights on the first rank")
    after = given(seconds, "forward and gradient of the inputs in the last chunk of each rank after")
    own = given(seconds, "its own work in a step")
    ahead_forward = given(seconds, "forward passes that it does meanwhile, being ahead of the last rank by so many")
    ahead_backward = given(
        seconds, "backward passes that it does between its last forward pass and the gradient of that one"
    )
    weight_gradient = given(seconds, "gradient of the weights in its first chunk")
    late = given(count, "gradients of weights that wait on it")
    all_forward_first = given(count, "1 where every forward pass comes before any backward one")

    filling = equation(seconds, largest(0, after - ahead_forward), "wait for the first gradient")
    draining = equation(
        seconds,
        select(all_forward_first > 0, 0, largest(0, after - ahead_backward)),
        "wait for the last gradient",
    )
    ending = equation(
        seconds,
        largest(0, before_gradient - (late + 1) * weight_gradient),
        "from its last gradient of inputs on, what the ranks before take beyond its gradients of weights",
    )
    bound = equation(
        seconds,
        before_forward + filling + own + draining + ending,
        "what the rank makes of the step",
        source="an event simulator",
    )


class UnequalChunks(Chapter):
    """Interleaved and breadth-first schedules, and zero-bubble ones on stages in a line; ranks between first and last are alike.

    Among these the bound of a rank is convex in its position, so that only the first and the last of them can be the longest.
    """

    groups = part(Groups, shared=True)
    pp, schedule, m, g = groups.pp, groups.schedule, groups.micro_batches, groups.whole_group
    virtual_stages = given(count, "chunks of layers on a rank (v)", SCHEDULE, owner="layout")
    v = virtual_stages
    first_chunk = given(count, "layers of the first chunk of all")
    chunk_of_first = given(count, "layers of another chunk of the first rank")
    chunk_of_middle = given(count, "layers of a chunk of a rank between")
    chunk_of_last = given(count, "layers of a chunk of the last rank, the last of all apart")
    last_chunk = given(count, "layers of the last chunk of all")
    forward = given(seconds, "forward of a micro-batch in a layer (F)")
    input_gradient = given(seconds, "gradient of the layer's inputs (I)")
    weight_gradient = given(seconds, "gradient of the layer's weights (W)")
    head_forward = given(seconds, "forward of a micro-batch in the head")
    head_input_gradient = given(seconds, "gradient of its inputs, and the loss")
    head_weight_gradient = given(seconds, "gradient of its weights")

    split = equation(
        count,
        by_schedule(schedule, {("interleaved", "breadth-first"): 0}, others=1),
        "1 where gradients of weights wait, 0 where they are part of what the stage before waits for",
    )
    depth = equation(
        count,
        by_schedule(schedule, {("interleaved", "zb-h2"): 2, "breadth-first": 0}, others=1),
        "forward passes that a rank is ahead of the next, and gradients of weights that wait on that one more",
        source="Megatron-LM's warm-up counts; Qi et al. 2024",
    )
    forward_first = equation(
        count, by_schedule(schedule, {"breadth-first": 1}, others=0), "1 where every forward pass comes first"
    )
    late_depth = equation(count, split * depth, "of these gradients of weights, for each rank before")
    late = equation(seconds, split * weight_gradient, "of a layer, what waits (W)")
    waited = equation(seconds, forward + input_gradient + weight_gradient - late, "of a layer, what others wait for")
    back = equation(seconds, waited - forward, "of this, backward (B)")
    layer = equation(seconds, waited + late, "a micro-batch in a layer")
    final_late = equation(
        seconds, last_chunk * late + split * head_weight_gradient, "of the last chunk of all, what waits"
    )
    final_waited = equation(
        seconds,
        last_chunk * waited + head_forward + head_input_gradient + (1 - split) * head_weight_gradient,
        "of the last chunk of all, what others wait for",
    )

    # What a rank does for a micro-batch, in all of its chunks
    between = equation(count, largest(0, pp - 2), "ranks between first and last")
    on_first = equation(seconds, (first_chunk + (v - 1) * chunk_of_first) * layer, "on the first rank")
    on_middle = equation(seconds, select(pp > 2, v * chunk_of_middle * layer, 0), "on each rank between")
    on_last = equation(seconds, (v - 1) * chunk_of_last * layer + final_waited + final_late, "on the last rank")
    on_all = equation(seconds, on_first + between * on_middle + on_last, "on all ranks")
    heaviest = equation(seconds, largest(on_first, on_middle, on_last), "on the slowest rank")

    ahead = equation(count, depth * (pp - 1), "forward passes that the first rank is ahead of the last")
    ragged = equation(
        count, (v - 1) * (g - groups.last_group), "backward passes more at the end, where the last group is smaller"
    )
    ahead_layers = equation(
        count,
        select(
            v > 1,
            smallest(ahead, g - 1) * chunk_of_first + largest(0, ahead - g + 1) * first_chunk,
            ahead * first_chunk,
        ),
        "layers of these: of its last chunk as far as the group goes, then of its first one",
    )
    once_around = equation(
        count,
        between * chunk_of_middle + chunk_of_last,
        "layers of a chunk of each other rank, from the first rank back to it",
    )
    wrapping = equation(
        seconds,
        select(
            forward_first > 0,
            largest(0, once_around - (g - 1) * first_chunk) * forward
            + largest(0, once_around * back - (g - 1) * first_chunk * (back + late)),
            0,
        ),
        "wait of the first rank for its second chunk, and at the end for its first one, which is lighter than the others; breadth-first",
    )
    first = part(
        RankBound,
        before_forward=wrapping,
        before_gradient=first_chunk * late,
        after=between * chunk_of_middle * waited + final_waited,
        own=m * on_first,
        ahead_forward=ahead_layers * forward,
        ahead_backward=(ahead_layers + ragged * chunk_of_first) * (back + late),
        weight_gradient=first_chunk * late,
        late=0,
        all_forward_first=forward_first,
    )
    second = part(
        RankBound,
        before_forward=first_chunk * forward,
        before_gradient=first_chunk * (back + late),
        after=(between - 1) * chunk_of_middle * waited + final_waited,
        own=m * on_middle,
        ahead_forward=depth * between * chunk_of_middle * forward,
        ahead_backward=(depth * between + ragged) * chunk_of_middle * (back + late),
        weight_gradient=chunk_of_middle * late,
        late=late_depth,
        all_forward_first=forward_first,
    )
    next_to_last = part(
        RankBound,
        before_forward=(first_chunk + (between - 1) * chunk_of_middle) * forward,
        before_gradient=(first_chunk + (between - 1) * chunk_of_middle) * back + first_chunk * late,
        after=final_waited,
        own=m * on_middle,
        ahead_forward=depth * chunk_of_middle * forward,
        ahead_backward=(depth + ragged) * chunk_of_middle * (back + late),
        weight_gradient=chunk_of_middle * late,
        late=late_depth * between,
        all_forward_first=forward_first,
    )
    last = part(
        RankBound,
        before_forward=(first_chunk + between * chunk_of_middle) * forward,
        before_gradient=(first_chunk + between * chunk_of_middle) * back + first_chunk * late,
        after=0,
        own=m * on_last,
        ahead_forward=0,
        ahead_backward=0,
        weight_gradient=select(v > 1, chunk_of_last * late, final_late),
        late=late_depth * (pp - 1),
        all_forward_first=forward_first,
    )
    single = equation(
        seconds,
        largest(first.bound, last.bound, select(pp > 2, largest(second.bound, next_to_last.bound), 0)),
        "what the slowest rank makes of the step",
    )

    turns = equation(count, ceil_divide(m, g) - 1, "groups but one")
    late_on_last = equation(count, late_depth * (pp - 1), "gradients of weights that wait on the last rank")
    heavy = equation(
        seconds,
        m * final_waited
        + turns * late_on_last * chunk_of_last * late
        + (m - (turns + 1) * (late_on_last + 1)) * final_late,
        "what the last rank does until each group has left the last chunk of all",
    )
    left_over = equation(
        seconds,
        ragged * chunk_of_last * back,
        "backward passes that a smaller last group leaves it of the group before",
    )
    beside_chunk = equation(
        count, select(pp > 2, chunk_of_middle, chunk_of_first), "layers of a chunk of the rank before the last"
    )
    beside_first = equation(count, select(pp > 2, chunk_of_middle, first_chunk), "layers of its first chunk")
    beside = part(
        TurnsBound,
        v=v,
        group=g,
        last_group=groups.last_group,
        turns=turns,
        heavy=heavy,
        left_over=left_over,
        before_forward=select(pp > 2, next_to_last.before_forward, 0),
        ending=select(pp > 2, next_to_last.ending, 0),
        hops=beside_chunk * waited,
        chunk=beside_chunk * layer,
        lighter=(beside_chunk - beside_first) * layer,
        first_forward=beside_first * forward,
        first_backward=beside_first * (back + late),
        forward=beside_chunk * forward,
        backward=beside_chunk * (back + late),
        weight_gradient=beside_chunk * late,
        last_rank_chunk=chunk_of_last * layer,
        last_rank_late=chunk_of_last * waited + final_late,
        waits=late_on_last,
        ahead=depth,
        wraps=0,
    )
    around = part(
        TurnsBound,
        v=v,
        group=g,
        last_group=groups.last_group,
        turns=turns,
        heavy=heavy,
        left_over=left_over,
        before_forward=0,
        ending=0,
        hops=(chunk_of_first + between * chunk_of_middle) * waited,
        chunk=chunk_of_first * layer,
        lighter=(chunk_of_first - first_chunk) * layer,
        first_forward=first_chunk * forward,
        first_backward=first_chunk * (back + late),
        forward=chunk_of_first * forward,
        backward=chunk_of_first * (back + late),
        weight_gradient=chunk_of_first * late,
        last_rank_chunk=chunk_of_last * layer,
        last_rank_late=chunk_of_last * waited + final_late,
        waits=late_on_last,
        ahead=ahead,
        wraps=1,
    )
    step = equation(
        seconds,
        largest(
            single,
            select(v > 1, largest(beside.bound, around.bound), 0),
        ),
        "a step without messages",
        valid="interleaved: groups of pp or more, the last one too; breadth-first, zb-h1: m >= p; zb-h2: m >= 2p - 1",
        source="an event simulator",
        approximate="never high. Low, over the splits and heads of models that were tried, at the median, in nine cases of ten and at "
        "most: breadth-first and zb-h2 by nothing, zb-h1 by 0, 0 and 0.8 % of a step, interleaved by 0, 0 and 5.3 %, interleaved-zb by "
        "0, 2 and 5.5 %; where the last group is smaller interleaved by 0, 0.6 and 7.8 %, interleaved-zb by 0, 3 and 11.2 %",
    )
    known = equation(
        count,
        by_schedule(
            schedule,
            {
                ("interleaved", "interleaved-zb"): holds(both(g >= pp, first_chunk <= chunk_of_first)),
                "breadth-first": holds(both(m >= pp, first_chunk <= chunk_of_first)),
                "zb-1p": 1,
                "zb-h1": holds(m >= pp),
                "zb-h2": holds(m >= 2 * pp - 1),
            },
            others=0,
        ),
        "1 where this form holds: the first chunk of all may be the lightest of its rank, not the heaviest",
    )
    gaps = equation(
        count,
        select(on_all > heaviest, (step - m * heaviest) / (on_all - heaviest), 0),
        "idle time of the slowest rank, in micro-batches of each other rank",
    )
