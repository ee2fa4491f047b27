"""Matrix products on a chip with round numbers, and the laws of a roofline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.catalog.counts import parameter_counts
from costmodel.equations.axes import MATMUL
from costmodel.equations.kernels.matmul import Matmul
from costmodel.symbolic import compile_math
from tests.equations.training.drawn import decoder, on

evaluate = compile_math(Matmul.system)
CHIP = {
    "element_size": 2,
    "operand_size": 2,
    "misalignment_slope": 0,
    "short_vector_factor": 1,
    "peak": 1e15,
    "matmul_share": 0.5,
    "memory_bandwidth": 1e12,
    "memory_share": 0.8,
    "launch_gap": 1e-6,
}
sizes = st.builds(lambda power, odd: 2**power * odd, st.integers(0, 12), st.sampled_from((1, 3, 5, 7)))
POWERS = st.sampled_from((1.0, 2.0, 1024.0))


def product(M, N, K, **chip):
    return evaluate(M=M, N=N, K=K, groups=1, **CHIP | chip)


def test_a_square_product_on_round_numbers():
    """2e12 FLOP at half of 1e15 a second: 4 ms. 6e8 bytes at 0.8 of 1e12 a second: 0.75 ms. 4.009 ms with the launch."""
    found = product(10_000, 10_000, 10_000)
    assert found["compute_time"] == pytest.approx(4e-3)
    assert found["memory_time"] == pytest.approx(0.75e-3)
    assert found["time"] == pytest.approx(1e-6 + (64 + 0.421875) ** (1 / 3) * 1e-3)


def test_one_row_is_bound_by_memory():
    """The weights are read once: 2e8 bytes, 0.25 ms; the arithmetic takes 0.4 us."""
    found = product(1, 10_000, 10_000)
    assert found["time"] == pytest.approx(0.25e-3, rel=0.01)


@given(sizes, sizes, sizes)
def test_never_faster_than_the_roofline_nor_slower_than_no_overlap(M, N, K):
    found = product(M, N, K)
    parts = found["compute_time"], found["memory_time"]
    assert max(parts) * (1 - 1e-12) <= found["time"] - CHIP["launch_gap"] <= sum(parts) * (1 + 1e-12)
    assert found["compute_time"] >= 2 * M * N * K / CHIP["peak"]
    assert found["memory_time"] >= 2 * (M * K + K * N + M * N) / CHIP["memory_bandwidth"]


@given(sizes, sizes, sizes)
def test_the_transposed_product_takes_as_long(M, N, K):
    assert product(M, N, K)["time"] == pytest.approx(product(N, M, K)["time"], rel=1e-12)


@given(sizes, sizes, sizes, st.sampled_from("MNK"))
def test_more_work_takes_longer(M, N, K, axis):
    shape = {"M": M, "N": N, "K": K}
    assert product(**shape | {axis: 2 * shape[axis]})["time"] > product(**shape)["time"]
    assert product(**shape | {axis: 2 * shape[axis]})["time"] < 2 * product(**shape)["time"]


@given(sizes, sizes, sizes, st.sampled_from(("peak", "matmul_share", "memory_bandwidth", "memory_share")), POWERS)
def test_a_faster_chip_is_no_slower(M, N, K, part, times):
    assert product(M, N, K, **{part: times * CHIP[part]})["time"] <= product(M, N, K)["time"]


@pytest.mark.parametrize(
    ("N", "K", "factor"),
    [
        (4096, 4096, 1),
        (64, 64, 1),
        (32, 64, 1.06),
        (4096, 108, 1.24 * 2),
        (1800, 14400, 1.18),
        (4096, 150, 1.3 * 4),
        (1, 1, 1.36 * 8),
    ],
)
def test_odd_sizes_take_longer(N, K, factor):
    """6 % for each halving below 64 of the power of two in both; twice as long for each below 8, which is 16 bytes."""
    odd = product(1000, N, K, misalignment_slope=0.06, short_vector_factor=2)
    assert odd["compute_time"] == pytest.approx(factor * product(1000, N, K)["compute_time"])


def test_eight_bits_halve_the_operands_and_not_the_result():
    found = product(1000, 2000, 4000, operand_size=1)
    assert found["traffic"] == 1000 * 4000 + 2000 * 4000 + 2 * 1000 * 2000


def layer_products(model, tokens, tp):
    return on(model, "dgx-h100:8", f"tp={tp} sp=0 dp={8 // tp}", tokens, 8)()


@given(st.sampled_from((1, 2, 4, 8)), st.booleans(), st.sampled_from((2, 8, 16)), st.integers(1, 5000))
def test_products_of_a_layer_are_its_weights_times_its_tokens(tp, gated, kv_heads, tokens):
    """Forward and both gradients: two FLOP a weight and token each, shared by the tensor-parallel ranks."""
    model = decoder(gated_ffn=gated, kv_heads=kv_heads)
    counts = parameter_counts(model)
    weights = counts["attention_matrices"] + counts["ffn_matrices"]
    found = layer_products(model, tokens, tp)
    for part in found["product_work"]:
        assert sum(work * share for work, share in zip(part, found["present"], strict=True)) * tp == pytest.approx(
            2 * weights * tokens, rel=1e-12
        )


def test_shapes_of_llama_8b_on_two_ranks():
    model = decoder(hidden_size=4096, ffn_size=14336, heads=32, kv_heads=8, head_size=128)
    found = layer_products(model, 8192, 2)
    shapes = dict(zip(MATMUL.labels, zip(found["features_in"], found["features_out"], strict=True), strict=True))
    present = [name for name, share in zip(MATMUL.labels, found["present"], strict=True) if share]
    assert {name: shapes[name] for name in present} == {
        "qkv": (4096, 3072),
        "attention_output": (2048, 4096),
        "ffn_in": (4096, 14336),
        "ffn_out": (7168, 4096),
    }
