"""Attention by blocks: counted blocks, published figures, and the laws of a roofline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.kernels.fused_attention import BackwardAttention, Blocks, DecodeAttention, PrefillAttention
from costmodel.symbolic import compile_math

blocks = compile_math(Blocks.system)
prefill = compile_math(PrefillAttention.system)
backward = compile_math(BackwardAttention.system)
decode = compile_math(DecodeAttention.system)
CHIP = {"units": 100, "peak": 1e15, "memory_bandwidth": 1e12}
BYTES = {"element_size": 2, "kv_element_size": 2}
ALL = {"window": 0, "causal": 1, "context_tokens": 0, "block_tokens": 128}
FIT = {"peak_share": 0.8, "exponential_rate": 4e12, "memory_share": 0.5, "start": 1e-5}


def counted(tokens, context, window, causal, size):
    """Blocks with at least one pair, one by one; a window reaches one block further than it is long."""
    queries, before = -(-tokens // size), -(-context // size)
    keys = queries + before
    seen = min(-(-window // size) + 1, keys) if window and window < tokens + context else keys
    if not causal:
        return queries * keys
    return sum(min(q + 1 + before, seen) for q in range(queries))


@given(st.integers(1, 5000), st.integers(0, 3000), st.integers(0, 6000), st.sampled_from((0, 1)))
def test_blocks_are_those_one_would_count(tokens, context, window, causal):
    found = blocks(tokens=tokens, context_tokens=context, window=window, causal=causal, block_tokens=128)
    assert found["blocks"] == counted(tokens, context, window, causal, 128)
    assert found["blocks"] * 128 * 128 >= found["pairs"]
    assert found["longest_row"] <= found["key_blocks"]


def test_half_of_the_square_is_counted_in_pairs():
    assert blocks(tokens=4096, **ALL)["pairs"] == 4096**2 / 2
    assert blocks(tokens=4096, **ALL)["blocks"] == 32 * 33 / 2


@pytest.mark.parametrize(("head_size", "published"), [(64, 497), (128, 648), (256, 756)])
def test_matrix_work_and_exponentials_in_turn(head_size, published):
    """FlashAttention-3, H100, 16k, no mask: 4 d at 914 TFLOP/s and an exponential at 4.29e12 a second for each pair."""
    found = prefill(
        tokens=16384,
        sequences=1,
        heads=16,
        kv_heads=16,
        head_size=head_size,
        row_start=0,
        units=132,
        peak=989.4e12,
        memory_bandwidth=3.35e12,
        **BYTES,
        **ALL | {"causal": 0},
        peak_share=914 / 989.4,
        exponential_rate=4.29e12,
        memory_share=1.0,
        start=0.0,
    )
    assert found["work"] / found["compute_time"] / 1e12 == pytest.approx(published, rel=0.01)


@given(st.integers(1, 20_000), st.integers(1, 64), st.sampled_from((64, 128)), st.sampled_from((0, 1)))
def test_attention_is_never_faster_than_its_roofline(tokens, heads, head_size, causal):
    shape = {"tokens": tokens, "sequences": 1, "heads": heads, "kv_heads": heads, "head_size": head_size}
    asked = {**shape, **CHIP, **BYTES, **ALL, "causal": causal, **FIT}
    for found in (prefill(row_start=0, **asked), backward(backward_factor=1.4, **asked)):
        assert found["time"] >= found["work"] / CHIP["peak"]
        assert found["time"] >= found["traffic"] / CHIP["memory_bandwidth"]


@given(st.integers(1, 300_000), st.integers(1, 512), st.sampled_from((1, 2, 8)))
def test_decoding_streams_the_cache(context, sequences, kv_heads):
    found = decode(
        context_tokens=context,
        window=0,
        sequences=sequences,
        heads=8,
        kv_heads=kv_heads,
        head_size=128,
        cache_copies=float("inf"),
        cache_reach=1.2,
        cache_capacity=5e7,
        memory_share=0.9,
        start=1e-5,
        item_time=2e-6,
        cached_speedup=1.0,
        **CHIP,
        **BYTES,
    )
    assert found["kv_bytes"] == 4 * sequences * kv_heads * (context + 1) * 128
    assert found["time"] >= found["traffic"] / CHIP["memory_bandwidth"]
    assert found["share_of_bandwidth"] <= 0.9
