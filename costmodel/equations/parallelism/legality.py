"""The rules that a layout must keep, each an equation that is 1 where the rule holds."""

from costmodel.equations.parallelism.layout import Layout
from costmodel.symbolic import (
    Chapter,
    both,
    choose,
    count,
    either,
    equal,
    equation,
    floor_divide,
    part,
    select,
    smallest,
)


class Legality(Chapter):
    """Rules of divisibility and sense; `legal` is 1 where all hold. The meaning of a rule is what a person is told."""

    layout = part(Layout, shared=True)
    tp, pp, dp = layout.tp, layout.pp, layout.dp
    heads, kv_heads, ffn_size = layout.heads, layout.kv_heads, layout.ffn_size
    m, v = layout.micro_batches, layout.virtual_stages

    rule_heads = equation(count, select(equal(floor_divide(heads, tp) * tp, heads), 1, 0), "tp divides the query heads")
    rule_kv_heads = equation(
        count,
        select(
            either(equal(floor_divide(kv_heads, tp) * tp, kv_heads), equal(floor_divide(tp, kv_heads) * kv_heads, tp)),
            1,
            0,
        ),
        "tp divides the key-value heads, or they divide tp",
    )
    rule_ffn = equation(
        count, select(equal(floor_divide(ffn_size, tp) * tp, ffn_size), 1, 0), "tp divides the feed-forward width"
    )
    rule_layers = equation(
        count,
        select(
            equal(
                floor_divide(layout.layers + layout.spare_slots, layout.chunks) * layout.chunks,
                layout.layers + layout.spare_slots,
            ),
            1,
            0,
        ),
        "pp times v divides the layers, or the layers and two",
    )
    rule_depth = equation(
        count, select(layout.full_stage_layers > layout.spare_slots / 2, 1, 0), "every stage holds a layer"
    )
    rule_batch = equation(
        count,
        select(both(equal(floor_divide(m, 1), m), m >= 1), 1, 0),
        "dp times the micro-batch size divides the global batch",
    )
    rule_interleaved = equation(
        count,
        choose(
            layout.schedule,
            {
                "1f1b": select(equal(v, 1), 1, 0),
                "interleaved": select(both(v > 1, pp > 1, equal(floor_divide(m, pp) * pp, m)), 1, 0),
            },
        ),
        "interleaving needs several stages and chunks, and pp divides the micro-batches",
        source="Megatron-LM: forward_backward_pipelining_with_interleaving",
    )
    rule_sequence = equation(
        count,
        choose(
            layout.sequence_parallel,
            {
                "off": 1,
                "on": select(
                    both(tp > 1, equal(floor_divide(layout.sequence_length, tp) * tp, layout.sequence_length)), 1, 0
                ),
            },
        ),
        "sequence parallelism needs tp of 2 or more, and tp divides the sequence",
    )
    rule_sharding = equation(
        count, select(either(dp > 1, layout.optimizer_sharded <= 0), 1, 0), "zero of 1 or more needs dp of 2 or more"
    )
    legal = equation(
        count,
        smallest(
            rule_heads,
            rule_kv_heads,
            rule_ffn,
            rule_layers,
            rule_depth,
            rule_batch,
            rule_interleaved,
            rule_sequence,
            rule_sharding,
        ),
        "1 when every rule holds",
    )


RULES = tuple(name for name in Legality.system.equations if name.startswith("rule_"))
"""The rules by name, in the order in which a broken one is reported."""
