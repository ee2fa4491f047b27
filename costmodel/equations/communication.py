"""What a training step sends, by the collectives of the groups of ranks that send it."""

from dataclasses import dataclass
from typing import Any

from costmodel.equations.axes import STAGE
from costmodel.equations.step_items import StepItems
from costmodel.symbolic import part, select, worst
from costmodel.symbolic.nodes import Expression
from costmodel.symbolic.system import View


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of ranks of a step, each with a payload: its collectives by name."""

    along_tp: View
    kv_block: View
    kv_gradient_block: View
    gathered_kv: View
    gathered_kv_gradient: View
    heads_in: View
    heads_out: View
    weights_of_layer: View
    gradients_of_layer: View
    weights_of_stage: View
    gradients_of_stage: View
    shares_of_stage: View
    scattered_of_stage: View
    along_pp: View
    tokens_there: View
    tokens_back: View
    expert_rows: View
    experts_of_layer: View
    expert_gradients_of_layer: View
    experts_of_stage: View
    expert_gradients_of_stage: View
    expert_shares_of_stage: View
    scattered_experts_of_stage: View


def communicating(layout: View, groups: Groups) -> Any:
    """The step, its communication taking what the collectives of these groups take.

    Copies of routed experts are groups of their own, whose gradients and weights come after those of the other weights. The stage
    with the most experts need not be the heaviest without them: a step waits for the stage that takes longest with both, each at
    the rate of the largest of its kind.
    """
    experts = layout.experts

    def both(shared: Expression, routed: Expression) -> Expression:
        return shared + select(experts > 0, routed, 0)

    def slowest(shared: Expression, routed: Expression) -> Expression:
        return select(experts > 0, worst(layout.dense_size * shared + layout.expert_size * routed, STAGE), shared)

    return part(
        StepItems,
        shared=True,
        tp_all_gather=groups.along_tp.all_gather,
        tp_reduce_scatter=groups.along_tp.reduce_scatter,
        tp_all_reduce=groups.along_tp.all_reduce,
        cp_send=groups.kv_block.send_recv,
        cp_send_gradient=groups.kv_gradient_block.send_recv,
        cp_all_gather=groups.gathered_kv.all_gather,
        cp_reduce_scatter=groups.gathered_kv_gradient.reduce_scatter,
        cp_exchange_in=groups.heads_in.all_to_all,
        cp_exchange_out=groups.heads_out.all_to_all,
        dp_gather_layer=both(groups.weights_of_layer.all_gather, groups.experts_of_layer.all_gather),
        dp_scatter_layer=both(
            groups.gradients_of_layer.reduce_scatter, groups.expert_gradients_of_layer.reduce_scatter
        ),
        dp_all_gather=slowest(groups.weights_of_stage.all_gather, groups.experts_of_stage.all_gather),
        dp_reduce_scatter=slowest(
            groups.scattered_of_stage.reduce_scatter, groups.scattered_experts_of_stage.reduce_scatter
        ),
        dp_across=slowest(groups.shares_of_stage.all_reduce, groups.expert_shares_of_stage.all_reduce),
        dp_all_reduce=slowest(groups.gradients_of_stage.all_reduce, groups.expert_gradients_of_stage.all_reduce),
        pp_send=groups.along_pp.send_recv,
        ep_dispatch=groups.tokens_there.exchange,
        ep_combine=groups.tokens_back.exchange,
        ep_dispatch_wire=groups.tokens_there.wire,
        ep_combine_wire=groups.tokens_back.wire,
        etp_gather=groups.expert_rows.all_gather,
        etp_scatter=groups.expert_rows.reduce_scatter,
    )
