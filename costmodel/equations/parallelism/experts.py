"""Expert parallelism: how many rows reach the experts of a rank, what the way there and back costs, what is kept of it."""

from costmodel.equations.axes import DISPATCH, EXPERT_OVERLAP
from costmodel.equations.parallelism.expert_grid import ExpertGrid
from costmodel.equations.parallelism.layout import Layout
from costmodel.symbolic import (
    Chapter,
    bytes_,
    ceil_divide,
    choice,
    choose,
    count,
    equation,
    given,
    part,
    seconds,
    select,
    smallest,
)


class ExpertLoad(Chapter):
    """The rows that one micro-batch brings to the experts of a rank, on the busiest rank."""

    tokens = given(count, "tokens of a micro-batch on a rank")
    sequence_split = given(count, "ranks that share what lies between the products")
    grid = part(ExpertGrid, shared=True)
    expert_imbalance = given(count, "rows of the busiest rank over those of the mean one", owner="workload")
    expert_capacity = given(
        count, "the same, at most: what exceeds it is dropped; 0 where no token is", owner="workload"
    )
    expert_row_tile = given(count, "rows of an expert are filled up to a multiple of this", owner="assumption")

    busiest = equation(
        count,
        smallest(select(expert_capacity > 0, smallest(expert_imbalance, expert_capacity), expert_imbalance), grid.ep),
        "load of the busiest rank over the mean; one rank alone has all rows, and no rank has more",
        source="Lepikhin et al. 2020, arXiv 2006.16668, section 2.2: expert capacity",
    )
    routed_tokens = equation(count, tokens / sequence_split, "tokens that a rank sends to experts")
    rows_on_rank = equation(
        count,
        routed_tokens * grid.experts_per_token * grid.etp * busiest,
        "rows that the experts of the busiest rank multiply: a token counts once for each of its experts",
    )
    rows_of_expert = equation(
        count,
        select(
            grid.experts > 0,
            ceil_divide(rows_on_rank / grid.local_experts, expert_row_tile) * expert_row_tile,
            0,
        ),
        "rows of one expert, filled up to whole tiles",
    )


class ExpertPayloads(Chapter):
    """What routed experts of a layer and a stage exchange, on one rank."""

    layout = part(Layout, shared=True)
    load = part(ExpertLoad, shared=True)
    gradient_wire_bytes = given(bytes_, "a gradient as it is exchanged", owner="assumption")
    dispatch_bytes = given(bytes_, "a feature of a token on its way to an expert", owner="workload")
    combine_bytes = given(bytes_, "a feature of a result on its way back", owner="workload")
    expert_groups = given(count, "groups of experts, of which the router takes some for a token", owner="model")
    groups_per_token = given(count, "of these, those that it takes", owner="model")

    sent_tokens = equation(count, load.routed_tokens * load.busiest, "tokens of a rank, as many as reach the busiest")
    dispatched_token = equation(bytes_, layout.expert_width * dispatch_bytes, "a token on its way to an expert")
    combined_token = equation(bytes_, layout.expert_width * combine_bytes, "its result on the way back")
    gathered_rows = equation(
        bytes_,
        load.rows_on_rank * layout.expert_width * layout.element_size,
        "rows that the ranks which share an expert gather",
    )
    expert_weights_layer = equation(bytes_, layout.layer_experts * layout.element_size, "weights of the average layer")
    expert_gradients_layer = equation(bytes_, layout.layer_experts * gradient_wire_bytes, "their gradients")
    expert_weights_stage = equation(bytes_, layout.heaviest_experts * layout.element_size, "weights of a stage")
    expert_gradients_stage = equation(bytes_, layout.heaviest_experts * gradient_wire_bytes, "their gradients")


