"""The named axes that the training equations vary over, beside the columns of the table of layouts."""

from costmodel.symbolic import Axis

MICRO_BATCH = Axis("micro_batch")
"""Sequences in a micro-batch: one row a size tried."""

SCHEDULE = Axis("schedule")
"""Pipeline schedules with their number of chunks: one row a combination tried."""

SHARDING = Axis("sharding", ("zero-0", "zero-1", "zero-2", "zero-3"))
"""What the data-parallel ranks share: nothing, optimizer states, gradients too, weights too (ZeRO stages)."""

RESHARD = ("default", "forward", "backward", "step")
"""After what FSDP (ZeRO-3) gives up the weights that it gathered: as the framework has it, after a layer's forward pass, after its
backward pass, or after the last one of a step."""

RECOMPUTE = Axis("recompute", ("modules", "selective", "full"))
"""What of the forward pass is run again in the backward pass: the modules that are named, if any; every second product and all
that is no product; all."""

MODULES = ("core_attn", "layernorm", "moe_act", "mla_up_proj", "mlp", "moe", "shared_experts")
"""Parts of a layer that can be named, as Megatron-core's --recompute-modules names them: the attention between its products, the
norms, the activation of feed-forwards and experts, the way up from latents to heads, a dense feed-forward, a layer's experts with
their exchanges, the shared ones alone."""

SEQUENCE = Axis("sequence", ("off", "on"))
"""Megatron sequence parallelism: whether the tensor-parallel ranks also split what lies between the products."""

CONTEXT = Axis("context", ("ring", "ring-contiguous", "all-gather", "ulysses", "usp"))
"""How the context-parallel ranks see each other's keys and values: passed round a ring, each rank holding an early and a late
piece of the sequence (zig-zag) or one piece; gathered whole; heads exchanged for tokens; or heads exchanged in small groups
and a ring over the groups."""

OFFLOAD = Axis(
    "offload",
    (
        "none",
        "optimizer",
        "optimizer+weights",
        "activations",
        "optimizer+activations",
        "optimizer+weights+activations",
    ),
)
"""What the host keeps for its chips: nothing, or these together."""

PART = Axis("part", ("forward", "input_gradient", "weight_gradient"))
"""The three products of every weight matrix in a training step."""

MATMUL = Axis(
    "matmul",
    (
        *("qkv", "latents", "query_up", "key_value_up", "attention_output"),
        *("ffn_in", "ffn_out", "router", "shared_in", "shared_out", "expert_in", "expert_out"),
    ),
)
"""The weight matrices of a decoder layer: of grouped or latent attention, of a dense feed-forward, of router and experts."""

DISPATCH = ("expert", "rank", "node")
"""Of what a token is sent one copy to: each of its experts, each rank that holds some of them, or each node, which passes it on."""

ATTENTION_KERNELS = ("fused", "unfused")
"""Whether the attention is one kernel that keeps the scores on the chip, or products with passes over the scores between them."""

EXPERT_OVERLAP = ("none", "shared", "micro-batch")
"""What the exchanges of experts hide behind: nothing, the shared experts, or the work of another micro-batch."""

STAGE = Axis("stage", ("first", "middle", "last"))
"""Pipeline stages that differ: the first holds the embedding, the last the head and the loss."""

PHASE = Axis("phase", ("forward", "loss", "backward", "optimizer"))
"""Moments of a step at which the memory in use peaks."""

BUCKET = Axis("bucket")
"""Buckets of gradients in the order in which they fill: one row a bucket."""

INNER_AXES = (PART, MATMUL, STAGE, PHASE)
"""Those inside a layer, a pipeline or a step, which one answer runs over too."""

PRODUCT_AXES = (MICRO_BATCH, SCHEDULE, SHARDING, RECOMPUTE, SEQUENCE, CONTEXT, OFFLOAD, *INNER_AXES)
"""In the order of the arrays' dimensions, outermost first."""
