"""What a layout makes of a model on a rank, and the rules it must keep, each broken alone."""

import pytest
from hypothesis import given, settings

from costmodel.equations.parallelism.legality import RULES
from tests.equations.training.drawn import cases, decoder, mixture, on

few = settings(max_examples=settings.default.max_examples // 2)
GPUS = "dgx-h100:64"


@pytest.mark.parametrize(
    ("layers", "pp", "v", "expected"),
    [
        (126, 16, 1, [7, 8, 7]),  # Llama 3.1 405B: a layer less at both ends
        (126, 16, 8, [7, 8, 7]),
        (80, 8, 5, [10, 10, 10]),
        (96, 8, 3, [12, 12, 12]),
        (30, 8, 4, [3, 4, 3]),
        (6, 2, 4, [3, 0, 3]),  # 8 slots, two of them for embedding and head
        (32, 1, 1, [32, 0, 0]),
        (32, 2, 1, [16, 0, 16]),
    ],
)
def test_layers_of_the_stages(layers, pp, v, expected):
    machine = f"dgx-h100:{8 * pp}"
    found = on(decoder(layers=layers), machine, f"pp={pp} v={v}", 1024, 8 * pp)()
    assert found["stage_layers"] == expected
    assert found["rule_layers"] == found["rule_depth"] == 1
    assert sum(n * count for n, count in zip(found["stage_layers"], (1, max(0, pp - 2), 1), strict=True)) == layers


@pytest.mark.parametrize(
    ("words", "expected"),
    [("", [15, 0, 17]), ("schedule=zb-h1", [15, 0, 17]), ("v=3", [15, 0, 18]), ("schedule=dualpipe", [16, 0, 16])],
)
def test_two_stages_can_both_be_said(words, expected):
    """None is left between them, and each holds its layers."""
    last = 18 if "v" in words else 17
    found = on(decoder(layers=15 + last), "dgx-h100:16", f"pp=2 first=15 last={last} {words}", 1024, 64)()
    assert [rule for rule in RULES if not found[rule]] == []
    assert found["stage_layers"] == expected


@pytest.mark.parametrize(
    ("model", "layout", "layers_of_experts"),
    [
        ("deepseek-v3", "pp=16 ep=32 first=4 last=1", [1, 4, 1]),  # the first three are dense
        ("llama-4-maverick", "pp=8 ep=32", [3, 3, 3]),  # every second, from the second on: 3 of the first 6
    ],
)
def test_stages_hold_the_whole_model(model, layout, layers_of_experts):
    case = on(model, "dgx-h100:512", layout, 4096, 512)
    found, degrees = case(), case.layout
    counts = (1, degrees.pp - 2, 1)
    held = sum(n * weights for n, weights in zip(counts, found["stage_parameters"], strict=True))
    routed = sum(n * weights for n, weights in zip(counts, found["stage_experts"], strict=True))
    alone = on(model, "dgx-h100:512", "ep=32", 4096, 512)()
    assert found["stage_expert_layers"] == layers_of_experts
    assert held == alone["stage_parameters"][0]
    assert routed == alone["stage_experts"][0]


@few
@given(cases())
def test_micro_batches_of_all_ranks_are_the_batch(case):
    found = case()
    layout = case.layout
    assert found["micro_batches"] * layout.micro_batch_size * layout.dp == case.workload.global_batch
    assert found["tokens"] == layout.micro_batch_size * case.workload.sequence_length


@few
@given(cases(least_tp=2))
def test_only_norms_and_biases_are_not_split(case):
    """A rank's weights of a layer, times tp, exceed the layer by the copies of what every rank holds."""
    alone = case.laid(tp=1, dp=case.layout.dp * case.layout.tp, sequence_parallel=False)()
    found = case()
    copies = (case.layout.tp - 1) * found["layer_whole_parameters"]
    assert case.layout.tp * found["layer_parameters"] == pytest.approx(alone["layer_parameters"] + copies, rel=1e-12)
    assert found["layer_whole_parameters"] < 0.05 * alone["layer_parameters"]


BROKEN = {
    "rule_heads": (decoder(heads=20, kv_heads=4), "tp=8"),
    "rule_kv_heads": (decoder(heads=48, kv_heads=12), "tp=16"),
    "rule_ffn": (decoder(ffn_size=4100), "tp=8"),
    "rule_layers": (decoder(layers=7), "pp=4"),
    "rule_depth": (decoder(layers=2), "pp=4"),
    "rule_batch": (decoder(), "mbs=3"),
    "rule_chunks": (decoder(layers=16), "pp=4 v=2 schedule=1f1b"),
    "rule_ends": (decoder(layers=16), "pp=4 first=3 last=4"),
    "rule_messages": (decoder(layers=16), "pp=4 schedule=zb-h1 p2p=blocking"),
    "rule_offload": (decoder(), "zero=2 offload=optimizer+weights"),
    "rule_stages": (decoder(layers=16), "schedule=gpipe"),
    "rule_groups": (decoder(layers=16), "pp=4 v=2 mbs=4"),
    "rule_filled": (decoder(layers=16), "pp=8 dp=8 schedule=v-min"),
    "rule_halves": (decoder(layers=18), "pp=2 tp=2 dp=16 mbs=4 schedule=chimera"),
    "rule_updates": (decoder(layers=16), "pp=8 tp=4 dp=2 zero=0 schedule=pipedream"),
    "rule_sequence": (decoder(), "tp=1 sp=1"),
    "rule_context_length": (decoder(), "cp=64 dp=1 cp_type=all-gather"),
    "rule_context_heads": (decoder(heads=20, kv_heads=4), "cp=8 cp_type=ulysses"),
    "rule_context_type": (decoder(), "cp_type=ulysses"),
    "rule_sharing": (decoder(), "zero=3 shard=3"),
    "rule_resharding": (decoder(), "zero=2 reshard=backward"),
    "rule_recompute": (decoder(), "recompute=mla_up_proj"),
    "rule_experts": (mixture(), "ep=16"),
    "rule_expert_features": (mixture(), "etp=64"),
    "rule_expert_grid": (mixture(experts=96), "ep=3"),
    "rule_expert_sequence": (mixture(), "tp=2 sp=0"),
    "rule_expert_sharing": (mixture(), "ep=8 zero=3 shard=4"),
    "rule_sharding": (decoder(layers=64), "pp=64 dp=1 zero=1"),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule_is_broken_alone(rule):
    model, layout = BROKEN[rule]
    found = on(model, GPUS, layout, 1024 + 64 * (rule == "rule_context_length"), 64)()
    assert [name for name in RULES if found[name] != 1] == [rule]
    assert found["legal"] == 0


def test_every_rule_is_here():
    assert set(BROKEN) == set(RULES)


@pytest.mark.parametrize("kv_heads", [1, 2, 4, 8, 16, 32])
def test_key_value_heads_are_split_or_copied(kv_heads):
    found = on(decoder(heads=32, kv_heads=kv_heads), GPUS, "tp=8", 1024, 64)()
    assert found["legal"] == 1


@pytest.mark.parametrize(
    ("layout", "rule"),
    [
        ("pp=1 v=2", "rule_stages"),  # chunks need stages
        ("pp=4 schedule=interleaved v=1", "rule_chunks"),  # interleaving needs chunks
        ("pp=4 schedule=1f1b v=2", "rule_chunks"),  # chunks need interleaving
        ("pp=4 tp=2 sp=0 v=4 schedule=zb-v", "rule_chunks"),  # a V has two
        ("pp=4 v=2 dp=16 mbs=2", "rule_groups"),  # two micro-batches over four stages
        ("pp=4 v=2 dp=16 group=3", "rule_groups"),  # a group of three
        ("pp=4 v=2 tp=2 sp=0 group=6", "rule_groups"),  # six leave two of the eight micro-batches
        ("pp=4 dp=16 schedule=zb-h1 group=4", "rule_groups"),  # no groups without interleaving
        ("pp=4 dp=16 mbs=2 schedule=zb-1p", "rule_filled"),
        ("pp=8 dp=8 mbs=1 schedule=dualpipe", "rule_filled"),
        ("pp=8 dp=4 tp=2 sp=0 mbs=4 zero=0 schedule=pipedream-2bw", "rule_filled"),
        ("tp=8 sp=1", "rule_sequence"),  # 1020 tokens over eight ranks
        ("tp=2 cp=4 cp_type=ring-contiguous", "rule_sequence"),  # 255 tokens over two ranks
        ("cp=4", "rule_context_length"),  # 1020 tokens in eight pieces
        ("cp=8 cp_type=ring-contiguous", "rule_context_length"),
        ("cp=2 cp_type=ulysses tp=16 sp=0", "rule_context_heads"),  # 16 heads over 32 ranks
        ("tp=8 sp=0 cp=2 cp_type=usp", "rule_context_type"),  # two key-value heads on a rank are enough for two
    ],
)
def test_other_ways_to_break_a_rule(layout, rule):
    found = on(decoder(layers=16), GPUS, layout, 1020, 64)()
    assert [name for name in RULES if found[name] != 1] == [rule]
