"""A size gives a standard shape whose parameters are near it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.counts import parameter_counts
from costmodel.catalog.resolve import resolve_model
from costmodel.catalog.shape import contradictions
from costmodel.catalog.sizes import read_rule, size_name
from costmodel.errors import CatalogError, InputError

CATALOG = Catalog.open()


@given(st.floats(min_value=8.0, max_value=12.602).map(lambda power: 10**power))
@example(1e8)
@example(0.999e9)
@example(1e9)
@example(4e9)
@example(2e12)
@example(4e12)
def test_parameters_are_within_five_percent_of_the_size(size):
    model = resolve_model(f"{size / 1e9:.6f}B", CATALOG)
    assert parameter_counts(model)["parameters"] == pytest.approx(size, rel=0.05)
    assert not list(contradictions(model))


@given(st.floats(min_value=9.0, max_value=12.602).map(lambda power: 10**power))
def test_shapes_are_like_llama(size):
    model = resolve_model(f"{size / 1e9:.6f}B", CATALOG)
    if "shape of" in model.note:
        return
    assert model.head_size == 128 and model.hidden_size == 128 * model.layers == 128 * model.heads
    assert 2.2 < model.ffn_size / model.hidden_size < 5.5
    assert model.ffn_size % 256 == 0
    assert model.kv_heads == (8 if model.layers >= 32 else model.heads)
    assert model.layers % (8 if model.layers >= 32 else 2) == 0


@pytest.mark.parametrize(
    ("size", "like"),
    [
        ("7B", "llama-2-7b"),
        ("8b", "llama-3.1-8b"),
        ("13B", "llama-2-13b"),
        ("70B", "llama-3.1-70b"),
        ("405B", "llama-3.1-405b"),
    ],
)
def test_well_known_sizes_take_the_shape_of_a_published_model(size, like):
    model, published = resolve_model(size, CATALOG), resolve_model(like, CATALOG)
    assert parameter_counts(model) == parameter_counts(published)
    assert model.name == size.lower() and like in model.note


@pytest.mark.parametrize(
    ("given_as", "name"),
    [
        ("7B", "7b"),
        (" 7 b ", "7b"),
        ("7.0B", "7b"),
        ("7000M", "7b"),
        ("0.007T", "7b"),
        ("1000B", "1t"),
        ("1.3B", "1.3b"),
        ("350m", "350m"),
    ],
)
def test_one_size_has_one_name(given_as, name):
    assert resolve_model(given_as, CATALOG).name == name
    assert resolve_model(name, CATALOG) == resolve_model(given_as, CATALOG)


def test_names_of_sizes():
    assert [size_name(size) for size in (125_000_000, 999_000_000, 10**9, 2_500_000_000, 10**12)] == [
        "125m",
        "999m",
        "1b",
        "2.5b",
        "1t",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "7GB",
        "-7B",
        "+7B",
        "0B",
        "0.0B",
        "NaNB",
        "infB",
        "1e99B",
        "1e9",
        "7",
        "7.B",
        "7,5B",
        "1_000B",
        "\u0667B",
        "5T",
        "99M",
        "9" * 30 + "B",
        "1.2.3B",
        "7K",
        "7BB",
    ],
)
def test_what_is_not_a_size_is_refused_with_the_range(text):
    with pytest.raises(InputError, match="100M to 4T"):
        resolve_model(text, CATALOG)


def test_a_user_can_state_another_rule(tmp_path):
    rule = CATALOG.shipped_models / "standard" / "rule.yaml"
    folder = tmp_path / "models" / "standard"
    folder.mkdir(parents=True)
    (folder / "rule.yaml").write_text(
        rule.read_text()
        .replace("vocabulary: 128256", "vocabulary: 50000")
        .replace("largest: 4.0e+12", "largest: 5.0e+10")
    )
    assert resolve_model("30B", tmp_path).vocabulary == 50000
    with pytest.raises(InputError, match="100M to 50B"):
        resolve_model("400B", tmp_path)


def test_a_bad_rule_is_refused(tmp_path):
    path = tmp_path / "rule.yaml"
    text = (CATALOG.shipped_models / "standard" / "rule.yaml").read_text()
    for old, new, said in (
        ("kv_heads: 8", "kv_heads: eight", "kv_heads: expected a whole number"),
        ("ffn_ratio: 3.5", "ffn_ratio: 0.0", "ffn_ratio: expected a positive number"),
        ("smallest:", "smalest:", "smalest: unknown key: did you mean smallest"),
        ("model: llama-2-7b", "modle: llama-2-7b", "modle: unknown key"),
    ):
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(CatalogError, match=said):
            read_rule(CATALOG.read(path))
