"""A training step with its groups of ranks placed on a machine: on switches, or on the axes of a torus."""

from typing import Any

from costmodel.equations.collectives.fabric import SwitchFabric, TorusFabric
from costmodel.equations.collectives.group_on_switches import SwitchGroup
from costmodel.equations.collectives.group_on_torus import TorusGroup
from costmodel.equations.parallelism.context import ContextPayloads
from costmodel.equations.parallelism.layout import Layout
from costmodel.equations.training import Step
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
from costmodel.symbolic.system import View


def communicating(
    along_tp: View,
    kv_block: View,
    kv_gradient_block: View,
    gathered_kv: View,
    gathered_kv_gradient: View,
    heads_in: View,
    heads_out: View,
    weights_of_layer: View,
    gradients_of_layer: View,
    weights_of_stage: View,
    gradients_of_stage: View,
    along_pp: View,
) -> Any:
    """The step, its communication taking what collectives of these groups and payloads take."""
    return part(
        Step,
        shared=True,
        tp_all_gather=along_tp.all_gather,
        tp_reduce_scatter=along_tp.reduce_scatter,
        tp_all_reduce=along_tp.all_reduce,
        cp_send=kv_block.send_recv,
        cp_send_gradient=kv_gradient_block.send_recv,
        cp_all_gather=gathered_kv.all_gather,
        cp_reduce_scatter=gathered_kv_gradient.reduce_scatter,
        cp_exchange_in=heads_in.all_to_all,
        cp_exchange_out=heads_out.all_to_all,
        dp_gather_layer=weights_of_layer.all_gather,
        dp_scatter_layer=gradients_of_layer.reduce_scatter,
        dp_all_gather=weights_of_stage.all_gather,
        dp_reduce_scatter=gradients_of_stage.reduce_scatter,
        dp_all_reduce=gradients_of_stage.all_reduce,
        pp_send=along_pp.send_recv,
    )


