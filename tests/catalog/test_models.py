"""Models by name, and what their files may say."""

from collections import Counter
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Model, Recurrent
from costmodel.catalog.huggingface_kinds import READERS
from costmodel.catalog.lint import lint
from costmodel.catalog.models import OPTIONAL, REQUIRED, read_models
from costmodel.catalog.resolve import resolve_model
from costmodel.catalog.shape import ATTENTION_BIASES, NORMS, QK_NORMS, RECURRENT_KINDS, equation_inputs
from costmodel.equations.model.block import Block
from costmodel.equations.model.cache import KeyValueCache
from costmodel.equations.model.flops import Flops
from costmodel.equations.parallelism.experts import ExpertPayloads
from costmodel.errors import CatalogError, InputError

CATALOG = Catalog.open()
MODELS = read_models(CATALOG)

TINY = """\
name: tiny
family: test
source: made up
confidence: guess
layers: 2
hidden_size: 8
ffn_size: 16
heads: 4
kv_heads: 2
head_size: 2
vocabulary: 10
max_sequence: 32
tied_embeddings: false
gated_ffn: true
norm: rmsnorm
"""
EXPERTS = "experts:\n  count: 4\n  per_token: 2\n  ffn_size: 8\n"
LATENT = "latent_attention:\n  kv_rank: 4\n  rope_head_size: 1\n  plain_head_size: 1\n  value_head_size: 1\n"
RECURRENT = "recurrent:\n  kind: mamba2\n  layers: 1\n  attention_layers: 1\n  ffn_layers: 2\n  heads: 4\n  head_size: 2\n  groups: 2\n  state_size: 4\n"


@pytest.fixture
def write(tmp_path: Path):
    (tmp_path / "models").mkdir()

    def write(text: str, name: str = "tiny") -> Path:
        (tmp_path / "models" / f"{name}.yaml").write_text(text)
        return tmp_path

    return write


def test_all_files_are_read():
    assert len(MODELS) >= 92
    assert {model.name for model in MODELS} == set(CATALOG.names("models"))


def test_no_name_is_used_twice():
    names = [name.lower() for model in MODELS for name in (model.name, *model.aliases, *model.hugging_face)]
    assert [name for name, times in Counter(names).items() if times > 1] == []


@pytest.mark.parametrize(
    "name",
    [
        "llama-3.1-405b",
        "llama-3-70b",
        "gpt3-175b",
        "deepseek-v3",
        "mixtral-8x7b",
        "gpt-oss-120b",
        "qwen3-235b-a22b",
        "gemma-3-27b",
    ],
)
def test_names_that_people_type(name):
    assert resolve_model(name, CATALOG).name == name


@pytest.mark.parametrize(
    ("given_as", "name"),
    [
        ("llama3-70b", "llama-3-70b"),
        ("LLaMA-3.1-405B", "llama-3.1-405b"),
        (" gpt3 ", "gpt3-175b"),
        ("deepseek-r1", "deepseek-v3"),
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b"),
        ("META-LLAMA/llama-3.1-8b", "llama-3.1-8b"),
        ("Qwen/Qwen2-72B", "qwen2.5-72b"),
    ],
)
def test_aliases_and_hugging_face_ids(given_as, name):
    assert resolve_model(given_as, CATALOG).name == name


def test_every_alias_leads_to_its_model():
    for model in MODELS:
        for name in (*model.aliases, *model.hugging_face):
            assert resolve_model(name, CATALOG).name == model.name


