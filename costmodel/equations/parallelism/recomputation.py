"""What of the forward pass is run again in the backward pass: modules by name, every second product, or layers by a method."""

from costmodel.equations.axes import RECOMPUTE, STAGE
from costmodel.equations.model.block import Block
from costmodel.equations.parallelism.layout import Layout
from costmodel.symbolic import (
    Chapter,
    both,
    ceil_divide,
    choice,
    choose,
    count,
    either,
    equation,
    given,
    holds,
    largest,
    part,
    select,
    smallest,
    worst,
)


class Recomputation(Chapter):
    """Modules that are run again, and how many layers of a stage are, as Megatron-core counts them.

    Of a *uniform* method the inputs of every N layers are kept, and N layers are run again at a time; of a *block* method the
    first N layers of each chunk are run again, the others keep everything.
    """

    layout = part(Layout, shared=True)
    block = part(Block, shared=True)
    recompute = choice(RECOMPUTE.labels, "what of the forward pass is run again", RECOMPUTE)
    recomputed_core_attn = given(count, "1 where the attention between its products is", RECOMPUTE, owner="layout")
    recomputed_layernorm = given(count, "1 where the norms are", RECOMPUTE, owner="layout")
    recomputed_moe_act = given(
        count, "1 where the activation of feed-forwards and experts is", RECOMPUTE, owner="layout"
    )
    recomputed_mla_up_proj = given(count, "1 where the way from latents to heads is", RECOMPUTE, owner="layout")
    recomputed_mlp = given(count, "1 where dense feed-forwards are", RECOMPUTE, owner="layout")
    recomputed_moe = given(count, "1 where layers of experts are, exchanges and all", RECOMPUTE, owner="layout")
    recomputed_shared_experts = given(count, "1 where shared experts alone are", RECOMPUTE, owner="layout")
    recompute_every = given(count, "layers of which one is recomputed so", RECOMPUTE, owner="layout")
    uniform_layers = given(
        count, "layers that are run again at a time, the input of the first kept", RECOMPUTE, owner="layout"
    )
    block_layers = given(
        count, "first layers of each chunk that are run again, the others not; 0: all are", RECOMPUTE, owner="layout"
    )
    tp_blocks = equation(
        count,
        select(block.parallel_block > 0, 1, 2 - layout.expert_share * holds(layout.shared_experts <= 0)),
        "blocks of a layer that tensor-parallel ranks share: attention, and a feed-forward or shared experts, as one where they "
        "are side by side",
        source="Wang and Komatsuzaki 2021, mesh-transformer-jax (GPT-J): one sum among the ranks for both",
    )

    in_attention = equation(
        count, recomputed_core_attn + recomputed_mla_up_proj, "modules of the attention that are run again"
    )
    whole_blocks = equation(
        count, recomputed_mlp + recomputed_moe + recomputed_shared_experts, "feed-forwards that are, products and all"
    )
    shared_again = equation(
        count,
        largest(recomputed_moe, recomputed_shared_experts),
        "1 where shared experts are, alone or with the layer of experts that they belong to",
        source="Megatron-core: MoELayer runs its shared experts inside what it checkpoints",
    )

    # By method
    layers_for_one = equation(
        count,
        select(block_layers > 0, largest(1, layout.layers / (layout.chunks * block_layers)), recompute_every),
        "layers of which one is run again, on the average of a pipeline",
        source="Megatron-core: --recompute-method block, --recompute-num-layers",
    )
    inputs_of_layer = equation(
        count,
        select(
            uniform_layers > 1,
            smallest(1, ceil_divide(layout.layers, layout.chunks * uniform_layers) * layout.chunks / layout.layers),
            1,
        ),
        "inputs kept for one layer that is run again whole, on the average of a pipeline",
        source="Megatron-core: --recompute-method uniform, --recompute-num-layers",
    )
    layers_at_once = equation(
        count,
        select(
            uniform_layers > 1,
            smallest(uniform_layers, worst(layout.stage_layers, STAGE) / layout.virtual_stages),
            1,
        ),
        "layers that are run again at a time, no more than a chunk has",
    )
    stage_rerun = equation(
        count,
        select(
            block_layers > 0, smallest(layout.stage_layers, block_layers * layout.virtual_stages), layout.stage_layers
        ),
        "layers of a stage that are run again by a method",
    )
    stage_inputs = equation(
        count,
        smallest(stage_rerun, ceil_divide(stage_rerun, layout.virtual_stages * uniform_layers) * layout.virtual_stages),
        "inputs of layers that a stage keeps for them",
        approximate="the chunk of an end that has a layer less may keep one input less",
    )
    by_method = equation(count, holds(either(uniform_layers > 1, block_layers > 0)), "1 where a method is named")

    # What it repeats of the communication
    repeated_blocks = equation(
        count,
        select(
            both(whole_blocks > 0, block.parallel_block <= 0),
            recomputed_mlp * (1 - layout.expert_share)
            + shared_again * layout.expert_share * holds(layout.shared_experts > 0),
            0,
        ),
        "blocks that tensor-parallel ranks share and that modules run again, in the average layer; none where a feed-forward is "
        "beside the attention, whose backward pass gathers the input of both and which sums with it",
    )
    repeated_layer = equation(
        count,
        choose(recompute, {"modules": 0, "selective": 0, "full": 1}) / layers_for_one,
        "times that a whole layer is run again",
    )
    repeated_tp = equation(
        count,
        choose(recompute, {"modules": repeated_blocks / tp_blocks, "selective": 0, "full": 1}) / layers_for_one,
        "times that recomputation repeats the communication of a layer's forward pass among tensor-parallel ranks",
    )
    repeated_ep = equation(
        count,
        choose(recompute, {"modules": recomputed_moe, "selective": 0, "full": 1}) / layers_for_one,
        "times that it repeats the exchanges of experts",
    )
    repeated_cp = equation(
        count,
        choose(recompute, {"modules": recomputed_core_attn, "selective": 0, "full": 1}) / layers_for_one,
        "times that it repeats the context-parallel communication, which is part of the attention",
    )