class OnSwitches(Chapter):
    """A step on chips behind switches: NVLink domains, scalable units, a spine."""

    layout = part(Layout, shared=True)
    context = part(ContextPayloads, shared=True)
    tp, cp, pp, replicas = layout.tp, layout.cp, layout.pp, layout.replicas
    domain_tp = column(count, "tensor-parallel ranks of a group in one fast domain")
    domain_cp = column(count, "context-parallel ranks of a group in one fast domain")
    domain_pp = column(count, "pipeline stages of a group in one fast domain")
    domain_dp = column(count, "data-parallel ranks of a group in one fast domain")
    unit_tp = column(count, "tensor-parallel ranks of a group in one scalable unit")
    unit_cp = column(count, "context-parallel ranks of a group in one scalable unit")
    unit_pp = column(count, "pipeline stages of a group in one scalable unit")
    unit_dp = column(count, "data-parallel ranks of a group in one scalable unit")
    gradient_wire_bytes = given(bytes_, "a gradient as it is exchanged", owner="assumption")

    fabric = part(SwitchFabric, shared=True)

    ulysses_ranks, ring_ranks = layout.ulysses_ranks, layout.ring_ranks
    domain_ulysses = equation(count, smallest(ulysses_ranks, domain_cp), "ranks that exchange heads in one fast domain")
    unit_ulysses = equation(count, smallest(ulysses_ranks, unit_cp), "ranks that exchange heads in one scalable unit")
    domain_ring = equation(count, largest(domain_cp / ulysses_ranks, 1), "groups of the ring in one fast domain")
    unit_ring = equation(count, largest(unit_cp / ulysses_ranks, 1), "groups of the ring in one scalable unit")
    domain_replicas = equation(
        count,
        domain_cp * domain_dp,
        "ranks with the same weights in one fast domain",
        source="counted over orders of four axes",
        valid="domains hold whole groups, or groups whole domains",
    )
    unit_replicas = equation(count, unit_cp * unit_dp, "ranks with the same weights in one scalable unit")

    along_tp = part(SwitchGroup, n=tp, m=domain_tp, u=unit_tp, S=layout.hidden_state_bytes)
    kv_block = part(SwitchGroup, n=ring_ranks, m=domain_ring, u=unit_ring, S=context.kv_block)
    kv_gradient_block = part(SwitchGroup, n=ring_ranks, m=domain_ring, u=unit_ring, S=context.kv_gradient_block)
    gathered_kv = part(SwitchGroup, n=cp, m=domain_cp, u=unit_cp, S=context.gathered_kv)
    gathered_kv_gradient = part(SwitchGroup, n=cp, m=domain_cp, u=unit_cp, S=context.gathered_kv_gradient)
    heads_in = part(SwitchGroup, n=ulysses_ranks, m=domain_ulysses, u=unit_ulysses, S=context.exchanged_in)
    heads_out = part(SwitchGroup, n=ulysses_ranks, m=domain_ulysses, u=unit_ulysses, S=context.exchanged_out)
    weights_of_layer = part(
        SwitchGroup,
        n=replicas,
        m=domain_replicas,
        u=unit_replicas,
        S=layout.layer_parameters * layout.element_size,
    )
    gradients_of_layer = part(
        SwitchGroup, n=replicas, m=domain_replicas, u=unit_replicas, S=layout.layer_parameters * gradient_wire_bytes
    )
    weights_of_stage = part(
        SwitchGroup,
        n=replicas,
        m=domain_replicas,
        u=unit_replicas,
        S=layout.heaviest_stage * layout.element_size,
    )
    gradients_of_stage = part(
        SwitchGroup,
        n=replicas,
        m=domain_replicas,
        u=unit_replicas,
        S=layout.heaviest_stage * gradient_wire_bytes,
    )
    along_pp = part(SwitchGroup, n=pp, m=domain_pp, u=unit_pp, S=layout.hidden_state_bytes / layout.sequence_split)
    step = communicating(
        along_tp,
        kv_block,
        kv_gradient_block,
        gathered_kv,
        gathered_kv_gradient,
        heads_in,
        heads_out,
        weights_of_layer,
        gradients_of_layer,
        weights_of_stage,
        gradients_of_stage,
        along_pp,
    )
    worth = part(Utilisation, shared=True)


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
    # Context-parallel ranks that exchange heads are the inner ones, and fill axis after axis; the ring takes what is left.
    ulysses_x = equation(
        count,
        smallest(layout.ulysses_ranks, cp_x),
        "ranks that exchange heads along X",
        valid="powers of two, or one of u and r is 1",
    )
    ulysses_y = equation(count, smallest(layout.ulysses_ranks / ulysses_x, cp_y), "ranks that exchange heads along Y")
    ulysses_z = equation(
        count, smallest(layout.ulysses_ranks / (ulysses_x * ulysses_y), cp_z), "ranks that exchange heads along Z"
    )
    ulysses_slices = equation(
        count, layout.ulysses_ranks / (ulysses_x * ulysses_y * ulysses_z), "slices that ranks which exchange heads span"
    )
    round_x, round_y, round_z = (
        equation(count, c / u, f"groups of the ring along {a}")
        for a, c, u in (("X", cp_x, ulysses_x), ("Y", cp_y, ulysses_y), ("Z", cp_z, ulysses_z))
    )
    round_slices = equation(count, cp_slices / ulysses_slices, "slices that the ring spans")
    round_stride_x, round_stride_y, round_stride_z = (
        equation(count, select(r > 1, u * stride, 1), f"chips from one group to the next along {a}")
        for a, r, u, stride in (
            ("X", round_x, ulysses_x, cp_stride_x),
            ("Y", round_y, ulysses_y, cp_stride_y),
            ("Z", round_z, ulysses_z, cp_stride_z),
        )
    )
    round_ring_x, round_ring_y, round_ring_z = (
        equation(count, select(r > 1, closes, 0), f"1 when the groups along {a} close to a ring")
        for a, r, closes in (("X", round_x, cp_ring_x), ("Y", round_y, cp_ring_y), ("Z", round_z, cp_ring_z))
    )
    ulysses_stride_x, ulysses_stride_y, ulysses_stride_z = (
        equation(count, select(u > 1, stride, 1), f"chips from one rank that exchanges heads to the next along {a}")
        for a, u, stride in (
            ("X", ulysses_x, cp_stride_x),
            ("Y", ulysses_y, cp_stride_y),
            ("Z", ulysses_z, cp_stride_z),
        )
    )
    ulysses_ring_x, ulysses_ring_y, ulysses_ring_z = (
        equation(count, select(u >= c, closes, 0), f"1 when those along {a} close to a ring")
        for a, u, c, closes in (
            ("X", ulysses_x, cp_x, cp_ring_x),
            ("Y", ulysses_y, cp_y, cp_ring_y),
            ("Z", ulysses_z, cp_z, cp_ring_z),
        )
    )

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
    on_ulysses = {
        "size_x": ulysses_x,
        "size_y": ulysses_y,
        "size_z": ulysses_z,
        "stride_x": ulysses_stride_x,
        "stride_y": ulysses_stride_y,
        "stride_z": ulysses_stride_z,
        "ring_x": ulysses_ring_x,
        "ring_y": ulysses_ring_y,
        "ring_z": ulysses_ring_z,
        "slices": ulysses_slices,
    }
    on_ring = {
        "size_x": round_x,
        "size_y": round_y,
        "size_z": round_z,
        "stride_x": round_stride_x,
        "stride_y": round_stride_y,
        "stride_z": round_stride_z,
        "ring_x": round_ring_x,
        "ring_y": round_ring_y,
        "ring_z": round_ring_z,
        "slices": round_slices,
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
    fabric = part(TorusFabric, shared=True)
    along_tp = part(TorusGroup, **on_tp, S=layout.hidden_state_bytes)
    kv_block = part(TorusGroup, **on_ring, S=context.kv_block)
    kv_gradient_block = part(TorusGroup, **on_ring, S=context.kv_gradient_block)
    gathered_kv = part(TorusGroup, **on_cp, S=context.gathered_kv)
    gathered_kv_gradient = part(TorusGroup, **on_cp, S=context.gathered_kv_gradient)
    heads_in = part(TorusGroup, **on_ulysses, S=context.exchanged_in)
    heads_out = part(TorusGroup, **on_ulysses, S=context.exchanged_out)
    weights_of_layer = part(TorusGroup, **on_replicas, S=layout.layer_parameters * layout.element_size)
    gradients_of_layer = part(TorusGroup, **on_replicas, S=layout.layer_parameters * gradient_wire_bytes)
    weights_of_stage = part(TorusGroup, **on_replicas, S=layout.heaviest_stage * layout.element_size)
    gradients_of_stage = part(TorusGroup, **on_replicas, S=layout.heaviest_stage * gradient_wire_bytes)
    along_pp = part(TorusGroup, **on_pp, S=layout.hidden_state_bytes / layout.sequence_split)
    step = communicating(
        along_tp,
        kv_block,
        kv_gradient_block,
        gathered_kv,
        gathered_kv_gradient,
        heads_in,
        heads_out,
        weights_of_layer,
        gradients_of_layer,
        weights_of_stage,
        gradients_of_stage,
        along_pp,
    )
    worth = part(Utilisation, shared=True)