def test_a_canonical_name_reads_one_file(monkeypatch):
    read = []
    monkeypatch.setattr(
        Catalog, "read", lambda self, path, original=Catalog.read: read.append(path.name) or original(self, path)
    )
    monkeypatch.setattr(Path, "read_text", None)
    resolve_model("llama-3.1-405b", CATALOG)
    assert read == ["llama-3.1-405b.yaml"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("llama-3.1-450b", "llama-3.1-405b"),
        ("deepseek-v33", "did you mean deepseek-v3"),
        ("zzz", "to choose from"),
        ("", "unknown model"),
        ("x" * 5000, "unknown model"),
        ("meta-llama/Llama-3.1-9B", "neither a Hugging Face id of the catalog nor a path: did you mean llama-3.1"),
        ("nobody/nothing", "give the path of its config.json"),
        ("models/llama-7b.yaml", "is a YAML file"),
        ("../models/llama-7b", "there is no such file"),
        ("no/such/config.json", "there is no such file"),
        ("/", "there is no such file"),
        ("a\0b", "unknown model"),
        ("..", "there is no such file"),
    ],
)
def test_what_is_no_model(name, said):
    with pytest.raises(InputError) as raised:
        resolve_model(name, CATALOG)
    assert said in str(raised.value) and len(str(raised.value)) < 400


def test_a_users_folder_adds_and_overrides(write):
    folder = write(TINY)
    write(TINY.replace("name: tiny", "name: gpt2\naliases: [my-gpt]"), "gpt2")
    assert resolve_model("tiny", folder).layers == 2
    assert resolve_model("gpt2", folder).layers == resolve_model("my-gpt", folder).layers == 2
    assert resolve_model("gpt2-xl", folder).layers == 48
    assert len(read_models(folder)) == len(MODELS) + 1
    with pytest.raises(InputError):
        resolve_model("tiny", CATALOG)


def test_what_an_absent_key_means(write):
    model = resolve_model("tiny", write(TINY))
    assert (model.norms_per_layer, model.final_norm, model.attention_bias, model.qk_norm) == (2, True, "none", "none")
    assert (model.positions, model.window, model.experts, model.latent_attention, model.recurrent) == (
        0,
        0,
        None,
        None,
        None,
    )


@pytest.mark.parametrize("parts", [EXPERTS, LATENT, RECURRENT, EXPERTS + RECURRENT])
def test_parts_are_read(write, parts):
    assert resolve_model("tiny", write(TINY + parts))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: tiny", "name: other", "tiny.yaml:1: name: the entry is called 'other'"),
        ("name: tiny", "name: Tiny", "tiny.yaml:1: name: 'Tiny' is not a name"),
        ("family: test", "famly: test", "tiny.yaml:2: famly: unknown key: did you mean family?"),
        ("layers: 2", "layers: 2\nlayers: 2", "tiny.yaml:6: layers: the key is given twice, first on line 5"),
        ("heads: 4\n", "", "the key 'heads' is missing"),
        ("source: made up\n", "", "the key 'source' is missing"),
        ("confidence: guess", "confidence: sure", "tiny.yaml:4: confidence: 'sure' is not known"),
        ("layers: 2", "layers: '2'", "tiny.yaml:5: layers: expected a whole number"),
        ("layers: 2", "layers: 2.5", "layers: expected a whole number"),
        ("layers: 2", "layers: 0", "layers: 0 is out of range, 1 to 10000"),
        ("layers: 2", "layers: -1", "layers: -1 is out of range"),
        ("hidden_size: 8", "hidden_size: 1000000000", "hidden_size: 1000000000 is out of range"),
        ("norm: rmsnorm", "norm: rms", "norm: 'rms' is not known: did you mean rmsnorm"),
        ("tied_embeddings: false", "tied_embeddings: no", "tied_embeddings: expected true or false"),
        ("kv_heads: 2", "kv_heads: 3", "tiny.yaml:9: kv_heads: 4 query heads cannot share 3"),
        (
            "norm: rmsnorm",
            "norm: rmsnorm\nwindow_every: 2",
            "window_every: says which layers slide, but there is no window",
        ),
        (
            "norm: rmsnorm",
            "norm: rmsnorm\nwindow: 64\nattention_chunk: 64",
            "attention_chunk: layers that do not attend to all have a window or chunks, not both",
        ),
        (
            "norm: rmsnorm",
            "norm: rmsnorm\npublished_parameters: 7e9",
            "published_parameters: expected a number, YAML 1.1 reads '7e9'",
        ),
        ("norm: rmsnorm", "norm: rmsnorm\npublished_parameters: 7.0", "published_parameters: 7 is out of range"),
        ("norm: rmsnorm", "norm: rmsnorm\nexperts: 8", "experts: expected `key: value` lines"),
        (
            "norm: rmsnorm",
            "norm: rmsnorm\n" + EXPERTS.replace("per_token: 2", "per_token: 5"),
            "tiny.yaml:18: experts.per_token: a token cannot take 5",
        ),
        (
            "norm: rmsnorm",
            "norm: rmsnorm\n" + EXPERTS + "  first_layer: 2",
            "experts.first_layer: 2 is past the last of 2 layers",
        ),
        ("norm: rmsnorm", "norm: rmsnorm\n" + EXPERTS + "  shared: 1", "experts.shared: shared experts need both"),
        (
            "norm: rmsnorm",
            "norm: rmsnorm\n" + EXPERTS + "  shared_gate: true",
            "experts.shared_gate: weighs shared experts",
        ),
        (
            "norm: rmsnorm",
            "norm: rmsnorm\n" + LATENT.replace("rope_head_size: 1", "rope_head_size: 3"),
            "head_size: 2 is not the rotary and plain",
        ),
        (
            "norm: rmsnorm",
            "norm: rmsnorm\n" + RECURRENT.replace("  layers: 1", "  layers: 2"),
            "recurrent.layers: 2 recurrent and 1 attention",
        ),
        (
            "norm: rmsnorm",
            "norm: rmsnorm\n" + RECURRENT.replace("ffn_layers: 2", "ffn_layers: 3"),
            "recurrent.ffn_layers: 3 leaves layers",
        ),
        (
            "norm: rmsnorm",
            "norm: rmsnorm\n" + RECURRENT.replace("groups: 2", "groups: 3"),
            "recurrent.groups: 4 heads cannot share 3",
        ),
    ],
)
def test_bad_files_are_refused_with_file_line_and_field(write, old, new, said):
    text = TINY.replace(old, new, 1)
    assert text != TINY
    with pytest.raises(CatalogError) as raised:
        resolve_model("tiny", write(text))
    assert said in str(raised.value)


