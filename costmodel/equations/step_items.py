"""A training step item by item, and its communication in all."""

from costmodel.equations.training import Step
from costmodel.symbolic import Chapter, count, equation, largest, part, seconds, select


class StepItems(Chapter):
    """What the slowest stage does in a step and what it waits for, which add up to its time; what is sent, hidden or not."""

    step = part(Step, shared=True)

    # The step item by item: what the slowest stage does, and what it waits for. They add up to step_time.
    head_is_slowest = equation(
        count, select(step.head_stage_time >= step.full_stage_time, 1, 0), "1 when the stage with the head is"
    )
    slowest_layers = equation(
        count, select(head_is_slowest > 0, step.head_layers, step.most_layers), "layers of the slowest stage"
    )
    layer_passes = equation(count, step.micro_batches * slowest_layers, "layers that the slowest stage runs in a step")
    head_passes = equation(
        count,
        step.micro_batches * head_is_slowest * step.head_share,
        "micro-batches whose head the slowest stage has, in a step",
    )
    module_passes = equation(
        count,
        head_passes * step.multi_token_modules,
        "modules that predict further tokens that the slowest stage runs in a step",
    )
    time_matmul = equation(
        seconds,
        layer_passes * (step.matmul_forward + step.matmul_backward) + module_passes * step.joining_products,
        "weight products",
    )
    time_attention = equation(seconds, layer_passes * (step.attention_forward + step.attention_backward), "attention")
    time_elementwise = equation(
        seconds,
        layer_passes * (step.elementwise_forward + step.elementwise_backward + step.accumulation_accumulation)
        + module_passes * step.joining_elementwise,
        "norms, activations, residuals, rows sorted to experts, accumulation of gradients",
    )
    time_host = equation(
        seconds,
        layer_passes
        * largest(0, step.forward_compute - step.forward_work + step.backward_compute - step.backward_work),
        "kernels that wait for the host to launch them",
    )
    time_loss = equation(
        seconds,
        head_passes * step.losses_compute,
        "head and losses, where the slowest stage has them",
    )
    time_recompute = equation(
        seconds,
        layer_passes * step.recomputed_compute + module_passes * step.joining_rerun,
        "forward work run again",
    )
    time_tp = equation(
        seconds,
        layer_passes * ((1 + step.repeated_tp) * step.tensor_exposed_forward + step.tensor_exposed_backward)
        + module_passes * step.joining_exposed,
        "tensor-parallel traffic",
    )
    time_cp = equation(
        seconds,
        layer_passes * ((1 + step.repeated_cp) * step.context_exposed_forward + step.context_exposed_backward),
        "context-parallel traffic",
    )
    time_ep = equation(
        seconds,
        layer_passes * ((1 + step.repeated_ep) * step.ep_exposed_forward + step.ep_exposed_backward),
        "exchanges of experts",
    )
    time_fsdp = equation(
        seconds,
        layer_passes * (step.sharded_exposed_forward + step.sharded_exposed_backward)
        + head_passes * step.tables_exposed,
        "FSDP traffic",
    )
    time_pp = equation(seconds, step.pipeline_sends, "messages between stages")
    time_dp = equation(seconds, step.exposed_sync, "gradient and weight traffic")
    time_bubble = equation(seconds, step.pipeline_bubble, "pipeline bubble")
    time_optimizer = equation(seconds, step.optimizer, "optimizer")
    time_offload = equation(
        seconds,
        layer_passes * (step.host_exposed_forward + step.host_exposed_backward)
        + head_passes * step.host_exposed_tables
        + step.host_exposed_update,
        "copies between chip and host, and the update on the host",
    )
    time_other = equation(seconds, step.step_overhead, "data, logging, clipping")

    # Communication in all, shown or hidden
    total_tp = equation(
        seconds,
        layer_passes * ((1 + step.repeated_tp) * step.tensor_forward + step.tensor_backward)
        + module_passes * step.joining_traffic,
        "tensor-parallel traffic, hidden or not",
    )
    total_cp = equation(
        seconds,
        layer_passes * ((1 + step.repeated_cp) * step.context_forward + step.context_backward),
        "context-parallel traffic, hidden or not",
    )
    total_ep = equation(
        seconds,
        layer_passes * ((1 + step.repeated_ep) * step.ep_forward + step.ep_backward),
        "exchanges of experts, hidden or not",
    )
    total_fsdp = equation(
        seconds,
        layer_passes * (step.sharded_forward + step.sharded_backward) + head_passes * step.tables_total,
        "FSDP traffic, hidden or not",
    )
    total_dp = equation(seconds, step.sync_gradient + step.sync_weight, "gradient and weight traffic, hidden or not")
    total_pp = equation(
        seconds,
        select(step.pp > 1, largest(2 * step.micro_batches * step.virtual_stages * step.pp_send, time_pp), 0),
        "messages of one stage, forward and backward, hidden or not; those that show, where waits for other stages are more",
    )
