"""A config.json gives the model that the catalog describes, or one clear sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.catalog.counts import parameter_counts
from costmodel.catalog.huggingface import read_config
from costmodel.catalog.huggingface_config import LARGEST_FILE
from costmodel.catalog.resolve import resolve_model
from costmodel.catalog.shape import equation_inputs
from costmodel.errors import CatalogError
from tests.catalog.configurations import CONFIGURATIONS, GEMMA_3_4B, QWEN_1_5_MOE

PLAIN = CONFIGURATIONS["llama-3.1-8b"]


@pytest.fixture
def write(tmp_path: Path):
    def write(content: Any) -> Path:
        path = tmp_path / "config.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return write


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_published_configuration_is_the_model_of_the_catalog(name, write):
    assert equation_inputs(read_config(write(CONFIGURATIONS[name]))) == equation_inputs(resolve_model(name))


@pytest.mark.parametrize("name", ["llama-3.1-8b", "deepseek-v3", "gpt2-xl"])
def test_it_is_taken_wherever_a_name_is(name, write, monkeypatch):
    path = write(CONFIGURATIONS[name])
    monkeypatch.chdir(path.parent.parent)
    for given_as in (str(path), str(path.parent), path.parent.name):
        assert resolve_model(given_as).layers == CONFIGURATIONS[name].get("num_hidden_layers", 48)


def test_the_model_is_called_as_its_folder(tmp_path):
    folder = tmp_path / "My Model_v2.1"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(PLAIN))
    model = read_config(folder)
    assert model.name == "my-model-v2.1"
    assert str(folder) in model.source


def test_defaults_of_the_class_are_said(write):
    model = read_config(
        write({key: value for key, value in PLAIN.items() if key not in ("num_key_value_heads", "mlp_bias")})
    )
    assert model.kv_heads == 32
    assert "num_key_value_heads 32" in model.note and "mlp_bias False" in model.note and "hidden_size" not in model.note


def test_a_multimodal_file_gives_its_decoder_and_says_what_is_left_out(write):
    model = read_config(write(GEMMA_3_4B))
    like = equation_inputs(resolve_model("gemma-3-4b"))
    assert equation_inputs(model) == like | {"vocabulary": 262208}
    assert model.not_counted == ("vision-tower",)
    assert "text_config.num_attention_heads 8" in model.note


def test_shared_experts_with_a_gate(write):
    assert parameter_counts(read_config(write(QWEN_1_5_MOE)))["parameters"] == 14_315_784_192  # of the checkpoint


def test_experts_of_qwen_in_some_layers_only(write):
    every_second = read_config(write(QWEN_1_5_MOE | {"decoder_sparse_step": 2}))
    assert parameter_counts(every_second)["expert_layers"] == 12
    first_dense = read_config(write(QWEN_1_5_MOE | {"mlp_only_layers": [0, 1]}))
    assert parameter_counts(first_dense)["expert_layers"] == 22


def test_windows(write):
    types = ["full_attention"] * 32
    mistral = CONFIGURATIONS["mistral-7b"]
    assert read_config(write(mistral | {"layer_types": types})).window == 0
    assert read_config(write(mistral | {"sliding_window": None})).window == 0
    model = read_config(write(mistral | {"layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 8}))
    assert (model.window, model.window_every) == (4096, 4)


def test_chunks(write):
    scout = CONFIGURATIONS["llama-4-scout"]
    assert read_config(write(scout | {"attention_chunk_size": None})).attention_chunk == 0
    assert read_config(write(scout | {"no_rope_layers": [0] * 48})).attention_chunk == 0
    types = (["chunked_attention"] * 5 + ["full_attention"]) * 8
    assert read_config(write(scout | {"layer_types": types})).window_every == 6
    assert read_config(write(scout | {"no_rope_layers": None, "no_rope_layer_interval": 3})).window_every == 3
    assert read_config(write(scout | {"no_rope_layers": [1] * 48})).window_every == 1


def without(*fields: str) -> dict[str, Any]:
    return {key: value for key, value in PLAIN.items() if key not in fields}


V3, QWEN3, OSS = (CONFIGURATIONS[name] for name in ("deepseek-v3", "qwen3-30b-a3b", "gpt-oss-20b"))
SCOUT = CONFIGURATIONS["llama-4-scout"]
BAD = [
    (SCOUT | {"no_rope_layers": 4}, "no_rope_layers: expected a list of 0 and 1"),
    (SCOUT | {"no_rope_layers": [1, 0]}, "no_rope_layers: lists 2 layers of 48"),
    (SCOUT | {"no_rope_layers": [0, 1] * 24}, "no_rope_layers: only patterns with one full layer at the end"),
    (SCOUT | {"moe_layers": [3, 9]}, "moe_layers: only experts in every interleave_moe_layer_step-th layer"),
    (SCOUT | {"layer_types": ["sliding_attention"] * 48}, "layer_types: layers of the kind 'sliding_attention'"),
    (without("hidden_size"), "hidden_size: the field is missing"),
    (without("model_type"), "model_type: the field is missing"),
    (without("num_attention_heads"), "num_attention_heads: the field is missing"),
    (
        PLAIN | {"model_type": "lama"},
        "model_type: models of the kind 'lama' are not read: did you mean llama or llama4",
    ),
    (PLAIN | {"model_type": "whisper"}, "the kinds that are read: bloom, "),
    (PLAIN | {"model_type": 3}, "model_type: expected text, not 3"),
    (PLAIN | {"hidden_size": "4096"}, "hidden_size: expected a whole number, not '4096'"),
    (PLAIN | {"hidden_size": 4096.0}, "hidden_size: expected a whole number, not 4096.0"),
    (PLAIN | {"hidden_size": True}, "hidden_size: expected a whole number, not True"),
    (PLAIN | {"hidden_size": [4096]}, "hidden_size: expected a whole number"),
    (PLAIN | {"hidden_size": -4096}, "hidden_size: -4096 is out of range, 1 to 1000000"),
    (PLAIN | {"num_hidden_layers": 0}, "num_hidden_layers: 0 is out of range, 1 to 10000"),
    (PLAIN | {"vocab_size": 10**20}, "vocab_size: 100000000000000000000 is out of range"),
    (PLAIN | {"tie_word_embeddings": "false"}, "tie_word_embeddings: expected true or false"),
    (PLAIN | {"num_key_value_heads": 7}, "num_key_value_heads: 32 query heads cannot share 7"),
    (PLAIN | {"num_key_value_heads": 64}, "num_key_value_heads: 32 query heads cannot share 64"),
    (PLAIN | {"hidden_size": 4100}, "head_dim: the field is missing, and hidden_size 4100 does not divide by 32"),
    (V3 | {"num_experts_per_tok": 300}, "num_experts_per_tok: a token cannot take 300 of 256 experts"),
    (V3 | {"n_group": 7}, "n_group: 7 groups cannot share 256 experts evenly"),
    (V3 | {"n_group": 64, "topk_group": 1}, "topk_group: 1 of 64 groups have fewer than 8 experts"),
    (V3 | {"first_k_dense_replace": 61}, "first_k_dense_replace: 61 is past the last of 61 layers"),
    (V3 | {"attention_bias": True}, "attention_bias: True is not modelled"),
    (V3 | {"moe_layer_freq": 2}, "moe_layer_freq: 2 is not modelled"),
    (QWEN3 | {"mlp_only_layers": [3]}, "mlp_only_layers: only the first layers"),
    (QWEN3 | {"mlp_only_layers": 3}, "mlp_only_layers: only the first layers"),
    (QWEN3 | {"num_experts": None}, "num_experts: the field is missing"),
    (
        OSS | {"experts_per_token": 2},
        "num_experts_per_tok or experts_per_token: the two contradict each other: 4 and 2",
    ),
    (OSS | {"layer_types": ["full_attention"]}, "layer_types: lists 1 layers of 24"),
    (OSS | {"layer_types": ["chunked_attention"] * 24}, "layer_types: layers of the kind 'chunked_attention'"),
    (OSS | {"layer_types": ["full_attention", "sliding_attention"] * 12}, "layer_types: only patterns"),
    (OSS | {"layer_types": "full"}, "layer_types: expected a list"),
    (GEMMA_3_4B | {"text_config": None}, "text_config: expected an object"),
    (GEMMA_3_4B | {"text_config": {"hidden_size": 3}}, "text_config.num_hidden_layers: the field is missing"),
    (CONFIGURATIONS["opt-13b"] | {"do_layer_norm_before": False}, "do_layer_norm_before: False is not modelled"),
    (CONFIGURATIONS["gpt2-xl"] | {"n_head": 24}, "hidden size 1600 does not divide by 24 heads"),
    ([1, 2], "expected a JSON object"),
    (b"", "not valid JSON"),
    (b"{", "not valid JSON"),
    (b'{"a": 1,}', "not valid JSON"),
    (b"name: llama", "not valid JSON"),
    (b'{"hidden_size": NaN}', "NaN is not a number that JSON allows"),
    (b'{"hidden_size": -Infinity}', "-Infinity is not a number"),
    (b'{"hidden_size": 1, "hidden_size": 2}', "hidden_size: the field is given twice"),
    (b'{"a": {"b": 1, "b": 1}}', "b: the field is given twice"),
    (b'{"hidden_size": ' + b"9" * 5000 + b"}", "a whole number of 5000 digits is not a size"),
    (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    (b'{"model_type": "\xff"}', "not UTF-8"),
    ("é".encode("utf-16"), "not UTF-8"),
    (b" " * (LARGEST_FILE + 1), "larger than 4 MiB"),
]


@pytest.mark.parametrize(("content", "said"), BAD)
def test_what_cannot_be_meant_is_refused_with_file_and_field(content, said, write):
    path = write(content)
    with pytest.raises(CatalogError) as raised:
        read_config(path)
    assert str(raised.value).startswith(str(path))
    assert said in str(raised.value)
    assert len(str(raised.value)) < 500


def test_line_of_broken_json(write):
    path = write(b'{\n "a": 1,\n "b" 2\n}')
    with pytest.raises(CatalogError, match=r"config\.json:3: not valid JSON"):
        read_config(path)


def test_places_that_hold_no_configuration(tmp_path):
    for path, said in (
        (tmp_path, "config.json: there is no such file"),
        (tmp_path / "absent.json", "there is no such file"),
        (Path("/dev/null"), "not a regular file"),
        (tmp_path / ("x" * 300), "cannot be read"),
    ):
        with pytest.raises(CatalogError, match=said):
            read_config(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(kind=st.sampled_from(sorted(CONFIGURATIONS)), data=st.data())
def test_any_change_of_fields_gives_a_model_or_one_sentence(kind, data, tmp_path_factory):
    fields = st.sampled_from(sorted(CONFIGURATIONS[kind]))
    changed = CONFIGURATIONS[kind] | data.draw(st.dictionaries(fields, json_values, max_size=3))
    path = tmp_path_factory.mktemp("any") / "config.json"
    path.write_text(json.dumps(changed))
    said = f"{path}: a field: no error"
    try:
        counts = parameter_counts(read_config(path))
    except CatalogError as error:
        said = str(error)
    else:
        assert counts["parameters"] >= counts["active_parameters"] > 0
    assert said.startswith(str(path)) and "\n" not in said
