"""Memory of a training step against examples worked out by hand and figures that people printed."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from tests.equations.training.drawn import cases, decoder, on

GIB = 2**30
STATES = ("stage_weights", "stage_gradients", "stage_optimizer")
FORWARD, LOSS, BACKWARD, OPTIMIZER = range(4)
FIRST, MIDDLE, LAST = range(3)


def per_token(case):
    found = case()
    return found["kept_layer"] / found["tokens"]


@pytest.mark.parametrize(
    ("model", "layout", "expected"),
    [
        # 8 h + 4 queries + 4 keys and values + 6 f + 4 heads
        ("llama-3-8b", "", 139_392),
        ("llama-3-70b", "", 274_688),
        ("llama-3-8b", "tp=8 sp=0", 46_096),
        ("llama-3-8b", "tp=8 sp=1", 17_424),
        # the input of the layer, and every second product: 2 h + 2 queries + 2 values + attention + 2 f + 2 h
        ("llama-3-8b", "recompute=selective", 63_616),
        # without the outputs of the norms 4 h, without that of the activation 2 f less; the statistics are 4 heads
        ("llama-3-8b", "recompute=norms", 139_392 - 4 * 4096),
        ("llama-3-8b", "recompute=mlp-product", 139_392 - 2 * 14336),
        ("llama-3-8b", "recompute=light", 94_336),
        ("llama-3-8b", "tp=8 sp=1 recompute=light", 94_336 / 8),
        ("llama-3-8b", "tp=8 sp=0 recompute=light", 46_096 - 4 * 4096 - 2 * 14336 / 8),
        ("llama-3-8b", "recompute=attention", 139_392 - 4 * 32),
        ("llama-3-8b", "recompute=full", 8192),
        ("llama-3-8b", "recompute=full/4", (3 * 139_392 + 8192) / 4),
        ("llama-3-8b", "tp=8 sp=1 recompute=full", 1024),
        ("llama-3-8b", "tp=8 sp=0 recompute=full", 8192),
        # 34 h of the original block less its two dropout masks, and the statistics of fused attention
        ("gpt3-175b", "", 32 * 12288 + 4 * 96),
        ("gpt3-175b", "recompute=light", (32 - 4 - 8) * 12288 + 4 * 96),
        ("gpt3-175b", "recompute=attention", 32 * 12288),
    ],
)
def test_kept_by_one_layer_for_each_token(model, layout, expected):
    assert per_token(on(model, "dgx-h100:8", layout, 2048, 8)) == expected


def test_recomputing_attention_that_is_not_fused_drops_its_scores():
    """5 bytes a score, 80 of them a hidden feature: GPT-3 keeps 32 h of 112 h a token (Korthikanti et al. 2022, section 5)."""
    case = on("gpt3-175b", "dgx-h100:8", "recompute=attention", 2048, 8)
    found, none = (one(score_bytes=5) for one in (case, case.laid(recompute="none")))
    assert 5 * 2048 * 96 == 80 * 12288
    assert found["kept_layer"] == 2048 * 32 * 12288
    assert none["kept_layer"] == 2048 * (112 * 12288 + 4 * 96)
    assert found["recomputed_layer"] == none["kept_layer"] - found["kept_layer"]


def test_8b_on_eight_chips_as_torchtitan_trains_it():
    """Llama 3 8B, FSDP over 8, two sequences of 8192, selective recomputation, fp32 weights: 77.0 GiB reserved in all.

    Figures of pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md: states 14.96, kept activations 31.07 and
    14 bytes a logit 27.40 GiB of it.
    """
    case = on("llama-3-8b", "dgx-h100:8", "mbs=2 zero=3 recompute=selective", 8192, 16)
    recipe = {"weight_bytes": 4, "gradient_bytes": 4, "optimizer_bytes": 8, "loss_bytes": 14, "vocabulary_multiple": 1}
    found = case(**recipe)
    states = sum(found[state][FIRST] for state in STATES)
    assert states / GIB == pytest.approx(14.96, abs=0.005)
    assert found["stage_activations"][FIRST][LOSS] / GIB == pytest.approx(31.07, abs=0.01)
    norm = 2 * 2 * 4096 * 2 * 8192
    assert (found["stage_logits"][FIRST][LOSS] - norm) / GIB == pytest.approx(27.40, abs=0.01)
    assert norm / GIB == 0.25
    assert found["allocated"] / GIB == pytest.approx(77.0, rel=0.015)
    assert found["stage_peak"][FIRST] == found["memory_use"][FIRST][LOSS]


def test_llama_in_nemo_after_a_step():
    """36.17 GB stay allocated: (6 + 12/4) bytes a weight of the stage with the head (tp 1, pp 2, dp 4)."""
    found = on("llama-3.1-8b", "dgx-h100:8", "pp=2 zero=1", 2048, 64)()
    assert sum(found[state][LAST] for state in STATES) == pytest.approx(36.17e9, rel=0.002)


def test_7b_of_megatron_item_by_item():
    """tp 4, dp 2, two sequences of 8192: states 20.56, logits 3.23, norm and head input 0.27 GB."""
    model = decoder(
        layers=32,
        hidden_size=4096,
        ffn_size=16384,
        heads=32,
        kv_heads=8,
        head_size=128,
        vocabulary=131073,
        gated_ffn=False,
        norm="layernorm",
        attention_bias="qkvo",
        ffn_bias=True,
        positions=8192,
    )
    found = on(model, "dgx-h100:8", "tp=4 mbs=2 zero=1 sp=0", 8192, 8)()
    assert sum(found[state][FIRST] for state in STATES) == pytest.approx(20.56e9, rel=0.001)
    norm = 2 * 2 * 4096 * 2 * 8192
    assert norm == pytest.approx(0.27e9, rel=0.01)
    assert found["stage_logits"][FIRST][LOSS] == pytest.approx(3.23e9 + norm, rel=0.002)
    masks = 2 * 4096 * 16384 * 32
    assert found["stage_activations"][FIRST][LOSS] + masks == pytest.approx(32.77e9, rel=0.002)


@pytest.mark.parametrize(
    ("vocabulary", "tp", "padded"), [(50257, 1, 50304), (50257, 8, 51200), (128256, 1, 128256), (128256, 8, 129024)]
)
def test_vocabulary_is_padded_to_128_a_rank(vocabulary, tp, padded):
    found = on(decoder(vocabulary=vocabulary), "dgx-h100:8", f"tp={tp}", 1024, 8)()
    assert found["padded_vocabulary"] == padded
    assert found["vocabulary_on_rank"] == padded / tp


def test_states_of_a_weight_add_up_to_18_bytes_shared_or_not():
    small = decoder(layers=8)
    for zero, held in ((0, 18), (1, 6 + 12 / 8), (2, 2 + 16 / 8), (3, 18 / 8)):
        found = on(small, "dgx-h100:8", f"zero={zero}", 1024, 8)()
        states = sum(found[state][FIRST] for state in STATES)
        assert states == pytest.approx(held * found["stage_parameters"][FIRST], rel=1e-12)


def test_tpu_weights_are_their_own_master_copy():
    found = on(decoder(), "tpu-v5e:2x2", "zero=3", 1024, 4)()
    assert sum(found[state][FIRST] for state in STATES) == pytest.approx(16 * found["stage_parameters"][FIRST] / 4)


def test_a_tied_head_on_its_own_stage_is_held_twice():
    tied = decoder(tied_embeddings=True, layers=8)
    untied = replace(tied, tied_embeddings=False)
    alone = [on(model, "dgx-h100:8", "", 1024, 8)()["stage_parameters"][FIRST] for model in (tied, untied)]
    assert alone[1] - alone[0] == 32000 * 1024
    apart = [on(model, "dgx-h100:8", "pp=2", 1024, 8)()["stage_parameters"] for model in (tied, untied)]
    assert apart[0] == apart[1]


def test_the_fullest_stage_is_the_second_where_the_first_has_a_layer_less():
    """126 layers in 16 stages: 7, then 8 each, then 7; the second holds 8 layers of 15 micro-batches, the first 7 of 16."""
    found = on("llama-3.1-405b", "dgx-h100:1024", "tp=8 pp=16 dp=8 recompute=selective", 8192, 512)()
    assert found["stage_layers"] == [7, 8, 7]
    assert found["in_flight"] == [16, 15, 1]
    assert max(found["stage_peak"]) == found["stage_peak"][MIDDLE]


def test_the_last_stage_is_fullest_with_a_large_vocabulary_and_full_recomputation():
    wide = decoder(vocabulary=256_000, layers=8)
    found = on(wide, "dgx-h100:8", "pp=4 mbs=4 recompute=full", 8192, 64)()
    assert max(found["stage_peak"]) == found["stage_peak"][LAST] == found["memory_use"][LAST][LOSS]


def test_the_optimizer_step_can_be_the_fullest_moment():
    """A recipe that copies weights to fp32 for the step, and next to no activations."""
    found = on(decoder(layers=32), "dgx-h100:8", "recompute=full", 128, 8)(step_extra_bytes=8)
    assert found["stage_peak"][FIRST] == found["memory_use"][FIRST][OPTIMIZER]
    assert found["memory_optimizer"] == pytest.approx(found["stage_parameters"][FIRST] * (12 / 8 + 8 / 8), rel=1e-12)


def test_full_recomputation_runs_one_layer_again_at_its_peak():
    found = on("llama-3-8b", "dgx-h100:8", "zero=0 recompute=full", 8192, 8)()
    assert found["recomputed_layer"] == found["whole_layer"] - found["layer_input"]
    backward, forward = (found["memory_use"][FIRST][phase] for phase in (BACKWARD, FORWARD))
    assert backward - forward == pytest.approx(found["recomputed_layer"], rel=1e-9)


def test_one_layer_of_four_is_run_again_whole():
    every, fourth = (on("llama-3-8b", "dgx-h100:8", f"recompute={mode}", 8192, 8)() for mode in ("full", "full/4"))
    assert fourth["recomputed_layer"] == every["recomputed_layer"]
    kept = 24 * every["whole_layer"] + 8 * every["layer_input"]
    assert fourth["stage_activations"][FIRST][FORWARD] == kept


def test_fsdp_gathers_two_layers_and_the_tables():
    """Two blocks, current and prefetched, embedding and head, in two bytes; one block's gradients in four, the head's in two."""
    found = on("llama-3-8b", "dgx-h100:8", "zero=3", 8192, 8)()
    layer, table = 218_112_000, 128_256 * 4096
    assert found["layer_parameters"] == layer
    assert found["gathered_weights"][FIRST] == 2 * (2 * layer + 2 * table + 4096)
    assert found["unsharded_gradients"] == [4 * layer] * 3
    assert found["unsharded_head_gradient"][FIRST] == 2 * table
    assert on("llama-3-8b", "dgx-h100:8", "zero=1", 8192, 8)()["unsharded_head_gradient"][FIRST] == 0


@settings(max_examples=40)
@given(cases())
def test_what_is_reserved_and_used_follows_from_what_is_allocated(case):
    found = case()
    assert found["reserved"] == found["allocated"] * found["reserved_factor"]
    assert found["device_used"] - found["reserved"] == pytest.approx(
        found["context_bytes"] + found["communicator_bytes"]
    )
    assert found["margin"] == found["memory_capacity"] - found["device_used"]
    worst = max(max(stage) for stage in found["memory_use"])
    assert found["allocated"] == worst + found["workspace_bytes"]


def test_buffers_of_communication_grow_beyond_sixteen_nodes():
    few, many = (on(decoder(), f"dgx-h100:{chips}", "", 1024, chips)() for chips in (128, 256))
    assert (few["communicator_bytes"], many["communicator_bytes"]) == (3 * GIB, 6 * GIB)


@settings(max_examples=40)
@given(cases())
def test_every_phase_holds_what_it_holds(case):
    """States always; activations, gathered weights and messages until the optimizer runs; logits and what is run again once;
    the tokens that a layer's products gather while layers run.
    """
    found = case()
    held = range(3) if case.layout.pp > 2 else (FIRST, LAST)[: case.layout.pp]
    messages = 2 * found["layer_input"] if case.layout.pp > 1 else 0
    for stage in held:
        states = sum(found[state][stage] for state in STATES)
        running = states + found["gathered_weights"][stage] + messages
        running += found["kept_layer"] * found["stage_layers"][stage] * found["in_flight"][stage]
        logits = found["stage_logits"][stage][LOSS] + found["unsharded_head_gradient"][stage]
        again = found["recomputed_layer"] + found["unsharded_gradients"][stage]
        gathered = found["gathered_sequence"]
        expected = [running + gathered, running + logits, running + gathered + again, states]
        assert found["memory_use"][stage] == pytest.approx(expected, rel=1e-9)
