"""A training step with its groups of ranks placed on the axes of a torus."""

from costmodel.equations.collectives.fabric import TorusFabric
from costmodel.equations.collectives.filled_axes import FilledAxes, inner, meet, outer
from costmodel.equations.collectives.group_on_torus import TokensInGroupOnTorus, TorusGroup
from costmodel.equations.communication import Groups, communicating
from costmodel.equations.parallelism.context import ContextPayloads
from costmodel.equations.parallelism.experts import ExpertPayloads
from costmodel.equations.parallelism.layout import Layout
from costmodel.equations.utilisation import Utilisation
from costmodel.symbolic import (
    Chapter,
    bytes_,
    column,
    count,
    equation,
    given,
    largest,
    part,
    select,
    smallest,
)


class OnTorus(Chapter):
    """A step on TPU slices: groups along the axes of a torus, and over slices through the data-centre network."""

    layout = part(Layout, shared=True)
    context = part(ContextPayloads, shared=True)
    tp_x, tp_y, tp_z = (column(count, f"tensor-parallel ranks along {a}") for a in "XYZ")
    cp_x, cp_y, cp_z = (column(count, f"context-parallel ranks along {a}") for a in "XYZ")
    pp_x, pp_y, pp_z = (column(count, f"pipeline stages along {a}") for a in "XYZ")
    dp_x, dp_y, dp_z = (column(count, f"data-parallel ranks along {a}") for a in "XYZ")
    tp_stride_x, tp_stride_y, tp_stride_z = (
        column(count, f"chips from one tensor-parallel rank to the next along {a}") for a in "XYZ"
    )
    cp_stride_x, cp_stride_y, cp_stride_z = (
        column(count, f"chips from one context-parallel rank to the next along {a}") for a in "XYZ"
    )
    pp_stride_x, pp_stride_y, pp_stride_z = (
        column(count, f"chips from one pipeline stage to the next along {a}") for a in "XYZ"
    )
    dp_stride_x, dp_stride_y, dp_stride_z = (
        column(count, f"chips from one data-parallel rank to the next along {a}") for a in "XYZ"
    )
    tp_ring_x, tp_ring_y, tp_ring_z = (
        column(count, f"1 when the tensor-parallel ranks along {a} close to a ring") for a in "XYZ"
    )
    cp_ring_x, cp_ring_y, cp_ring_z = (
        column(count, f"1 when the context-parallel ranks along {a} close to a ring") for a in "XYZ"
    )
    pp_ring_x, pp_ring_y, pp_ring_z = (
        column(count, f"1 when the pipeline stages along {a} close to a ring") for a in "XYZ"
    )
    dp_ring_x, dp_ring_y, dp_ring_z = (
        column(count, f"1 when the data-parallel ranks along {a} close to a ring") for a in "XYZ"
    )
    tp_slices = column(count, "slices that a tensor-parallel group spans")
    cp_slices = column(count, "slices that a context-parallel group spans")
    pp_slices = column(count, "slices that a pipeline spans")
    dp_slices = column(count, "slices that a data-parallel group spans")
    # The ranks with the same weights. Along an axis cp and dp are neighbours: together they are one sub-axis with the stride
    # of the inner one, which closes to a ring when the outer one does.
    replicas_x, replicas_y, replicas_z = (
        equation(count, c * d, f"ranks with the same weights along {a}")
        for a, c, d in (("X", cp_x, dp_x), ("Y", cp_y, dp_y), ("Z", cp_z, dp_z))
    )
    replicas_stride_x, replicas_stride_y, replicas_stride_z = (
        equation(
            count,
            select(c > 1, select(d > 1, smallest(c_stride, d_stride), c_stride), d_stride),
            f"chips from one of them to the next along {a}",
            approximate="a placement that is written out may put another axis between; its ranks are then taken as beyond",
        )
        for a, c, d, c_stride, d_stride in (
            ("X", cp_x, dp_x, cp_stride_x, dp_stride_x),
            ("Y", cp_y, dp_y, cp_stride_y, dp_stride_y),
            ("Z", cp_z, dp_z, cp_stride_z, dp_stride_z),
        )
    )
    replicas_ring_x, replicas_ring_y, replicas_ring_z = (
        equation(count, largest(c, d), f"1 when they close to a ring along {a}")
        for a, c, d in (("X", cp_ring_x, dp_ring_x), ("Y", cp_ring_y, dp_ring_y), ("Z", cp_ring_z, dp_ring_z))
    )
    replicas_slices = equation(count, cp_slices * dp_slices, "slices that they span")

    # The ranks of a stage, likewise: tensor-parallel ranks and those above.
    stage_x, stage_y, stage_z = (
        equation(count, t * r, f"ranks of a stage along {a}")
        for a, t, r in (("X", tp_x, replicas_x), ("Y", tp_y, replicas_y), ("Z", tp_z, replicas_z))
    )
    stage_stride_x, stage_stride_y, stage_stride_z = (
        equation(
            count,
            select(t > 1, select(r > 1, smallest(t_stride, r_stride), t_stride), r_stride),
            f"chips from one of them to the next along {a}",
            approximate="a placement that is written out may put the pipeline between; its ranks are then taken as beyond",
        )
        for a, t, r, t_stride, r_stride in (
            ("X", tp_x, replicas_x, tp_stride_x, replicas_stride_x),
            ("Y", tp_y, replicas_y, tp_stride_y, replicas_stride_y),
            ("Z", tp_z, replicas_z, tp_stride_z, replicas_stride_z),
        )
    )
    stage_ring_x, stage_ring_y, stage_ring_z = (
        equation(count, largest(t, r), f"1 when they close to a ring along {a}")
        for a, t, r in (
            ("X", tp_ring_x, replicas_ring_x),
            ("Y", tp_ring_y, replicas_ring_y),
            ("Z", tp_ring_z, replicas_ring_z),
        )
    )
    stage_slices = equation(count, tp_slices * replicas_slices, "slices that a stage spans")
    gradient_wire_bytes = given(bytes_, "a gradient as it is exchanged", owner="assumption")

    on_tp = {
        "size_x": tp_x,
        "size_y": tp_y,
        "size_z": tp_z,
        "stride_x": tp_stride_x,
        "stride_y": tp_stride_y,
        "stride_z": tp_stride_z,
        "ring_x": tp_ring_x,
        "ring_y": tp_ring_y,
        "ring_z": tp_ring_z,
        "slices": tp_slices,
    }
    on_cp = {
        "size_x": cp_x,
        "size_y": cp_y,
        "size_z": cp_z,
        "stride_x": cp_stride_x,
        "stride_y": cp_stride_y,
        "stride_z": cp_stride_z,
        "ring_x": cp_ring_x,
        "ring_y": cp_ring_y,
        "ring_z": cp_ring_z,
        "slices": cp_slices,
    }
    on_pp = {
        "size_x": pp_x,
        "size_y": pp_y,
        "size_z": pp_z,
        "stride_x": pp_stride_x,
        "stride_y": pp_stride_y,
        "stride_z": pp_stride_z,
        "ring_x": pp_ring_x,
        "ring_y": pp_ring_y,
        "ring_z": pp_ring_z,
        "slices": pp_slices,
    }
    on_replicas = {
        "size_x": replicas_x,
        "size_y": replicas_y,
        "size_z": replicas_z,
        "stride_x": replicas_stride_x,
        "stride_y": replicas_stride_y,
        "stride_z": replicas_stride_z,
        "ring_x": replicas_ring_x,
        "ring_y": replicas_ring_y,
        "ring_z": replicas_ring_z,
        "slices": replicas_slices,
    }
    on_stage = {
        "size_x": stage_x,
        "size_y": stage_y,
        "size_z": stage_z,
        "stride_x": stage_stride_x,
        "stride_y": stage_stride_y,
        "stride_z": stage_stride_z,
        "ring_x": stage_ring_x,
        "ring_y": stage_ring_y,
        "ring_z": stage_ring_z,
        "slices": stage_slices,
    }
    # Of context-parallel ranks those that exchange heads are the inner ones; of the ranks of a stage those that share an
    # expert, then those that hold different ones.
    exchanging = part(FilledAxes, degree=layout.ulysses_ranks, **on_cp)
    slicing = part(FilledAxes, degree=layout.etp, **on_stage)
    differing = part(FilledAxes, degree=layout.ep, **outer(slicing))
    # Ranks with the same weights share them in groups of neighbours, and groups sum their shares.
    sharing = part(FilledAxes, degree=layout.sharing_ranks, **on_replicas)
    expert_sharing = part(FilledAxes, degree=layout.expert_sharing_ranks, **outer(differing))
    stage_gradient_bytes = equation(
        bytes_, layout.heaviest_stage * gradient_wire_bytes, "gradients of the heaviest stage on the wire"
    )

    fabric = part(TorusFabric, shared=True)
    along_tp = part(TorusGroup, **on_tp, S=layout.hidden_state_bytes)
    kv_block = part(TorusGroup, **outer(exchanging), S=context.kv_block)
    kv_gradient_block = part(TorusGroup, **outer(exchanging), S=context.kv_gradient_block)
    gathered_kv = part(TorusGroup, **on_cp, S=context.gathered_kv)
    gathered_kv_gradient = part(TorusGroup, **on_cp, S=context.gathered_kv_gradient)
    heads_in = part(TorusGroup, **inner(exchanging), S=context.exchanged_in)
    heads_out = part(TorusGroup, **inner(exchanging), S=context.exchanged_out)
    weights_of_layer = part(TorusGroup, **inner(sharing), S=layout.layer_parameters * layout.element_size)
    gradients_of_layer = part(TorusGroup, **inner(sharing), S=layout.layer_parameters * gradient_wire_bytes)
    weights_of_stage = part(TorusGroup, **inner(sharing), S=layout.heaviest_stage * layout.element_size)
    gradients_of_stage = part(TorusGroup, **on_replicas, S=stage_gradient_bytes)
    scattered_of_stage = part(TorusGroup, **inner(sharing), S=stage_gradient_bytes)
    shares_of_stage = part(TorusGroup, **outer(sharing), S=stage_gradient_bytes / layout.sharing_ranks)
    exchanged = part(ExpertPayloads, shared=True)
    to_experts = {"tokens": exchanged.sent_tokens, "chosen": layout.experts_per_token, **inner(differing)}
    tokens_there = part(TokensInGroupOnTorus, **to_experts, token_bytes=exchanged.dispatched_token)
    tokens_back = part(TokensInGroupOnTorus, **to_experts, token_bytes=exchanged.combined_token)
    expert_rows = part(TorusGroup, **inner(slicing), S=exchanged.gathered_rows)
    experts_of_layer = part(TorusGroup, **inner(expert_sharing), S=exchanged.expert_weights_layer)
    expert_gradients_of_layer = part(TorusGroup, **inner(expert_sharing), S=exchanged.expert_gradients_layer)
    experts_of_stage = part(TorusGroup, **inner(expert_sharing), S=exchanged.expert_weights_stage)
    expert_gradients_of_stage = part(TorusGroup, **outer(differing), S=exchanged.expert_gradients_stage)
    scattered_experts_of_stage = part(TorusGroup, **inner(expert_sharing), S=exchanged.expert_gradients_stage)
    expert_shares_of_stage = part(
        TorusGroup, **outer(expert_sharing), S=exchanged.expert_gradients_stage / layout.expert_sharing_ranks
    )
    along_pp = part(TorusGroup, **on_pp, S=layout.hidden_state_bytes / layout.sequence_split)
    # Groups share links where both spread along an axis, or over slices.
    tp_shares_links, cp_shares_links, ep_shares_links = (
        equation(
            count,
            meet(group, inner(sharing)),
            f"1 where {axis} traffic takes the links on which weights are shared",
        )
        for axis, group, sharing in (
            ("tensor-parallel", on_tp, sharing),
            ("context-parallel", on_cp, sharing),
            ("experts'", inner(differing), sharing),
        )
    )
    tp_shares_across, cp_shares_across, ep_shares_across = (
        equation(
            count,
            meet(group, outer(sharing)),
            f"1 where {axis} traffic takes the links on which groups sum their shares",
        )
        for axis, group, sharing in (
            ("tensor-parallel", on_tp, sharing),
            ("context-parallel", on_cp, sharing),
            ("experts'", inner(differing), sharing),
        )
    )
    fsdp_shares_across = equation(
        count,
        meet(inner(sharing), outer(sharing)),
        "1 where traffic of groups that share weights takes the links on which they sum their shares",
    )
    step = communicating(
        layout,
        Groups(
            along_tp=along_tp,
            kv_block=kv_block,
            kv_gradient_block=kv_gradient_block,
            gathered_kv=gathered_kv,
            gathered_kv_gradient=gathered_kv_gradient,
            heads_in=heads_in,
            heads_out=heads_out,
            weights_of_layer=weights_of_layer,
            gradients_of_layer=gradients_of_layer,
            weights_of_stage=weights_of_stage,
            gradients_of_stage=gradients_of_stage,
            shares_of_stage=shares_of_stage,
            scattered_of_stage=scattered_of_stage,
            along_pp=along_pp,
            tokens_there=tokens_there,
            tokens_back=tokens_back,
            expert_rows=expert_rows,
            experts_of_layer=experts_of_layer,
            expert_gradients_of_layer=expert_gradients_of_layer,
            experts_of_stage=experts_of_stage,
            expert_gradients_of_stage=expert_gradients_of_stage,
            expert_shares_of_stage=expert_shares_of_stage,
            scattered_experts_of_stage=scattered_experts_of_stage,
        ),
    )
    worth = part(Utilisation, shared=True)
