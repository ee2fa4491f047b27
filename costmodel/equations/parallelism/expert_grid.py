"""Where routed experts lie: a second grid over the ranks of a pipeline stage.

etp ranks share an expert's features, ep of them hold different experts, and the rest are copies. The inner ranks of this
grid are those of the dense grid (Megatron-core's expert folding).
"""

from costmodel.equations.model.parameters import Parameters
from costmodel.symbolic import Chapter, column, count, equation, part, select


class ExpertGrid(Chapter):
    """The ranks of a pipeline stage as etp times ep times copies, and the experts that one of them holds."""

    tp = column(count, "tensor-parallel ranks")
    cp = column(count, "context-parallel ranks")
    dp = column(count, "data-parallel ranks")
    ep = column(count, "expert-parallel ranks")
    etp = column(count, "ranks that share the features of an expert")
    pp = column(count, "pipeline stages")
    model = part(Parameters, shared=True)

    stage_ranks = equation(count, tp * cp * dp, "ranks of a pipeline stage")
    expert_replicas = equation(count, stage_ranks / (ep * etp), "ranks that hold the same routed experts")
    local_experts = equation(count, select(model.experts > 0, model.experts / ep, 0), "routed experts of a rank")
    routed_on_rank = equation(
        count,
        local_experts * model.expert_parameters / etp,
        "weights of a layer's routed experts on a rank",
        source="Megatron-core: expert states shard over the ranks of a stage divided by etp times ep",
    )
    expert_share = equation(
        count,
        select(model.experts > 0, select(pp > 1, 1 / model.expert_every, model.expert_layers / model.layers), 0),
        "share of layers with experts, among the layers of a full stage",
        approximate="dense first layers lie in the first stage and lighten it alone; the pipeline's idle time counts them as others",
    )
    dense_ffn_size = equation(
        count, (1 - expert_share) * model.ffn_size, "features of dense feed-forwards in the average layer"
    )
    shared_mean_size = equation(
        count,
        expert_share * model.shared_experts * model.shared_ffn_size,
        "features of shared experts in the average layer",
    )
    mean_ffn_size = equation(
        count,
        dense_ffn_size + shared_mean_size,
        "features of the feed-forwards that tensor-parallel ranks split, dense or of shared experts, in the average layer",
    )