class ExpertParallel(Chapter):
    """Dispatch of tokens to their experts and the way back (combine), for one layer of experts and micro-batch.

    What hides of it does so behind the shared experts, or behind the work of another micro-batch.
    """

    ep_overlap = choice(EXPERT_OVERLAP, "what the exchanges of experts hide behind")
    expert_share = given(count, "share of layers with experts")
    dispatch = given(seconds, "tokens to their experts, at the precision of the way there")
    combine = given(seconds, "results to their tokens, at the precision of the way back")
    gather = given(seconds, "rows of an expert among the ranks that share its features; nothing where none do")
    scatter = given(seconds, "their results, summed and scattered")
    shared_forward = given(seconds, "products of the shared experts, forward")
    shared_backward = given(seconds, "the same, backward")
    forward_compute = given(seconds, "of a layer and micro-batch")
    backward_compute = given(seconds, "of a layer and micro-batch")
    hidden_share = given(count, "share that really hides of what can", owner="assumption")
    expert_path_factor = given(
        count,
        "time of sorting, casts and exchanges of experts over that of separate kernels; 1 where they are separate",
        owner="assumption",
    )

    exchange_forward = equation(
        seconds, expert_share * expert_path_factor * (dispatch + combine), "there and back, of the average layer"
    )
    exchange_backward = equation(
        seconds,
        expert_share * expert_path_factor * 2 * combine,
        "gradients take both ways at the precision of the way back",
        source="DeepSeek-V3 technical report 2024, section 3.3",
    )
    rows_exchange = equation(
        seconds, expert_share * (gather + scatter), "among the ranks that share an expert, each way"
    )
    forward = equation(seconds, exchange_forward + rows_exchange, "of the average layer, forward")
    backward = equation(seconds, exchange_backward + rows_exchange, "of the average layer, backward")
    behind_forward = equation(
        seconds,
        choose(ep_overlap, {"none": 0, "shared": expert_share * shared_forward, "micro-batch": forward_compute}),
        "what the exchanges can hide behind, forward",
    )
    behind_backward = equation(
        seconds,
        choose(ep_overlap, {"none": 0, "shared": expert_share * shared_backward, "micro-batch": backward_compute}),
        "what the exchanges can hide behind, backward",
    )
    exposed_forward = equation(
        seconds, forward - hidden_share * smallest(forward, behind_forward), "what shows of them, forward"
    )
    exposed_backward = equation(
        seconds, backward - hidden_share * smallest(backward, behind_backward), "what shows of them, backward"
    )


class KeptExperts(Chapter):
    """What a layer of experts keeps for its backward pass beside what every layer keeps, on one rank, for one micro-batch."""

    load = part(ExpertLoad, shared=True)
    grid = part(ExpertGrid, shared=True)
    element_size = given(bytes_, "an element of activations and weights in compute", owner="workload")
    dispatch_by = choice(DISPATCH, "of what a token is sent one copy to")
    router_bytes = given(bytes_, "a token and expert: logits and probabilities of the router", owner="assumption")
    row_copies = given(
        count,
        "copies of a row that are kept where each expert is sent one: what its first product reads",
        owner="assumption",
    )
    fused_row_copies = given(count, "the same where sending and sorting are one kernel", owner="assumption")
    weighing_copies = given(
        count,
        "further copies of a plain activation's output, where the router's weight multiplies it in a kernel of its own",
        owner="assumption",
    )

    copies = equation(
        count,
        choose(dispatch_by, {"expert": row_copies, "rank": fused_row_copies, "node": fused_row_copies}),
        "copies of a row that are kept",
        source="Megatron-core's token dispatchers: exchanges and sorting keep indices, no rows",
    )
    kept_rows = equation(
        bytes_,
        load.rows_on_rank * copies * grid.expert_width * element_size,
        "inputs of experts, whole on each of the ranks that share one's features",
    )
    kept_weighed = equation(
        bytes_,
        load.rows_on_rank * (1 - grid.gated_ffn) * weighing_copies * grid.expert_ffn_size / grid.etp * element_size,
        "outputs of plain activations before the router's weight",
        source="Megatron-core: the weighted SwiGLU is one kernel, the weighted GELU is not",
    )
    kept_features = equation(
        bytes_,
        load.rows_on_rank * (2 + grid.gated_ffn) * grid.expert_ffn_size / grid.etp * element_size + kept_weighed,
        "inputs and output of the activation of routed experts, before and after the router's weight",
    )
    kept_products = equation(
        bytes_,
        load.rows_on_rank * grid.expert_ffn_size / grid.etp * element_size + kept_weighed,
        "of this, the output of the activation",
    )
    kept_router = equation(bytes_, load.routed_tokens * grid.experts * router_bytes, "logits and probabilities")


class RoutedTraffic(Chapter):
    """The exchanges of experts of the average layer, none where the model has no experts."""

    grid = part(ExpertGrid, shared=True)
    forward = given(seconds, "of a layer and micro-batch, forward")
    backward = given(seconds, "the same, backward")
    exposed_forward = given(seconds, "what shows of them, forward")
    exposed_backward = given(seconds, "what shows of them, backward")

    ep_forward = equation(seconds, select(grid.experts > 0, forward, 0), "exchanges of experts, forward")
    ep_backward = equation(seconds, select(grid.experts > 0, backward, 0), "the same, backward")
    ep_exposed_forward = equation(
        seconds, select(grid.experts > 0, exposed_forward, 0), "exchanges of experts that show, forward"
    )
    ep_exposed_backward = equation(seconds, select(grid.experts > 0, exposed_backward, 0), "the same, backward")
