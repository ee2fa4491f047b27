"""Number formats of the weight products: which chips have them, and what they change."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.equations.axes import MATMUL
from costmodel.search.precision import ALIASES, PRECISIONS, offered, precision_inputs, precision_name
from tests.equations.training.drawn import CATALOG, cases, mixture, on

few = settings(max_examples=settings.default.max_examples // 2)
LOW = [name for name in PRECISIONS if name not in {"bf16", "fp16"}]
FORMATS = CATALOG.assumptions("precisions")


@pytest.mark.parametrize(
    ("chip", "precisions"),
    [
        ("v100-sxm2", ["fp16"]),
        ("a100-sxm-80gb", ["bf16", "fp16"]),
        ("h100-sxm", ["bf16", "fp16", "fp8", "fp8-delayed", "fp8-rowwise", "fp8-block"]),
        ("b200-sxm", list(PRECISIONS)),
    ],
)
def test_what_chips_have(chip, precisions):
    assert offered(CATALOG.chip(chip)) == precisions


def test_every_name_has_its_numbers():
    assert {f"cast_bytes_{name}" for name in LOW} == {name for name in FORMATS if name.startswith("cast_bytes_")}
    assert set(ALIASES.values()) <= set(PRECISIONS)
    assert precision_name("FP8-Tensorwise") == "fp8" and precision_name("fp4") == "nvfp4"


@pytest.mark.parametrize(
    ("name", "operand", "peak"), [("bf16", 2, 2250e12), ("mxfp8", 1, 4500e12), ("nvfp4", 0.5, 9000e12)]
)
def test_inputs(name, operand, peak):
    found = precision_inputs(CATALOG.chip("b200-sxm"), name, FORMATS)
    assert (found["operand_bytes"], found["peak"], found["element_size"]) == (operand, peak, 2)


def test_only_products_of_layers_change():
    """Attention, loss, what is kept and what is sent stay as they are; the products take less, the casts something."""
    case = on("llama-3-8b", "dgx-b200:8", "tp=2", 8192, 8)
    half, low = (case.on(dtype=name, recipe="megatron-bf16")() for name in ("bf16", "mxfp8"))
    same = ("time_attention", "time_loss", "total_tp", "total_dp", "allocated", "model_flops", "chips")
    assert {name: low[name] for name in same} == {name: half[name] for name in same}
    assert low["time_matmul"] < 0.7 * half["time_matmul"]
    assert low["time_elementwise"] > half["time_elementwise"]
    assert low["step_time"] < half["step_time"]
    assert low["mfu"] == pytest.approx(half["mfu"] * half["step_time"] / low["step_time"] / 2)


def test_casts_by_hand():
    """Llama 3 8B: 3 x 4096 and 14,336 features into the four products, 6,144, 28,672 and 2 x 4,096 out of them."""
    found = on("llama-3-8b", "dgx-b200:8", "mbs=1", 8192, 8).on(dtype="mxfp8")(
        cast_bytes=4, cast_traffic_factor=1, memory_share=1, memory_bandwidth=8e12
    )
    assert found["casts_forward"] == pytest.approx(8192 * (3 * 4096 + 14336) * 4 / 8e12)
    assert found["casts_backward"] == pytest.approx(8192 * (6144 + 28672 + 2 * 4096) * 4 / 8e12)


def test_the_router_stays_in_16_bits():
    found = on(mixture(experts=8), "dgx-b200:8", "ep=8", 4096, 8).on(dtype="fp8")()
    assert {name for name, low in zip(MATMUL.labels, found["low"], strict=True) if not low} == {"router"}
    router = MATMUL.labels.index("router")
    assert found["cast_elements"][router] == 0 and found["cast_elements"][router - 1] >= 0


@few
@given(cases(machines=("dgx-b200:8",)), st.sampled_from(LOW))
def test_items_add_up_in_every_precision(case, name):
    found = case.on(dtype=name)()
    items = [value for item, value in found.items() if item.startswith("time_")]
    assert sum(items) == pytest.approx(found["step_time"], rel=1e-9)
