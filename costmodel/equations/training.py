"""One training step of a dense decoder: its time item by item, its memory, and what bounds it.

`Step` takes the times of the collectives as inputs. `TrainingOnSwitches` and `TrainingOnTorus` are the same step with the
groups of ranks placed on NVLink domains, rails and spines, or on the axes of a torus.
"""

from costmodel.equations.axes import MATMUL, PART, STAGE
from costmodel.equations.collectives.group_on_switches import SwitchGroup
from costmodel.equations.collectives.group_on_torus import TorusGroup
from costmodel.equations.kernels.attention import Attention
from costmodel.equations.kernels.elementwise import Elementwise, LossTraffic, OptimizerTraffic
from costmodel.equations.kernels.matmul import LayerMatmuls, Matmul
from costmodel.equations.memory import Memory
from costmodel.equations.model.flops import Flops, Windows
from costmodel.equations.parallelism.data import FullySharded, GradientSync
from costmodel.equations.parallelism.layout import Layout
from costmodel.equations.parallelism.legality import Legality
from costmodel.equations.parallelism.pipeline import Pipeline
from costmodel.equations.parallelism.tensor import TensorParallel
from costmodel.symbolic import (
    FLOP,
    Chapter,
    bytes_,
    choose,
    column,
    count,
    equation,
    flop,
    flop_per_second,
    given,
    largest,
    part,
    per_second,
    row,
    rows,
    seconds,
    select,
    total,
    worst,
)


class LayerCompute(Chapter):
    """Kernels of one decoder layer and of the loss on one rank, for one micro-batch, without communication."""

    layout = part(Layout, shared=True)
    tp, tokens = layout.tp, layout.tokens
    windows = part(Windows, shared=True)
    sliding_share = equation(count, windows.sliding_layers / windows.attention_layers, "share of the layers that slide")
    products = part(LayerMatmuls, tokens=tokens, tp=tp, ffn_inputs=1 + layout.gated_ffn)
    core = part(
        Attention,
        sequences=layout.micro_batch_size,
        attention_heads=layout.heads / tp,
        window=layout.sequence_length,
    )
    sliding_core = part(
        Attention,
        sequences=layout.micro_batch_size,
        attention_heads=layout.heads / tp,
        window=select(windows.window > 0, windows.window, layout.sequence_length),
    )
    between = part(Elementwise, tokens=tokens, tp=tp, sequence_split=layout.sequence_split)
    head = part(
        Matmul,
        M=rows(PART, {"forward": tokens, "input_gradient": tokens, "weight_gradient": layout.vocabulary_on_rank}),
        N=rows(
            PART,
            {
                "forward": layout.vocabulary_on_rank,
                "input_gradient": layout.hidden_size,
                "weight_gradient": layout.hidden_size,
            },
        ),
        K=rows(
            PART,
            {"forward": layout.hidden_size, "input_gradient": layout.vocabulary_on_rank, "weight_gradient": tokens},
        ),
    )
    softmax = part(LossTraffic, tokens=tokens, vocabulary_on_rank=layout.vocabulary_on_rank)

    layer_products = equation(seconds, total(products.product_time, MATMUL), "all weight products of a layer")
    matmul_forward = equation(seconds, row(layer_products, PART, "forward"), "weight products, forward")
    matmul_backward = equation(
        seconds,
        row(layer_products, PART, "input_gradient") + row(layer_products, PART, "weight_gradient"),
        "weight products, backward",
    )
    attention_forward = equation(
        seconds,
        (1 - sliding_share) * core.forward + sliding_share * sliding_core.forward,
        "attention of the average layer, forward",
    )
    attention_backward = equation(
        seconds,
        (1 - sliding_share) * core.backward + sliding_share * sliding_core.backward,
        "attention of the average layer, backward",
    )
    forward_compute = equation(seconds, matmul_forward + attention_forward + between.forward, "a layer, forward")
    recomputed_products = equation(
        count,
        rows(
            MATMUL,
            {
                "qkv": layout.kv_size / (layout.query_size + 2 * layout.kv_size),
                "attention_output": 1,
                "ffn_in": layout.gated_ffn / 2,
                "ffn_out": 0,
            },
        ),
        "share of each product that selective recomputation runs again: every second one",
        source="torchtitan's per-operation selective checkpointing",
    )
    selective_compute = equation(
        seconds,
        total(recomputed_products * row(products.product_time, PART, "forward"), MATMUL) + between.forward,
        "what selective recomputation runs again in a layer",
    )
    recomputed_compute = equation(
        seconds,
        choose(layout.recompute, {"none": 0, "selective": selective_compute, "full": forward_compute}),
        "run again in the backward pass of a layer",
    )
    backward_compute = equation(
        seconds, matmul_backward + attention_backward + between.backward, "a layer, backward, what is run again apart"
    )
    loss_compute = equation(
        seconds, total(head.time, PART) + softmax.time, "head and loss, forward and backward, of a micro-batch"
    )


