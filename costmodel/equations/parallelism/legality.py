"""The rules that a layout must keep, each an equation that is 1 where the rule holds."""

from costmodel.equations.axes import EXPERT_OVERLAP
from costmodel.equations.parallelism.groups import Groups
from costmodel.equations.parallelism.layout import Layout
from costmodel.equations.parallelism.offloaded import Offloaded
from costmodel.equations.parallelism.recomputation import Recomputation
from costmodel.equations.parallelism.schedules import ASYNCHRONOUS, CHUNKED, FOLDED, TWO_WAY, by_schedule
from costmodel.symbolic import (
    Chapter,
    both,
    choice,
    choose,
    count,
    divides,
    either,
    equal,
    equation,
    given,
    holds,
    part,
    select,
    smallest,
)


class Legality(Chapter):
    """Rules of divisibility and sense; `legal` is 1 where all hold. The meaning of a rule is what a person is told."""

    layout = part(Layout, shared=True)
    tp, cp, pp, dp = layout.tp, layout.cp, layout.pp, layout.dp
    heads, kv_heads, ffn_size = layout.heads, layout.key_value_heads, layout.ffn_size
    u = layout.ulysses_ranks
    m, v = layout.micro_batches, layout.virtual_stages
    groups = part(Groups, shared=True, pp=pp, micro_batches=m)
    away = part(Offloaded, shared=True)
    again = part(Recomputation, shared=True)
    ep_overlap = choice(EXPERT_OVERLAP, "what the exchanges of experts hide behind")
    orthogonalisation_steps = given(count, "Newton-Schulz steps of the optimizer, 0 for most", owner="assumption")

    rule_recompute = equation(
        count,
        select(
            again.whole_blocks + again.recomputed_mla_up_proj > 0,
            holds(
                both(
                    either(again.recomputed_mla_up_proj <= 0, layout.kv_rank > 0),
                    either(again.recomputed_mlp <= 0, layout.dense_layers > 0),
                    either(again.recomputed_moe <= 0, layout.experts > 0),
                    either(
                        again.recomputed_shared_experts <= 0,
                        both(
                            layout.experts > 0,
                            layout.shared_experts > 0,
                            choose(ep_overlap, {"none": 1, "shared": 0, "micro-batch": 1}) > 0,
                        ),
                    ),
                )
            ),
            1,
        ),
        "what is run again is there: mla_up_proj in latent attention, mlp in a layer without experts, moe in one with them, "
        "shared_experts where there are some and ep_overlap is not shared",
        source="Megatron-core: the checks of --recompute-modules",
    )
    rule_heads = equation(count, holds(divides(tp, heads)), "tp divides the query heads")
    rule_kv_heads = equation(
        count,
        holds(either(divides(tp, kv_heads), divides(kv_heads, tp))),
        "tp divides the key-value heads, or they divide tp",
    )
    rule_ffn = equation(count, holds(divides(tp, ffn_size)), "tp divides the feed-forward width")
    rule_layers = equation(
        count,
        holds(either(layout.ends_said > 0, divides(layout.chunks, layout.layers + layout.spare_slots))),
        "pp times v divides the layers, or the layers and two, where first and last do not say otherwise",
    )
    rule_depth = equation(
        count,
        holds(
            either(
                layout.full_stage_layers > layout.spare_slots / 2,
                both(layout.ends_said > 0, equal(layout.stages_left, 0)),
            )
        ),
        "every stage holds a layer",
    )
    rule_batch = equation(
        count, holds(both(divides(1, m), m >= 1)), "dp times the micro-batch size divides the global batch"
    )
    rule_chunks = equation(
        count,
        by_schedule(layout.schedule, {CHUNKED: holds(v > 1), FOLDED: holds(equal(v, 2))}, others=holds(equal(v, 1))),
        f"interleaving ({', '.join(CHUNKED)}) needs several chunks, {', '.join(FOLDED)} need v=2, others v=1",
    )
    rule_ends = equation(
        count,
        holds(
            either(
                layout.ends_said <= 0,
                both(
                    pp > 1,
                    divides(layout.chunks_said, layout.first_layers),
                    divides(layout.chunks_said, layout.last_layers),
                    divides(layout.chunks_said, layout.even_share),
                    equal(layout.even_share * layout.stages_left, layout.layers - layout.ends_said),
                    either(layout.even_share > 0, equal(layout.stages_left, 0)),
                ),
            )
        ),
        "first and last leave each of the other stages as many layers, which v divides as it does them; with "
        f"{', '.join(FOLDED)} they are the two chunks of the first rank, and leave each of the other chunks as many",
        source="Megatron-LM: --decoder-first-pipeline-num-layers, --decoder-last-pipeline-num-layers",
    )
    rule_messages = equation(
        count,
        select(
            layout.messages_block > 0,
            by_schedule(layout.schedule, {("1f1b", "interleaved"): 1}, others=0),
            1,
        ),
        "p2p=blocking is for 1f1b and interleaved",
    )
    rule_offload = equation(
        count,
        holds(
            both(
                either(away.weights_away <= 0, layout.weights_sharded > 0, layout.replicas <= 1),
                either(away.states_on_drives <= 0, away.optimizer_away > 0),
                either(away.optimizer_away <= 0, orthogonalisation_steps <= 0),
                either(
                    away.optimizer_away + away.activations_away <= 0,
                    by_schedule(layout.schedule, {ASYNCHRONOUS: 0}, others=1) > 0,
                ),
            )
        ),
        "the host keeps weights with zero=3 or a single replica, states of optimizers that its processors can run (not Muon's), "
        f"and nothing with {' and '.join(ASYNCHRONOUS)}; its drives keep states",
        source="DeepSpeed: offload_param needs stage 3",
    )
    rule_stages = equation(
        count,
        by_schedule(layout.schedule, {"1f1b": 1, TWO_WAY: holds(both(pp > 1, divides(2, pp)))}, others=holds(pp > 1)),
        f"schedules other than 1f1b need several stages, {' and '.join(TWO_WAY)} an even number",
    )
    rule_groups = equation(
        count,
        by_schedule(
            layout.schedule,
            {
                ("interleaved", "interleaved-zb"): holds(both(groups.whole_group >= pp, groups.last_group >= pp)),
            },
            others=holds(layout.group_size <= 0),
        ),
        "group is for interleaved and interleaved-zb: groups of pp or more micro-batches, the last one too, and pp divides them without it",
        source="Megatron-LM: forward_backward_pipelining_with_interleaving; a smaller last group can deadlock",
    )
    rule_filled = equation(
        count,
        by_schedule(
            layout.schedule,
            {
                "zb-v": holds(m >= 2 * pp - 1),
                ("zb-1p", "zb-2p", "v-half", "v-min", "dualpipe", "dualpipev"): holds(m >= 2 * pp),
                ASYNCHRONOUS: holds(m >= pp),
            },
            others=1,
        ),
        "the micro-batches fill the pipeline: at least twice pp for zb-1p, zb-2p, v-half, v-min, dualpipe and dualpipev, one less for "
        f"zb-v, pp for {' and '.join(ASYNCHRONOUS)}",
    )
    rule_halves = equation(
        count,
        by_schedule(
            layout.schedule,
            {"dualpipe": holds(divides(2, m)), "chimera": holds(both(divides(2, m), either(m <= pp, divides(pp, m))))},
            others=1,
        ),
        "half of the micro-batches enter at each end of dualpipe and chimera; those of chimera are at most pp or a multiple of it",
    )
    rule_updates = equation(
        count,
        by_schedule(layout.schedule, {"pipedream": holds(dp <= 1)}, others=1),
        "dp is 1 with pipedream, which updates at every micro-batch: gradients exchanged as often are not modelled",
    )
    rule_sequence = equation(
        count,
        choose(
            layout.sequence_parallel, {"off": 1, "on": holds(both(tp > 1, divides(tp * cp, layout.sequence_length)))}
        ),
        "sequence parallelism needs tp of 2 or more, and tp times cp divides the sequence",
    )
    rule_context_length = equation(
        count,
        choose(
            layout.cp_type,
            {
                "ring": holds(either(cp <= 1, divides(2 * cp, layout.sequence_length))),
                "ring-contiguous": holds(divides(cp, layout.sequence_length)),
                "all-gather": holds(divides(2 * cp, layout.sequence_length)),
                "ulysses": holds(divides(cp, layout.sequence_length)),
                "usp": holds(divides(2 * cp, layout.sequence_length)),
            },
        ),
        "cp divides the sequence, and twice cp where a rank takes an early and a late piece (ring, all-gather, usp)",
    )
    rule_context_heads = equation(
        count,
        select(
            u > 1,
            holds(both(divides(tp * u, heads), either(divides(tp * u, kv_heads), divides(kv_heads, tp * u)))),
            1,
        ),
        "where heads are exchanged, tp times these ranks divides the query heads, and the key-value heads or they it",
        source="Jacobs et al. 2023, arXiv 2309.14509, section 3",
    )
    rule_context_type = equation(
        count,
        choose(
            layout.cp_type,
            {
                "ring": 1,
                "ring-contiguous": holds(cp > 1),
                "all-gather": holds(cp > 1),
                "ulysses": holds(cp > 1),
                "usp": holds(both(u > 1, u < cp, divides(u, cp))),
            },
        ),
        "cp_type is said only where cp is 2 or more; with usp a rank has several key-value heads, and cp is twice as many or a larger multiple",
    )
    rule_sharding = equation(
        count,
        holds(either(layout.replicas > 1, layout.optimizer_sharded <= 0)),
        "zero of 1 or more needs dp or cp of 2 or more",
    )
    rule_sharing = equation(
        count,
        select(
            layout.shard_group > 0,
            holds(both(layout.optimizer_sharded > 0, divides(layout.shard_group, layout.replicas))),
            1,
        ),
        "a group that shares needs zero of 1 or more, and divides dp times cp",
    )
    rule_resharding = equation(
        count,
        choose(
            layout.reshard,
            {"default": 1} | dict.fromkeys(("forward", "backward", "step"), holds(layout.weights_sharded > 0)),
        ),
        "reshard is said only with zero=3, where weights are gathered for use",
        source="PyTorch FSDP2: reshard_after_forward",
    )
    rule_experts = equation(
        count,
        select(layout.experts > 0, holds(divides(layout.ep, layout.experts)), holds(layout.ep * layout.etp <= 1)),
        "ep divides the routed experts of a layer, and only a model with experts takes ep or etp",
    )
    rule_expert_features = equation(
        count,
        select(layout.experts > 0, holds(divides(layout.etp, layout.expert_ffn_size)), 1),
        "etp divides the features of an expert",
    )
    rule_expert_grid = equation(
        count,
        select(layout.experts > 0, holds(divides(layout.ep * layout.etp, layout.stage_ranks)), 1),
        "ep times etp divides tp times cp times dp, the ranks of a stage",
        source="Megatron-core: generate_masked_orthogonal_rank_groups",
    )
    rule_expert_sequence = equation(
        count,
        select(
            layout.experts > 0,
            choose(layout.sequence_parallel, {"off": holds(tp <= 1), "on": 1}),
            1,
        ),
        "experts with tp of 2 or more need sequence parallelism",
        source="Megatron-core: MoE with tensor parallelism requires sequence parallelism",
    )
    rule_expert_sharing = equation(
        count,
        select(both(layout.experts > 0, layout.shard_group > 0), holds(divides(1, layout.expert_sharing_ranks)), 1),
        "ep times etp divides tp times the ranks of a group that shares: every group holds all experts",
        source="Megatron-core: the copies of experts divide by --num-distributed-optimizer-instances",
    )
    legal = equation(
        count,
        smallest(
            rule_recompute,
            rule_heads,
            rule_kv_heads,
            rule_ffn,
            rule_layers,
            rule_depth,
            rule_batch,
            rule_chunks,
            rule_ends,
            rule_messages,
            rule_offload,
            rule_stages,
            rule_groups,
            rule_filled,
            rule_halves,
            rule_updates,
            rule_sequence,
            rule_context_length,
            rule_context_heads,
            rule_context_type,
            rule_sharding,
            rule_sharing,
            rule_resharding,
            rule_experts,
            rule_expert_features,
            rule_expert_grid,
            rule_expert_sequence,
            rule_expert_sharing,
        ),
        "1 when every rule holds",
    )


RULES = tuple(name for name in Legality.system.equations if name.startswith("rule_"))
"""The rules by name, in the order in which a broken one is reported."""
