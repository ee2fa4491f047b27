"""The parameter equations: shapes that can be counted in the head, and laws."""

from typing import Any

import pytest
from hypothesis import given

from costmodel.equations.model.parameters import ATTENTION_BIASES, NORMS, QK_NORMS, RECURRENT_KINDS, Parameters
from costmodel.symbolic import compile_math
from tests.equations.model.shapes import DENSE, shapes

parameters = compile_math(Parameters.system)


def test_units_balance():
    assert Parameters.system.check() == []


def test_every_equation_has_a_meaning_and_every_input_an_owner():
    for e in Parameters.system.equations.values():
        assert e.meaning
        assert e.owner == "model" or not e.is_input


def test_a_shape_that_can_be_counted_in_the_head():
    found = parameters(
        **DENSE
        | {
            "layers": 3,
            "hidden_size": 10,
            "heads": 5,
            "kv_heads": 1,
            "head_size": 2,
            "ffn_size": 100,
            "vocabulary": 1000,
        }
    )
    assert found["attention_matrices"] == 10 * 10 * 2 + 10 * 2 * 2
    assert found["ffn_matrices"] == 3 * 10 * 100
    assert found["parameters"] == 3 * (240 + 3000 + 2 * 10) + 10 + 2 * 10_000
    assert found["active_parameters"] == found["parameters"]
    assert found["active_parameters_without_embedding"] == found["parameters"] - 10_000


ONE = {"layers": 1, "hidden_size": 10, "heads": 5, "kv_heads": 1, "head_size": 2, "ffn_size": 100, "vocabulary": 1000}
ADDED = [
    ({"tied_embeddings": 1}, -10_000),
    ({"gated_ffn": 0}, -1000),
    ({"ffn_bias": 1}, 200 + 10),
    ({"attention_bias": ATTENTION_BIASES.index("qkv")}, 10 + 2 * 2),
    ({"attention_bias": ATTENTION_BIASES.index("qkvo")}, 10 + 2 * 2 + 10),
    ({"qk_norm": QK_NORMS.index("per-head")}, 2 * 2),
    ({"qk_norm": QK_NORMS.index("full")}, 10 + 2),
    ({"norm": NORMS.index("layernorm")}, 3 * 10),
    ({"norm": NORMS.index("layernorm-no-bias")}, 0),
    ({"norm": NORMS.index("none")}, -3 * 10),
    ({"norms_per_layer": 4}, 2 * 10),
    ({"final_norm": 0}, -10),
    ({"embedding_norm": 1}, 10),
    ({"positions": 50}, 500),
    ({"attention_gate": 1}, 10 * 10),
    ({"attention_sinks": 1}, 5),
    ({"extra_parameters": 7}, 7),
    # Query down to 4 and up to 5 heads of 1 + 2; key-value down to 6 + 1 and up to 5 heads of 2 + 3; output; two norms.
    (
        {"query_rank": 4, "kv_rank": 6, "rope_head_size": 1, "plain_head_size": 2, "value_head_size": 3},
        (40 + 60) + (70 + 150) + 150 + (4 + 6) - 240,
    ),
    ({"kv_rank": 6, "rope_head_size": 1, "plain_head_size": 2, "value_head_size": 3}, 150 + (70 + 150) + 150 + 6 - 240),
    # Eight experts of 30 in place of the dense 3000, and a router.
    ({"experts": 8, "experts_per_token": 2, "expert_ffn_size": 1}, 8 * 30 + 80 - 3000),
    ({"experts": 8, "experts_per_token": 2, "expert_ffn_size": 1, "router_bias": 1}, 8 * 30 + 80 + 8 - 3000),
    ({"experts": 8, "experts_per_token": 2, "expert_ffn_size": 1, "ffn_bias": 1}, 8 * (30 + 2 + 10) + 80 - 3000),
    ({"experts": 8, "experts_per_token": 2, "expert_ffn_size": 1, "latent_size": 5}, 8 * 15 + 80 + 100 - 3000),
    (
        {"experts": 8, "experts_per_token": 2, "expert_ffn_size": 1, "shared_experts": 2, "shared_ffn_size": 3},
        8 * 30 + 80 + 180 - 3000,
    ),
    (
        {
            "experts": 8,
            "experts_per_token": 2,
            "expert_ffn_size": 1,
            "shared_experts": 1,
            "shared_ffn_size": 1,
            "shared_gate": 1,
        },
        8 * 30 + 80 + 30 + 10 - 3000,
    ),
    # A recurrent layer of 4 heads of 5, 2 groups of state 3, in place of attention.
    (
        {"recurrent_kind": RECURRENT_KINDS.index("mamba2"), "convolution": 4},
        10 * (3 * 20 + 2 * 6 + 4) + 5 * (20 + 12) + 3 * 4 + 20 - 240,
    ),
    (
        {"recurrent_kind": RECURRENT_KINDS.index("gated-delta-net"), "convolution": 4},
        10 * (3 * 20 + 2 * 6 + 8) + 4 * (20 + 12) + 2 * 4 + 5 - 240,
    ),
    ({"recurrent_kind": RECURRENT_KINDS.index("lightning")}, 10 * (3 * 20 + 2 * 6) + 20 - 240),
]