class Step(Chapter):
    """A training step as the sum of what shows: compute, exposed communication, bubble, messages, optimizer."""

    layer = part(LayerCompute, shared=True)
    layout = part(Layout, shared=True)
    tp, pp, dp, m = layout.tp, layout.pp, layout.dp, layout.micro_batches
    legality = part(Legality, shared=True)
    memory = part(Memory, shared=True)

    tp_hidden_share = given(
        count, "share of tensor-parallel communication that hides behind compute", owner="assumption"
    )
    fsdp_hidden_share = given(count, "share of FSDP's communication that hides behind compute", owner="assumption")
    fsdp_wire_factor = given(
        count, "measured time of overlapped FSDP gathers over that of lone ones", owner="assumption"
    )
    dp_hidden_share = given(count, "share of gradient communication that hides behind compute", owner="assumption")
    dp_wire_factor = given(count, "measured time of overlapped reductions over that of lone ones", owner="assumption")
    step_overhead = given(seconds, "of a step, outside the model: data, logging, clipping", owner="assumption")

    tp_all_gather = given(seconds, "of a micro-batch's hidden states over the tensor-parallel ranks")
    tp_reduce_scatter = given(seconds, "of a micro-batch's hidden states over the tensor-parallel ranks")
    tp_all_reduce = given(seconds, "of a micro-batch's hidden states over the tensor-parallel ranks")
    dp_gather_layer = given(seconds, "all-gather of one layer's weights over the data-parallel ranks")
    dp_scatter_layer = given(seconds, "reduce-scatter of one layer's gradients over the data-parallel ranks")
    dp_all_gather = given(seconds, "all-gather of a stage's weights over the data-parallel ranks")
    dp_reduce_scatter = given(seconds, "reduce-scatter of a stage's gradients over the data-parallel ranks")
    dp_all_reduce = given(seconds, "all-reduce of a stage's gradients over the data-parallel ranks")
    pp_send = given(seconds, "one message between neighbouring stages")

    tensor = part(
        TensorParallel,
        tp=tp,
        all_gather=tp_all_gather,
        reduce_scatter=tp_reduce_scatter,
        all_reduce=tp_all_reduce,
        forward_compute=layer.forward_compute,
        backward_compute=layer.backward_compute,
        hidden_share=tp_hidden_share,
    )
    recomputed_exposed = equation(
        seconds,
        choose(layout.recompute, {"none": 0, "selective": 0, "full": tensor.exposed_forward}),
        "tensor-parallel communication of a layer that full recomputation repeats",
    )
    accumulation = part(
        OptimizerTraffic,
        owned_parameters=worst(layout.stage_parameters, STAGE) / select(layout.optimizer_sharded > 0, dp, 1),
        local_parameters=layout.layer_parameters,
        copied_parameters=select(layout.weights_sharded > 0, 0, worst(layout.stage_parameters, STAGE)),
    )
    layer_forward = equation(seconds, layer.forward_compute + tensor.exposed_forward, "a layer, forward, before FSDP")
    layer_backward = equation(
        seconds,
        layer.backward_compute
        + layer.recomputed_compute
        + tensor.exposed_backward
        + recomputed_exposed
        + accumulation.accumulation,
        "a layer, backward, before FSDP",
    )
    sharded = part(
        FullySharded,
        dp=dp,
        gather_layer=dp_gather_layer,
        scatter_layer=dp_scatter_layer,
        forward_compute=layer_forward,
        backward_compute=layer_backward,
        wire_factor=fsdp_wire_factor,
        hidden_share=fsdp_hidden_share,
    )
    layer_time = equation(
        seconds,
        layer_forward + layer_backward + sharded.exposed_forward + sharded.exposed_backward,
        "a layer, both ways",
    )
    # Only two kinds of stage can be the slowest: one with the most layers, and the one with the head.
    most_layers = equation(count, worst(layout.stage_layers, STAGE), "layers of the fullest stage")
    head_layers = equation(
        count, total(layout.stage_layers * layout.has_head, STAGE), "layers of the stage with the head"
    )
    full_stage_time = equation(seconds, most_layers * layer_time, "a micro-batch on the fullest stage, both ways")
    head_stage_time = equation(
        seconds, head_layers * layer_time + layer.loss_compute, "a micro-batch on the stage with the head"
    )
    slowest_stage = equation(seconds, largest(full_stage_time, head_stage_time), "a micro-batch on the slowest stage")
    all_stages = equation(
        seconds, layout.layers * layer_time + layer.loss_compute, "a micro-batch on all stages together"
    )
    mean_layers = equation(count, layout.layers / pp, "layers of the average stage")
    pipeline = part(
        Pipeline,
        pp=pp,
        micro_batches=m,
        slowest=slowest_stage,
        all_stages=all_stages,
        pass_forward=mean_layers * layer_forward,
        pass_backward=mean_layers * layer_backward,
        send=pp_send,
    )
    sync = part(
        GradientSync,
        dp=dp,
        micro_batches=m,
        all_reduce=dp_all_reduce,
        reduce_scatter=dp_reduce_scatter,
        all_gather=dp_all_gather,
        forward_compute=mean_layers * layer_forward,
        backward_compute=mean_layers * layer_backward,
        wire_factor=dp_wire_factor,
        hidden_share=dp_hidden_share,
    )
    exposed_sync = equation(
        seconds, sync.exposed_gradient + sync.exposed_weight, "gradient and weight traffic that shows"
    )
    step_time = equation(
        seconds, pipeline.total + exposed_sync + accumulation.update + step_overhead, "one optimizer step"
    )

    # The step item by item: what the slowest stage does, and what it waits for. They add up to step_time.
    head_is_slowest = equation(
        count, select(head_stage_time >= full_stage_time, 1, 0), "1 when the stage with the head is"
    )
    slowest_layers = equation(
        count, select(head_is_slowest > 0, head_layers, most_layers), "layers of the slowest stage"
    )
    layer_passes = equation(count, m * slowest_layers, "layers that the slowest stage runs in a step")
    time_matmul = equation(seconds, layer_passes * (layer.matmul_forward + layer.matmul_backward), "weight products")
    time_attention = equation(seconds, layer_passes * (layer.attention_forward + layer.attention_backward), "attention")
    time_elementwise = equation(
        seconds,
        layer_passes * (layer.between_forward + layer.between_backward + accumulation.accumulation),
        "norms, activations, residuals, accumulation of gradients",
    )
    time_loss = equation(
        seconds, m * head_is_slowest * layer.loss_compute, "head and loss, where the slowest stage has them"
    )
    time_recompute = equation(seconds, layer_passes * layer.recomputed_compute, "forward work run again")
    time_tp = equation(
        seconds,
        layer_passes * (tensor.exposed_forward + tensor.exposed_backward + recomputed_exposed),
        "tensor-parallel traffic",
    )
    time_fsdp = equation(seconds, layer_passes * (sharded.exposed_forward + sharded.exposed_backward), "FSDP traffic")
    time_pp = equation(seconds, pipeline.sends, "messages between stages")
    time_dp = equation(seconds, exposed_sync, "gradient and weight traffic")
    time_bubble = equation(seconds, pipeline.bubble, "pipeline bubble")
    time_optimizer = equation(seconds, accumulation.update, "optimizer")
    time_other = equation(seconds, step_overhead, "data, logging, clipping")

    # Communication in all, shown or hidden
    total_tp = equation(
        seconds,
        layer_passes
        * (
            tensor.forward
            + tensor.backward
            + choose(layout.recompute, {"none": 0, "selective": 0, "full": tensor.forward})
        ),
        "tensor-parallel traffic, hidden or not",
    )
    total_fsdp = equation(seconds, layer_passes * (sharded.forward + sharded.backward), "FSDP traffic, hidden or not")
    total_dp = equation(seconds, sync.gradient + sync.weight, "gradient and weight traffic, hidden or not")
    total_pp = equation(
        seconds,
        select(pp > 1, 2 * m * layout.virtual_stages * pp_send, 0),
        "messages of one stage, forward and backward, hidden or not",
    )


