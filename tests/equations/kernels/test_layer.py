"""A decoder layer as a whole: what is in it, and what recomputation runs again."""

import pytest
from hypothesis import given, settings

from costmodel.equations.axes import MATMUL
from tests.equations.training.drawn import cases, decoder, on

few = settings(max_examples=settings.default.max_examples // 2)


@few
@given(cases())
def test_full_recomputation_runs_the_forward_pass_again(case):
    found = case.laid(recompute="full")()
    assert found["recomputed_compute"] == found["forward_compute"]
    parts = found["matmul_forward"] + found["attention_forward"] + found["between_forward"]
    assert found["forward_work"] == pytest.approx(parts, rel=1e-12)
    assert found["forward_work"] <= found["forward_compute"] <= found["forward_work"] + found["host_forward"]


@few
@given(cases())
def test_selective_recomputation_runs_every_second_product_again(case):
    found = case.laid(recompute="selective")()
    assert found["between_forward"] < found["recomputed_compute"] < found["forward_compute"]


@pytest.mark.parametrize(("layout", "split"), [("", (1, 1)), ("tp=4 sp=1", (4, 4)), ("tp=4 sp=0", (1, 4))])
def test_light_recomputation_moves_the_bytes_of_norms_and_activation(layout, split):
    """At 8e12 attained bytes a second and 1000 tokens: 8 h of the two norms and 6 f of the gate take 1 and 3 ms."""
    model = decoder(hidden_size=1_000_000, ffn_size=4_000_000, heads=4, kv_heads=4, head_size=1024)
    case = on(model, "dgx-h100:8", layout, 1000, 8)
    ideal = {"memory_bandwidth": 8e12, "memory_share": 1, "elementwise_traffic_factor": 1}
    again = {
        mode: case.laid(recompute=mode)(**ideal)["recomputed_compute"] for mode in ("norms", "mlp-product", "light")
    }
    norms, activation = 1e-3 / split[0], 3e-3 / split[1]
    assert again["norms"] == pytest.approx(norms, rel=1e-12)
    assert again["mlp-product"] == pytest.approx(activation, rel=1e-12)
    assert again["light"] == pytest.approx(norms + activation, rel=1e-12)


@few
@given(cases(most_cp=4))
def test_recomputing_attention_runs_its_kernel_again(case):
    found = case.laid(recompute="attention")()
    assert found["recomputed_compute"] == found["attention_forward"]


def test_every_second_product_of_a_gated_layer():
    """Of query, key, value, output, gate, up and down: key, output and up."""
    found = on(decoder(heads=16, kv_heads=4), "dgx-h100:8", "recompute=selective", 1024, 8)()
    share = dict(zip(MATMUL.labels, found["recomputed_products"], strict=True))
    assert {name: share[name] for name in ("qkv", "attention_output", "ffn_in", "ffn_out")} == {
        "qkv": 256 / 1536,
        "attention_output": 1,
        "ffn_in": 0.5,
        "ffn_out": 0,
    }


def test_sliding_layers_take_their_share_of_attention():
    """Five of six layers see 512 tokens back: 31.5/128 of a whole triangle of 4096, the sixth all of it."""
    whole = on(decoder(layers=6), "dgx-h100:8", "", 4096, 8)(attention_block=1)
    sliding = on(decoder(layers=6, window=512, window_every=6), "dgx-h100:8", "", 4096, 8)(attention_block=1)
    assert sliding["sliding_share"] == pytest.approx(5 / 6)
    seen = (512 * 4096 - 512**2 / 2) / (4096**2 / 2)
    kernel = whole["attention_forward"] - whole["launch_gap"]
    assert sliding["attention_forward"] - sliding["launch_gap"] == pytest.approx(kernel * (1 / 6 + 5 / 6 * seen))


def test_layers_with_chunks_take_their_share_of_attention():
    """Three of four layers attend inside chunks of 1024: 16384 tokens are sixteen triangles of 1/256 of the whole one."""
    shape = {"layers": 4, "attention_chunk": 1024, "window_every": 4}
    whole = on(decoder(layers=4), "dgx-h100:8", "", 16384, 8)(attention_block=1)
    chunked = on(decoder(**shape), "dgx-h100:8", "", 16384, 8)(attention_block=1)
    assert chunked["sliding_share"] == 3 / 4
    for way in ("forward", "backward"):
        kernel = whole[f"attention_{way}"] - whole["launch_gap"]
        expected = kernel * (1 / 4 + 3 / 4 / 16)
        assert chunked[f"attention_{way}"] - chunked["launch_gap"] == pytest.approx(expected)
    assert chunked["attention_flops_causal"] == pytest.approx(whole["attention_flops_causal"] * (1 / 4 + 3 / 4 / 16))


def test_a_chunk_as_long_as_the_sequence_changes_nothing():
    whole = on(decoder(layers=4), "dgx-h100:8", "cp=2", 4096, 8)()
    chunked = on(decoder(layers=4, attention_chunk=8192, window_every=2), "dgx-h100:8", "cp=2", 4096, 8)()
    assert chunked["sliding_share"] == 1 / 2
    assert chunked["step_time"] == pytest.approx(whole["step_time"], rel=1e-12)


def test_the_loss_is_three_products_with_the_head_and_a_softmax():
    found = on(decoder(vocabulary=64_000), "dgx-h100:8", "", 2048, 8)()
    work = 2 * 2048 * 64_000 * 1024
    assert found["head_work"] == [work] * 3
    assert found["loss_compute"] == pytest.approx(sum(found["head_time"]) + found["softmax_time"], rel=1e-12)


def test_a_loss_in_pieces_launches_each_and_adds_their_gradients():
    """Eight pieces of 256 tokens: each reads the head; seven gradients of 64000 x 1024 in two bytes are added, 3 passes each."""
    case = on(decoder(vocabulary=64_000), "dgx-h100:8", "", 2048, 8)
    ideal = {"memory_bandwidth": 1e12, "memory_share": 1, "misalignment_slope": 0, "short_vector_factor": 1}
    whole, pieces = case(**ideal), case.on(loss_chunks=8)(**ideal)
    assert pieces["head_work"] == [work / 8 for work in whole["head_work"]]
    assert pieces["gradient_of_pieces"] == pytest.approx(7 * 3 * 2 * 64_000 * 1024 / 1e12, rel=1e-12)
    assert whole["gradient_of_pieces"] == 0
    weights = 2 * 64_000 * 1024  # bytes that the forward pass and both gradients of each piece move
    assert 8 * sum(pieces["head_traffic"]) - sum(whole["head_traffic"]) == 7 * 3 * weights
    expected = 8 * sum(pieces["head_time"]) + pieces["softmax_time"] + pieces["gradient_of_pieces"]
    assert pieces["loss_compute"] == pytest.approx(expected, rel=1e-12) and expected > whole["loss_compute"]


@few
@given(cases())
def test_more_pieces_of_the_loss_never_take_less_time_nor_more_memory(case):
    even = {"misalignment_slope": 0, "short_vector_factor": 1}
    one, two, four = (case.on(loss_chunks=n)(**even) for n in (1, 2, 4))
    for fewer, more in ((one, two), (two, four)):
        assert fewer["loss_compute"] < more["loss_compute"]
        assert fewer["loss_forward"] < more["loss_forward"]
        assert more["stage_logits"][0][1] <= fewer["stage_logits"][0][1]