@pytest.mark.parametrize(("change", "added"), ADDED)
def test_what_each_field_adds(change: dict[str, int], added: int):
    if "recurrent_kind" in change:
        change |= {"recurrent_layers": 1, "layers_without_attention": 1, "recurrent_heads": 4, "recurrent_head_size": 5}
        change |= {"recurrent_groups": 2, "state_size": 3}
    before, after = parameters(**DENSE | ONE), parameters(**DENSE | ONE | change)
    assert after["parameters"] - before["parameters"] == added


@pytest.mark.parametrize(
    ("first", "every", "with_experts"), [(0, 1, 9), (3, 1, 6), (0, 2, 5), (1, 2, 4), (2, 3, 3), (8, 5, 1)]
)
def test_which_layers_hold_experts(first: int, every: int, with_experts: int):
    shape = DENSE | ONE | {"layers": 9, "experts": 4, "experts_per_token": 1, "expert_ffn_size": 7}
    found = parameters(**shape | {"first_expert_layer": first, "expert_every": every})
    assert found["expert_layers"] == with_experts == len(range(first, 9, every))
    assert found["dense_layers"] == 9 - with_experts


@given(shapes())
def test_laws(shape: dict[str, Any]):
    found = parameters(**shape)
    assert found["parameters"] >= found["active_parameters"] >= found["active_parameters_without_embedding"] >= 0
    assert found["layer_split_parameters"] + found["layer_whole_parameters"] == found["dense_layer_parameters"]
    assert found["layer_whole_parameters"] >= 0
    taking_all = parameters(**shape | {"experts_per_token": shape["experts"]})
    assert taking_all["active_parameters"] == taking_all["parameters"] == found["parameters"]
    one_layer_more = parameters(**shape | {"layers": shape["layers"] + 1, "experts": 0})
    dense = parameters(**shape | {"experts": 0})
    assert one_layer_more["parameters"] - dense["parameters"] == found["dense_layer_parameters"]


@given(shapes())
def test_one_expert_that_all_take_is_a_dense_layer_and_a_router(shape: dict[str, Any]):
    dense = parameters(**shape | {"experts": 0})
    plain = {
        "shared_experts": 0,
        "shared_gate": 0,
        "latent_size": 0,
        "router_bias": 0,
        "first_expert_layer": 0,
        "expert_every": 1,
    }
    single = parameters(**shape | plain | {"experts": 1, "experts_per_token": 1, "expert_ffn_size": shape["ffn_size"]})
    assert single["parameters"] - single["router_parameters"] == dense["parameters"]
    assert single["router_parameters"] == shape["layers"] * shape["hidden_size"]
