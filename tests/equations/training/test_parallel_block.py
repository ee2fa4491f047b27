"""Attention and feed-forward side by side: traffic, bytes and time worked out by hand, and laws against one after the other."""

import pytest
from hypothesis import given

from costmodel.studies.traffic import traffic_inputs
from tests.equations.training.drawn import cases, decoder, mixture, on
from tests.laws.test_parallelism_laws import sent
from tests.laws.test_training_laws import at_most, few, no_slower

GPT_J = {"parallel_block": True, "norms_per_layer": 1}
NEOX = {"parallel_block": True, "norms_per_layer": 2}


def layer(layout, **sizes):
    return on(decoder(**sizes), "dgx-h100:8", layout, 1024, 8)()


@pytest.mark.parametrize("shape", [GPT_J, NEOX])
@pytest.mark.parametrize(
    ("layout", "forward", "backward"),
    [
        ("tp=8 sp=0", {"all_reduce": 1}, {"all_reduce": 1}),
        ("tp=8 sp=1", {"all_gather": 1, "reduce_scatter": 1}, {"all_gather": 2, "reduce_scatter": 1}),
    ],
)
def test_one_collective_pair_a_layer_and_direction(shape, layout, forward, backward):
    found = layer(layout, **shape)
    for way, counts in (("forward", forward), ("backward", backward)):
        expected = sum(times * found[f"along_tp_{kind}"] for kind, times in counts.items())
        assert found[f"tensor_{way}"] == pytest.approx(expected)
        assert found[f"tensor_{way}"] == layer(layout)[f"tensor_{way}"] / 2


def test_a_layer_of_experts_sends_once_among_tensor_parallel_ranks_whatever_it_holds():
    """Attention alone where all experts are routed, with the shared one in the same sum where there is one."""
    for shared in (0, 1):
        held = mixture(shared=shared, **GPT_J)
        found = on(held, "dgx-h100:8", "tp=8 ep=8 etp=1 sp=1", 1024, 8)()
        assert found["tp_blocks"] == 1


@pytest.mark.parametrize(
    ("shape", "states", "outputs"),
    [
        ({}, 4, 2),  # what two norms read and write
        (GPT_J, 2, 1),  # what one norm reads and writes
        (NEOX, 3, 2),  # what both norms read, once, and what each writes
    ],
)
def test_hidden_states_kept_by_a_layer(shape, states, outputs):
    """1024 tokens of 1024 features in two bytes are 2 MiB."""
    found = layer("", **shape)
    assert found["kept_outside"] == states * 2 * 2**20
    assert found["norm_outputs"] == outputs * 2 * 2**20


@pytest.mark.parametrize(
    ("shape", "forward", "backward"),
    [
        ({}, 20, 24),
        (GPT_J, 4 + 8, 6 + 8),  # one norm, one sum of three
        (NEOX, 8 + 8, 12 + 8),
    ],
)
def test_bytes_of_a_hidden_feature_through_memory(shape, forward, backward):
    """At 1e12 attained bytes a second, a feed-forward and rotary positions of no traffic: 1024 tokens of 1024 features."""
    ideal = {
        "memory_bandwidth": 1e12,
        "memory_share": 1,
        "elementwise_traffic_factor": 1,
        "rotary_bytes": 0,
        **{f"gated_activation_bytes_{way}": 0 for way in ("forward", "backward")},
    }
    found = on(decoder(**shape), "dgx-h100:8", "", 1024, 8)(**ideal)
    assert found["between_forward"] == pytest.approx(2**20 * forward / 1e12)
    assert found["between_backward"] == pytest.approx(2**20 * backward / 1e12)


@pytest.mark.parametrize(("shape", "kernels"), [({}, 16), (GPT_J, 14), (NEOX, 15)])
def test_kernels_launched(shape, kernels):
    found = on(decoder(**shape), "dgx-h100:8", "", 1024, 8)(launch_time=1e-6, cast_kernels=0)
    assert found["host_forward"] == pytest.approx(kernels * 1e-6)


def test_a_feed_forward_that_is_run_again_sends_nothing_again():
    """Its input is gathered for the backward pass of both anyway, and its result is not summed by itself."""
    assert layer("tp=8 sp=1 recompute=mlp")["repeated_tp"] == 1 / 2
    assert layer("tp=8 sp=1 recompute=mlp", **GPT_J)["repeated_tp"] == 0
    assert layer("tp=8 sp=1 recompute=full", **GPT_J)["repeated_tp"] == 1


def test_bytes_sent_are_half():
    for split in ("sp=0", "sp=1"):
        one, two = (on(decoder(**shape), "dgx-h100:8", f"tp=8 {split}", 1024, 8) for shape in (GPT_J, {}))
        assert 2 * sent(one)["sent_tp"] == sent(two)["sent_tp"] > 0
        assert "tp_blocks" in traffic_inputs(one.inputs, one())


@few
@given(cases())
def test_side_by_side_never_costs_more(case):
    """As much work, less traffic, fewer bytes kept, no rule broken that was kept."""
    plain, beside = case(), case.of(**GPT_J)()
    two_norms = case.of(**NEOX)()
    for better, worse in ((beside, two_norms), (two_norms, plain)):
        no_slower(better, worse)
        for what in ("kept_layer", "between_forward", "between_backward", "host_forward", "tensor_backward"):
            at_most(better[what], worse[what])
    for what in ("model_flops", "hardware_flops", "matmul_forward", "attention_forward"):
        assert beside[what] == pytest.approx(plain[what], rel=1e-12)
