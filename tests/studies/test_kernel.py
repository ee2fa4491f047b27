"""One kernel on one chip: parts that add up, bounds, better neighbours, and sentences for what cannot be asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import costmodel
from costmodel.studies.kernel_shapes import KINDS

PRODUCT = {"rows": 8192, "columns": 8192, "features": 8192}
SHAPES = {
    "matmul": PRODUCT,
    "grouped-matmul": {**PRODUCT, "groups": 4},
    "attention": {"tokens": 4096, "heads": 32, "kv_heads": 8},
    "attention-backward": {"tokens": 4096, "heads": 32, "head_size": 64},
    "attention-decode": {"context_tokens": 8192, "heads": 32, "kv_heads": 8, "sequences": 16},
    "experts": {"tokens": 512, "hidden_size": 4096, "expert_ffn_size": 1536, "experts": 128, "experts_per_token": 8},
}
CHIPS = (
    "a100-sxm-80gb",
    "h100-sxm",
    "b200-sxm",
    "gb300",
    "l40s",
    "mi300x",
    "tpu-v5p",
    "trainium2",
    "gaudi3",
    "v100-sxm2",
)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", KINDS)
def test_parts_add_up_on_every_kind_of_chip(name, chip):
    precision = "fp16" if chip.startswith("v100") else "bf16"
    found = costmodel.kernel(name, chip, precision=precision, **SHAPES.get(name, {"rows": 4096, "columns": 8192}))
    assert sum(found.parts.values()) == pytest.approx(found.time_s, rel=1e-12)
    assert found.low_time_s <= found.time_s <= found.high_time_s
    assert 0 < found.share_of_bandwidth <= 1
    assert found.share_of_peak is None or 0 < found.share_of_peak <= 1
    assert (found.share_of_peak or 0) * found.time_s <= found.low_time_s * (1 + 1e-12), "an end beyond the peak"
    assert found.bound
    assert found.records()[0]["time_s"] == found.time_s


def test_a_large_product_is_bound_by_its_matrix_units():
    found = costmodel.kernel("matmul", "h100", **PRODUCT)
    assert (found.bound, found.constants) == ("matrix units", "measured")
    assert found.details["tile"] == "128x256"
    assert 0.7 < found.share_of_peak < 0.85
    assert found.neighbours == ()


def test_a_row_beyond_a_tile_has_a_better_neighbour():
    found = costmodel.kernel("matmul", "h100-sxm", rows=129, columns=4096, features=7168)
    assert found.neighbours[0].shape["rows"] == 128
    assert all(near.share > found.share_of_peak for near in found.neighbours)


def test_work_that_lasts_is_slower():
    burst, steady = (costmodel.kernel("matmul", "h200-sxm", sustained=s, **PRODUCT) for s in (False, True))
    assert steady.time_s > burst.time_s


def test_operands_that_come_again_are_faster_on_a_chip_whose_cache_shows():
    small = {"rows": 64, "columns": 4096, "features": 4096}
    again, new = (costmodel.kernel("matmul", "l40s", cached=c, **small) for c in (True, False))
    assert again.time_s < new.time_s / 1.5


def test_an_odd_product_on_a_systolic_array_is_padded():
    found = costmodel.kernel("matmul", "tpu-v5p", rows=4000, columns=8192, features=1000)
    assert found.constants == "usual"
    assert found.details["padding"] == pytest.approx(1.024)
    assert found.neighbours[0].shape["features"] == 1024


@given(st.integers(1, 20_000), st.integers(1, 20_000), st.integers(1, 20_000))
def test_any_product_can_be_asked(rows, columns, features):
    found = costmodel.kernel("matmul", "b200-sxm", rows=rows, columns=columns, features=features)
    assert found.time_s >= found.work_flop / 2.25e15


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda: costmodel.kernel("matmull", "h100", **PRODUCT), "did you mean matmul"),
        (lambda: costmodel.kernel("matmul", "h1000", **PRODUCT), "h100"),
        (lambda: costmodel.kernel("matmul", "h100", rows=1, columns=1), "needs features"),
        (lambda: costmodel.kernel("matmul", "h100", row=1, columns=1, features=1), "did you mean rows"),
        (lambda: costmodel.kernel("matmul", "h100", **PRODUCT | {"rows": 0}), "out of range"),
        (lambda: costmodel.kernel("matmul", "h100", **PRODUCT | {"rows": 1.5}), "whole number"),
        (lambda: costmodel.kernel("matmul", "a100", precision="fp8", **PRODUCT), "bf16"),
        (lambda: costmodel.kernel("matmul", "h100", precision="bf61", **PRODUCT), "did you mean bf16"),
        (lambda: costmodel.kernel("attention", "h100", precision="fp8", tokens=1, heads=1), "precision of prefill"),
        (lambda: costmodel.kernel("attention", "h100", implementation="vlm", tokens=1, heads=1), "vllm"),
        (lambda: costmodel.kernel("attention", "h100", tokens=1, heads=32, kv_heads=5), "nearest: 4"),
        (
            lambda: costmodel.kernel("experts", "h100", **SHAPES["experts"] | {"experts_per_token": 200}),
            "at most 128",
        ),
        (lambda: costmodel.launch(0, 1e-6, "h100"), "out of range"),
        (lambda: costmodel.launch(4, 0.0, "h100"), "more than 0 s"),
        (lambda: costmodel.launch(4, 1e-6, "h100", slow_kernels=5), "at most 4"),
    ],
)
def test_what_cannot_be_asked_is_met_with_a_sentence(ask, expected):
    with pytest.raises(costmodel.InputError, match=expected):
        ask()


def test_a_chain_of_kernels():
    found = costmodel.launch(4, 3.4e-6, "h100-sxm", slow_kernels=2)
    by_mode = {way.mode: way for way in found.ways}
    assert by_mode["dsl"].time_s == pytest.approx(110e-6, rel=0.1)
    assert by_mode["eager"].time_s == pytest.approx(22e-6, rel=0.1)
    assert all(way.time_s == pytest.approx(found.busy_s + way.overhead_s) for way in found.ways)


def test_kernels_without_a_precision_to_choose_run_in_that_of_the_chip():
    assert costmodel.kernel("norm", "v100-sxm2", rows=8192, columns=8192).precision == "fp16"
    assert costmodel.kernel("norm", "a100-sxm-80gb", rows=8192, columns=8192).precision == "bf16"
