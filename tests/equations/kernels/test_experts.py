"""The expert block on round numbers, and its limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.kernels.experts import ExpertBlock
from costmodel.equations.kernels.gemm import Gemm
from costmodel.equations.kernels.tiles import KERNEL_AXES
from costmodel.symbolic import compile_math

experts = compile_math(ExpertBlock.system, looped=KERNEL_AXES)
CHIP = {
    "weight_size": 2,
    "activation_size": 2,
    "column_tile": 128,
    "units": 100,
    "peak": 1e15,
    "memory_bandwidth": 1e12,
    "peak_share": 0.8,
    "memory_share": 0.9,
    "unit_bandwidth": 1e12,
    "activation_share": 0.5,
    "start": 2e-5,
    "expert_start": 0.0,
    "listing_time": 0.0,
    "cache_capacity": 5e7,
    "cached_speedup": 1.0,
    "cache_reach": 1.2,
    "weight_copies": float("inf"),
}
SHAPE = {"hidden_size": 4096, "expert_ffn_size": 1024, "experts": 64, "chosen": 4, "gated": 1}


def block(tokens, **more):
    return experts(tokens=tokens, **CHIP | SHAPE | more)


def test_one_token_streams_the_weights_of_its_experts():
    """Four experts of three matrices of 4096 x 1024 in two bytes: 100.7 MB at 0.9 of 1e12 a second."""
    found = block(1)
    assert found["active"] == 4
    assert found["weight_time"] == pytest.approx(4 * 3 * 4096 * 1024 * 2 / 0.9e12)
    assert found["time"] == pytest.approx(2e-5 + found["weight_time"] + found["activation_time"], rel=0.01)


def test_many_tokens_fill_the_tiles():
    found = block(64 * 1024)
    assert found["active"] == 64
    assert found["rows_each"] == 4096
    assert found["best_rows"] == 128
    assert found["compute_time"] == pytest.approx(found["work"] / (0.8 * 1e15))


@given(st.integers(1, 100_000))
def test_never_faster_than_the_roofline(tokens):
    found = block(tokens)
    assert found["time"] >= found["work"] / CHIP["peak"]
    assert found["time"] >= found["traffic"] / CHIP["memory_bandwidth"]
    assert block(2 * tokens)["time"] >= found["time"] * (1 - 1e-12)


def test_one_expert_that_all_tokens_go_to_is_dense():
    """The work is that of three plain products."""
    found = block(512, experts=1, chosen=1)
    plain = compile_math(Gemm.system, ["work"])(groups=3, M=512, N=1024, K=4096)
    assert found["work"] == plain["work"]
    assert found["active"] == 1


@given(st.integers(1, 100_000))
def test_without_a_gate_two_thirds_of_work_and_weights(tokens):
    gated, bare = block(tokens), block(tokens, gated=0)
    for quantity in ("work", "weight_bytes"):
        assert bare[quantity] == pytest.approx(gated[quantity] * 2 / 3)
    assert bare["time"] < gated["time"]


def test_listing_counts_experts_that_no_token_comes_to():
    """A token and 256 experts at 0.25 us each: 64 us, however few are active; starting four on 100 units a 25th of one start."""
    found = block(1, experts=256, listing_time=2.5e-7, expert_start=1e-5)
    assert found["experts_time"] == pytest.approx(64e-6 + 4e-5 / 100)
