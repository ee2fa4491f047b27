"""What a training step is worth: rates, FLOPs, utilisation."""

from costmodel.equations.model.flops import Flops
from costmodel.equations.parallelism.layout import Layout
from costmodel.equations.parallelism.recomputation import Recomputation
from costmodel.symbolic import (
    FLOP,
    Chapter,
    choose,
    count,
    equation,
    flop,
    flop_per_second,
    given,
    part,
    per_second,
    seconds,
    select,
)


class Utilisation(Chapter):
    """What a step is worth: rates, FLOPs, utilisation."""

    layout = part(Layout, shared=True)
    again = part(Recomputation, shared=True)
    work = part(Flops, shared=True)
    step_time = given(seconds, "one optimizer step")
    chips = given(count, "chips", owner="cluster")
    peak = given(flop_per_second, "dense peak of the chip at the precision of the weight products", owner="chip")

    step_tokens = equation(count, layout.global_batch * layout.sequence_length, "tokens of a step")
    tokens_per_second = equation(per_second, step_tokens / step_time, "tokens a second")
    modules = layout.multi_token_modules
    trained_parameters = equation(
        count,
        layout.parameters + modules * layout.multi_token_parameters,
        "weights that are trained and stored: of the model and of modules that predict further tokens",
    )
    trained_flops = equation(
        flop,
        work.training_flops + modules * 3 * work.module_flops,
        "of a token, attention in full, nothing recomputed, modules that predict further tokens included where they are trained",
        source="Megatron-core counts the layers and heads of its modules too",
    )
    trained_flops_causal = equation(
        flop,
        work.training_flops_causal + modules * 3 * work.module_flops_causal,
        "the same with attention causal",
    )
    model_flops = equation(flop, step_tokens * trained_flops, "of a step, attention in full, nothing recomputed")
    active_ffn_size = equation(
        count,
        (
            layout.dense_layers * layout.ffn_size
            + layout.expert_layers
            * (layout.experts_per_token * layout.expert_ffn_size + layout.shared_experts * layout.shared_ffn_size)
        )
        / layout.layers,
        "features of feed-forwards and experts that a token goes through, in the mean layer",
    )
    rerun_flops = equation(
        flop,
        choose(
            again.recompute,
            {
                "modules": again.recomputed_core_attn * work.attention_flops_causal
                + again.recomputed_mla_up_proj * work.latents_up_flops
                + again.recomputed_mlp * work.ffn_flops
                + select(
                    again.recomputed_moe > 0, work.expert_flops, again.recomputed_shared_experts * work.shared_flops
                ),
                "selective": 2
                * FLOP
                * layout.layers
                * layout.hidden_size
                * (layout.values_size + layout.outputs_size + layout.gated_ffn * active_ffn_size),
                "full": work.forward_flops_causal - work.head_flops,
            },
        )
        / again.layers_for_one,
        "of a token, run again in the layers of the model",
    )
    rerun_modules = equation(
        flop,
        modules * (rerun_flops / layout.layers + again.repeated_layer * work.joining_flops),
        "of a token, run again in modules that predict further tokens",
        approximate="their layers as much as the mean one",
    )
    hardware_flops = equation(
        flop,
        step_tokens * (trained_flops_causal + rerun_flops + rerun_modules),
        "of a step, attention causal, recomputation counted",
    )
    megatron_flops = equation(
        flop,
        step_tokens
        * (trained_flops + work.forward_flops - work.head_flops + modules * (work.module_flops - work.head_flops)),
        "of a step as Megatron-LM counted them: all layers run again whatever the layout, attention in full",
        source="Narayanan et al. 2021, equation 3",
    )
    chip_rate = equation(flop_per_second, tokens_per_second * trained_flops / chips, "model FLOP a second and chip")
    mfu = equation(
        count,
        chip_rate / peak,
        "model FLOPs utilisation: attention in full, no recomputation",
        source="Chowdhery et al. 2022, appendix B",
    )
    mfu_causal = equation(
        count,
        tokens_per_second * trained_flops_causal / (chips * peak),
        "the same with attention counted causal",
    )
    hfu = equation(
        count,
        hardware_flops / (step_time * chips * peak),
        "hardware FLOPs utilisation: what the chips really do",
    )