def test_the_record_takes_the_labels_of_the_equations():
    hints = get_type_hints(Model)
    assert [get_args(hints[field]) for field in ("norm", "qk_norm", "attention_bias")] == [
        NORMS,
        QK_NORMS,
        ATTENTION_BIASES,
    ]
    assert get_args(get_type_hints(Recurrent)["kind"]) == RECURRENT_KINDS[1:]


def test_a_model_fills_in_every_input_that_it_owns():
    systems = (Flops.system, KeyValueCache.system, Block.system, ExpertPayloads.system)
    owned = {e.name for system in systems for e in system.inputs() if e.owner == "model"}
    assert set(equation_inputs(MODELS[0])) == owned


def test_the_check_of_a_catalog_holds_counts_against_what_is_published(write):
    published = "published_parameters: 1000000.0\n"
    for text, said in (
        (TINY + "checkpoint_parameters: 1400\n", "checkpoint_parameters: the sizes give 1,352 parameters, -48 of this"),
        (
            TINY + published,
            "published_parameters: the sizes give 1,352 parameters; headlines are rounded by less than 10%",
        ),
        (TINY + "checkpoint_parameters: 1352\n" + published, ""),
    ):
        problems = lint(Catalog.open(write(text))).problems
        assert [str(problem).partition(".yaml:")[2].partition(": ")[2] for problem in problems] == (
            [said] if said else []
        ), problems


def test_the_check_of_a_catalog_reads_the_rule_of_sizes(tmp_path):
    (tmp_path / "models" / "standard").mkdir(parents=True)
    (tmp_path / "models" / "standard" / "rule.yaml").write_text("name: rule\n")
    assert "the key 'source' is missing" in str(lint(Catalog.open(tmp_path)).problems[0])


def test_the_reference_names_every_key_and_every_kind():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "model-files.md").read_text(encoding="utf-8")
    for name in (*REQUIRED, *OPTIONAL, *READERS):
        assert f"`{name}`" in page
