"""A training step with its groups of ranks placed on a machine: on switches, or on the axes of a torus."""

from typing import Any

from costmodel.equations.collectives.fabric import SwitchFabric, TorusFabric
from costmodel.equations.collectives.group_on_switches import SwitchGroup
from costmodel.equations.collectives.group_on_torus import TorusGroup
from costmodel.equations.parallelism.layout import Layout
from costmodel.equations.training import Step
from costmodel.equations.utilisation import Utilisation
from costmodel.symbolic import Chapter, bytes_, column, count, given, part
from costmodel.symbolic.system import View


def communicating(
    along_tp: View,
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
    tp, pp, dp = layout.tp, layout.pp, layout.dp
    domain_tp = column(count, "tensor-parallel ranks of a group in one fast domain")
    domain_pp = column(count, "pipeline stages of a group in one fast domain")
    domain_dp = column(count, "data-parallel ranks of a group in one fast domain")
    unit_tp = column(count, "tensor-parallel ranks of a group in one scalable unit")
    unit_pp = column(count, "pipeline stages of a group in one scalable unit")
    unit_dp = column(count, "data-parallel ranks of a group in one scalable unit")
    gradient_wire_bytes = given(bytes_, "a gradient as it is exchanged", owner="assumption")

    fabric = part(SwitchFabric, shared=True)
    along_tp = part(SwitchGroup, n=tp, m=domain_tp, u=unit_tp, S=layout.hidden_state_bytes)
    weights_of_layer = part(SwitchGroup, n=dp, m=domain_dp, u=unit_dp, S=layout.layer_parameters * layout.element_size)
    gradients_of_layer = part(
        SwitchGroup, n=dp, m=domain_dp, u=unit_dp, S=layout.layer_parameters * gradient_wire_bytes
    )
    weights_of_stage = part(SwitchGroup, n=dp, m=domain_dp, u=unit_dp, S=layout.heaviest_stage * layout.element_size)
    gradients_of_stage = part(SwitchGroup, n=dp, m=domain_dp, u=unit_dp, S=layout.heaviest_stage * gradient_wire_bytes)
    along_pp = part(SwitchGroup, n=pp, m=domain_pp, u=unit_pp, S=layout.hidden_state_bytes / layout.sequence_split)
    step = communicating(along_tp, weights_of_layer, gradients_of_layer, weights_of_stage, gradients_of_stage, along_pp)
    worth = part(Utilisation, shared=True)


class OnTorus(Chapter):
    """A step on TPU slices: groups along the axes of a torus, and over slices through the data-centre network."""

    layout = part(Layout, shared=True)
    tp, pp, dp = layout.tp, layout.pp, layout.dp
    tp_x, tp_y, tp_z = (column(count, f"tensor-parallel ranks along {a}") for a in "XYZ")
    pp_x, pp_y, pp_z = (column(count, f"pipeline stages along {a}") for a in "XYZ")
    dp_x, dp_y, dp_z = (column(count, f"data-parallel ranks along {a}") for a in "XYZ")
    tp_stride_x, tp_stride_y, tp_stride_z = (
        column(count, f"chips from one tensor-parallel rank to the next along {a}") for a in "XYZ"
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
    pp_ring_x, pp_ring_y, pp_ring_z = (
        column(count, f"1 when the pipeline stages along {a} close to a ring") for a in "XYZ"
    )
    dp_ring_x, dp_ring_y, dp_ring_z = (
        column(count, f"1 when the data-parallel ranks along {a} close to a ring") for a in "XYZ"
    )
    tp_slices = column(count, "slices that a tensor-parallel group spans")
    pp_slices = column(count, "slices that a pipeline spans")
    dp_slices = column(count, "slices that a data-parallel group spans")
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
    on_dp = {
        "size_x": dp_x,
        "size_y": dp_y,
        "size_z": dp_z,
        "stride_x": dp_stride_x,
        "stride_y": dp_stride_y,
        "stride_z": dp_stride_z,
        "ring_x": dp_ring_x,
        "ring_y": dp_ring_y,
        "ring_z": dp_ring_z,
        "slices": dp_slices,
    }
    fabric = part(TorusFabric, shared=True)
    along_tp = part(TorusGroup, **on_tp, S=layout.hidden_state_bytes)
    weights_of_layer = part(TorusGroup, **on_dp, S=layout.layer_parameters * layout.element_size)
    gradients_of_layer = part(TorusGroup, **on_dp, S=layout.layer_parameters * gradient_wire_bytes)
    weights_of_stage = part(TorusGroup, **on_dp, S=layout.heaviest_stage * layout.element_size)
    gradients_of_stage = part(TorusGroup, **on_dp, S=layout.heaviest_stage * gradient_wire_bytes)
    along_pp = part(TorusGroup, **on_pp, S=layout.hidden_state_bytes / layout.sequence_split)
    step = communicating(along_tp, weights_of_layer, gradients_of_layer, weights_of_stage, gradients_of_stage, along_pp)
    worth = part(Utilisation, shared=True)
