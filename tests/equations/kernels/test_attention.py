"""Fused attention: which pairs it counts, and on a chip with round numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.catalog.counts import flop_counts
from costmodel.equations.axes import ATTENTION_KERNELS
from costmodel.equations.kernels.attention import Attention
from costmodel.symbolic import compile_math
from tests.equations.model.shapes import one_document
from tests.equations.training.drawn import decoder

evaluate = one_document(compile_math(Attention.system))
FUSED, UNFUSED = range(2)
CHIP = {
    "half_peak": 1e15,
    "half_share": 0.5,
    "misalignment_slope": 0,
    "short_vector_factor": 1,
    "attention_kernel": FUSED,
    "attention_block": 1,
    "attention_head_multiple": 1,
    "score_traffic_forward": 6,
    "score_traffic_backward": 11,
    "score_dropout_traffic": 0,
    "attention_share": 0.5,
    "exponential_rate": 4e12,
    "attention_backward_factor": 1.5,
    "launch_gap": 1e-6,
    "element_size": 2,
    "memory_bandwidth": 3e12,
    "memory_share": 0.9,
    "cp": 1,
    "ring_ranks": 1,
    "cp_type": 0,
}


def attention(sequence_length, window=None, *, sequences=1, heads=1, head_size=128, **chip):
    return evaluate(
        sequences=sequences,
        sequence_length=sequence_length,
        window=window or sequence_length,
        attention_heads=heads,
        head_size=head_size,
        **CHIP | chip,
    )


@given(st.integers(1, 300), st.integers(1, 400))
def test_pairs_under_the_mask_counted_one_by_one(length, window):
    """The pair on the diagonal counts half."""
    pairs = sum(min(query, window) - (0.5 if query <= window else 0) for query in range(1, length + 1))
    assert attention(length, window)["causal_pairs"] == pairs


def test_on_round_numbers():
    """5e7 pairs of 128 features: 512 FLOP at half of 1e15 a second, an exponential at 4e12 a second."""
    found = attention(10_000)
    assert found["causal_pairs"] == 5e7
    assert found["forward"] == pytest.approx(1e-6 + 5e7 * (512 / 5e14 + 1 / 4e12))
    assert found["backward"] == pytest.approx(1e-6 + 5e7 * (1.5 * 1280 / 5e14 + 1 / 4e12))


@given(st.integers(1, 4), st.integers(64, 8192), st.sampled_from((0, 100, 4096)))
def test_its_work_is_that_of_the_model_flops(sequences, length, window):
    model = decoder(layers=1, window=window)
    found = attention(
        length, window, sequences=sequences, heads=16, head_size=64, launch_gap=0, exponential_rate=float("inf")
    )
    work = flop_counts(model, length)["attention_flops_causal"] * length * sequences
    assert found["forward"] * 0.5e15 == pytest.approx(work, rel=1e-9)


@given(st.integers(1, 4000), st.integers(1, 4000))
def test_a_window_never_costs_and_one_as_long_as_the_sequence_changes_nothing(length, window):
    windowed, whole = attention(length, window), attention(length)
    assert windowed["forward"] <= whole["forward"] and windowed["backward"] <= whole["backward"]
    if window >= length:
        assert windowed["forward"] == whole["forward"]


@given(st.integers(1, 40), st.sampled_from((1, 2, 8)))
def test_blocks_on_the_diagonal_are_computed_whole(blocks, block):
    """Counted block by block: those below the diagonal and those on it, with the pair on the diagonal as half."""
    length = blocks * block
    computed = sum(min((query // block + 1) * block, length) for query in range(length))
    assert attention(length, attention_block=block)["pairs"] == computed - length / 2


@pytest.mark.parametrize(("size", "filled"), [(128, 128), (96, 96), (150, 160), (1, 32)])
def test_heads_are_filled_up(size, filled):
    assert attention(1000, head_size=size, attention_head_multiple=32)["filled_head_size"] == filled


def test_unfused_attention_on_round_numbers():
    """1000 tokens, 4 heads of 100: two products of 2e8 FLOP a head, and 1e6 scores a head of 6 and 11 bytes."""
    assert ATTENTION_KERNELS == ("fused", "unfused")
    ideal = {"memory_bandwidth": 1e12, "memory_share": 1, "launch_gap": 0, "half_share": 1, "attention_kernel": UNFUSED}
    found = attention(1000, heads=4, head_size=100, **ideal)
    products = found["score_product_time"] + found["value_product_time"]
    assert found["score_product_work"] == found["value_product_work"] == 4 * 2e8
    assert found["forward"] == pytest.approx(products + 4e6 * 6 / 1e12)
    assert found["backward"] == pytest.approx(2 * products + 4e6 * 11 / 1e12)
    # Each product writes or reads the scores once more: 4e6 of 2 bytes, beside 4 x 2 x 1e5 features
    assert found["score_product_memory_time"] == pytest.approx((4e6 + 8e5) * 2 / 1e12)


@given(st.integers(256, 4000), st.integers(1, 4000))
def test_a_window_saves_nothing_where_attention_is_not_fused(length, window):
    kinds = [attention(length, span, attention_kernel=UNFUSED)["forward"] for span in (None, window)]
    assert kinds[0] == kinds[1]


@given(st.integers(512, 8192), st.sampled_from((64, 128)))
def test_fused_attention_is_faster(length, head_size):
    fused, unfused = (
        attention(length, heads=16, head_size=head_size, attention_kernel=kind) for kind in (FUSED, UNFUSED)
    )
    assert fused["forward"] < unfused["forward"] and fused["backward"] < unfused["backward"]