class Yield(Chapter):
    """What a step is worth: rates, FLOPs, utilisation."""

    layout = part(Layout, shared=True)
    work = part(Flops, shared=True)
    step_time = given(seconds, "one optimizer step")
    chips = given(count, "chips", owner="cluster")
    peak = given(flop_per_second, "dense peak of the chip at this precision", owner="chip")

    step_tokens = equation(count, layout.global_batch * layout.sequence_length, "tokens of a step")
    tokens_per_second = equation(per_second, step_tokens / step_time, "tokens a second")
    model_flops = equation(flop, step_tokens * work.training_flops, "of a step, attention in full, nothing recomputed")
    rerun_flops = equation(
        flop,
        choose(
            layout.recompute,
            {
                "none": 0,
                "selective": 2
                * FLOP
                * layout.layers
                * layout.hidden_size
                * (layout.kv_size + layout.query_size + layout.gated_ffn * layout.ffn_size),
                "full": work.forward_flops_causal - work.head_flops,
            },
        ),
        "of a token, run again",
    )
    hardware_flops = equation(
        flop,
        step_tokens * (work.training_flops_causal + rerun_flops),
        "of a step, attention causal, recomputation counted",
    )
    chip_rate = equation(flop_per_second, model_flops / (step_time * chips), "model FLOP a second and chip")
    mfu = equation(
        count,
        chip_rate / peak,
        "model FLOPs utilisation: attention in full, no recomputation",
        source="Chowdhery et al. 2022, appendix B",
    )
    mfu_causal = equation(
        count,
        step_tokens * work.training_flops_causal / (step_time * chips * peak),
        "the same with attention counted causal",
    )
    hfu = equation(
        count, hardware_flops / (step_time * chips * peak), "hardware FLOPs utilisation: what the chips really do"
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

    along_tp = part(SwitchGroup, n=tp, m=domain_tp, u=unit_tp, S=layout.hidden_state_bytes)
    weights_of_layer = part(SwitchGroup, n=dp, m=domain_dp, u=unit_dp, S=layout.layer_parameters * layout.element_size)
    gradients_of_layer = part(
        SwitchGroup, n=dp, m=domain_dp, u=unit_dp, S=layout.layer_parameters * gradient_wire_bytes
    )
    weights_of_stage = part(
        SwitchGroup, n=dp, m=domain_dp, u=unit_dp, S=worst(layout.stage_parameters, STAGE) * layout.element_size
    )
    gradients_of_stage = part(
        SwitchGroup, n=dp, m=domain_dp, u=unit_dp, S=worst(layout.stage_parameters, STAGE) * gradient_wire_bytes
    )
    along_pp = part(SwitchGroup, n=pp, m=domain_pp, u=unit_pp, S=layout.hidden_state_bytes / layout.sequence_split)
    step = part(
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
    worth = part(Yield, shared=True)


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
    along_tp = part(TorusGroup, **on_tp, S=layout.hidden_state_bytes)
    weights_of_layer = part(TorusGroup, **on_dp, S=layout.layer_parameters * layout.element_size)
    gradients_of_layer = part(TorusGroup, **on_dp, S=layout.layer_parameters * gradient_wire_bytes)
    weights_of_stage = part(TorusGroup, **on_dp, S=worst(layout.stage_parameters, STAGE) * layout.element_size)
    gradients_of_stage = part(TorusGroup, **on_dp, S=worst(layout.stage_parameters, STAGE) * gradient_wire_bytes)
    along_pp = part(TorusGroup, **on_pp, S=layout.hidden_state_bytes / layout.sequence_split)
    step = part(
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
    worth = part(Yield, shared=True)
