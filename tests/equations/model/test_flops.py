"""FLOPs of a token and the KV cache: published conventions, windows, laws."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.model.cache import KeyValueCache
from costmodel.equations.model.flops import Flops, Windows
from costmodel.symbolic import compile_math
from tests.equations.model.shapes import DENSE, WINDOWS, one_document, shapes

flops = one_document(compile_math(Flops.system))
cache = one_document(compile_math(KeyValueCache.system, ["cache_per_token", "cache_per_sequence"]))
windows = one_document(compile_math(Windows.system))

PALM = (
    DENSE
    | WINDOWS
    | {
        "layers": 10,
        "hidden_size": 100,
        "heads": 5,
        "kv_heads": 5,
        "head_size": 20,
        "ffn_size": 300,
        "vocabulary": 1000,
    }
)


def test_units_balance():
    assert Flops.system.check() == KeyValueCache.system.check() == []


def test_palm_counts_six_a_weight_and_twelve_for_attention():
    found = flops(**PALM, sequence_length=50)
    weights = 10 * (4 * 100 * 100 + 3 * 100 * 300) + 100 * 1000
    assert found["training_flops"] == 6 * weights + 12 * 10 * 100 * 50  # 12 L N H T
    assert found["training_flops_causal"] == 6 * weights + 6 * 10 * 100 * 50
    assert found["recomputed_flops"] * 3 == found["training_flops"] * 4


def test_six_n_counts_every_active_parameter():
    found = flops(**PALM, sequence_length=50)
    assert found["six_n_flops"] == 6 * found["parameters"]


def test_attention_matters_from_long_sequences_on():
    """The book's rule: with F = 4 D and D = N H, attention costs what the products of a layer do at T = 8 D."""
    shape = DENSE | WINDOWS | {"hidden_size": 64, "heads": 4, "kv_heads": 4, "head_size": 16, "ffn_size": 256}
    found = flops(**shape, sequence_length=8 * 64)
    assert found["attention_flops"] == found["matmul_flops"]


def test_latent_attention_multiplies_keys_and_values_of_different_sizes():
    latent = {"kv_rank": 6, "rope_head_size": 1, "plain_head_size": 2, "value_head_size": 5, "query_rank": 4}
    found = flops(**PALM | latent, sequence_length=50)
    assert found["attention_flops"] == 2 * 10 * 50 * 5 * (1 + 2 + 5)


@pytest.mark.parametrize(
    ("layers", "every", "sliding"),
    [(32, 1, 32), (42, 2, 21), (26, 6, 22), (48, 6, 40), (36, 2, 18), (64, 4, 48), (5, 6, 5)],
)
def test_layers_that_slide(layers: int, every: int, sliding: int):
    found = windows(attention_layers=layers, window=4, window_every=every, sequence_length=100)
    assert found["sliding_layers"] == sliding
    assert found["sliding_layers"] == sum((i + 1) % every != 0 or every == 1 for i in range(layers))


@given(st.integers(1, 60), st.integers(0, 60), st.integers(1, 8), st.integers(1, 5))
def test_windows_against_counting_every_pair(length: int, window: int, layers: int, every: int):
    """Token i attends to itself and those before it: a mask counts half a token more on its diagonal than the form."""
    found = windows(attention_layers=layers, window=window, window_every=every if window else 1, sequence_length=length)
    reach = min(window, length)
    causal = lambda back: sum(min(i + 1, back) - 0.5 for i in range(length)) / length  # noqa: E731
    # Beyond the first `reach` tokens the window is whole, and the form takes it as whole.
    sliding = causal(reach) + 0.5 * (length - reach) / length
    assert found["attended_causal"] == pytest.approx(
        found["full_layers"] * causal(length) + found["sliding_layers"] * sliding
    )


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 8), st.integers(1, 5))
def test_chunks_against_counting_every_pair(length: int, chunk: int, layers: int, every: int):
    """Token i attends to itself and those before it in its chunk; the last chunk may be shorter."""
    found = windows(
        attention_layers=layers, window=0, attention_chunk=chunk, window_every=every, sequence_length=length
    )
    inside = sum(i % chunk + 0.5 for i in range(length)) / length
    whole = sum(i + 0.5 for i in range(length)) / length
    sliding, full = found["sliding_layers"], found["full_layers"]
    assert found["attended_causal"] == pytest.approx(full * whole + sliding * inside)
    assert found["attended_full"] == pytest.approx(2 * found["attended_causal"])
    assert found["kept_tokens"] == full * length + sliding * min(length, chunk)
    if length % chunk == 0:
        assert inside == chunk / 2


def test_chunks_begin_anew_in_each_document():
    """Two documents of 20 in chunks of 8: each is 8, 8 and 4 tokens, half of their squares added up."""
    found = windows(
        attention_layers=1, window=0, attention_chunk=8, window_every=1, sequence_length=40, document_length=20
    )
    assert found["attended_causal"] * 40 == 2 * (64 + 64 + 16) / 2


@given(shapes(), st.integers(1, 100_000), st.integers(0, 100_000), st.integers(1, 6))
def test_laws(shape: dict[str, Any], length: int, window: int, every: int):
    full = flops(**shape | WINDOWS, sequence_length=length)
    slid = flops(**shape, window=window, window_every=every if window else 1, sequence_length=length)
    assert full["forward_flops_causal"] <= full["forward_flops"]
    assert full["attention_flops_causal"] * 2 == pytest.approx(full["attention_flops"], rel=1e-12)
    assert slid["attention_flops"] <= full["attention_flops"]
    assert slid["attention_flops_causal"] <= full["attention_flops_causal"] * (1 + 1e-12)
    if window >= length:
        assert slid["attention_flops_causal"] == pytest.approx(full["attention_flops_causal"], rel=1e-12)
    assert full["training_flops"] == 3 * full["forward_flops"]
    assert full["matmul_flops"] <= 2 * full["active_parameters_without_embedding"]


@given(shapes(), st.integers(1, 100_000), st.integers(1, 100_000), st.integers(1, 6), st.sampled_from([0.5, 1, 2]))
def test_cache(shape: dict[str, Any], length: int, window: int, every: int, width: float):
    used = {
        name: shape[name]
        for name in ("layers", "layers_without_attention", "kv_rank", "rope_head_size", "kv_heads", "head_size")
    }
    full = cache(**used, **WINDOWS, sequence_length=length, cache_value_bytes=width)
    assert full["cache_per_token"] == shape["layers"] * 2 * shape["kv_heads"] * shape["head_size"] * width
    assert full["cache_per_sequence"] == full["cache_per_token"] * length
    slid = cache(**used, window=window, window_every=every, sequence_length=length, cache_value_bytes=width)
    assert slid["cache_per_sequence"] <= full["cache_per_sequence"]


def test_a_latent_cache_holds_one_vector_for_all_heads():
    used = {
        "layers": 61,
        "layers_without_attention": 0,
        "kv_rank": 512,
        "rope_head_size": 64,
        "kv_heads": 128,
        "head_size": 192,
    }
    assert cache(**used, **WINDOWS, sequence_length=1, cache_value_bytes=2)["cache_per_token"] == 70_272  # DeepSeek-V3
