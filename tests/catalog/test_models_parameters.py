"""The parameter count of every model: a checkpoint's to the last one, the published one to its rounding."""

import csv
from pathlib import Path

import pytest

from costmodel.catalog.counts import cache_bytes, flop_counts, parameter_counts
from costmodel.catalog.models import read_models

MODELS = {model.name: model for model in read_models()}
# Counted from the same sizes by other means than the equations.
_TABLE = (Path(__file__).parents[1] / "published" / "model_parameters.csv").read_text(encoding="utf-8")
COUNTED = {row["model"]: row for row in csv.DictReader(_TABLE.splitlines())}


def test_every_model_is_counted_apart():
    assert set(COUNTED) == set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_equal_to_the_checkpoint_to_the_last_parameter(name):
    expected = MODELS[name].checkpoint_parameters
    assert parameter_counts(MODELS[name])["parameters"] == (expected or int(COUNTED[name]["parameters"]))


def test_most_models_have_a_checkpoint_to_be_held_against():
    assert sum(bool(model.checkpoint_parameters) for model in MODELS.values()) >= 50


@pytest.mark.parametrize("name", COUNTED)
def test_equal_to_what_was_counted_apart(name):
    counts, row = parameter_counts(MODELS[name]), COUNTED[name]
    assert counts["parameters"] == int(row["parameters"])
    assert counts["active_parameters"] == int(row["active_parameters"])
    if row["active_parameters_without_embedding"]:
        assert counts["active_parameters_without_embedding"] == int(row["active_parameters_without_embedding"])
    assert cache_bytes(MODELS[name], 1, 2)["cache_per_token"] == int(row["kv_cache_bytes_per_token"])


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if not model.checkpoint_parameters])
def test_near_the_published_headline(name):
    published = MODELS[name].published_parameters
    assert published is not None
    assert parameter_counts(MODELS[name])["parameters"] == pytest.approx(published.value, rel=0.05)


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.published_active_parameters])
def test_published_active_parameters_lie_between_the_two_ways_of_counting(name):
    """Vendors count the embedding and the head, one of them, or none, and round to whole billions."""
    counts, published = parameter_counts(MODELS[name]), MODELS[name].published_active_parameters
    assert published is not None
    least = counts["active_parameters_without_embedding"] - counts["vocabulary"] * counts["hidden_size"]
    assert least * 0.92 < published.value < counts["active_parameters"] * 1.02


@pytest.mark.parametrize("name", MODELS)
def test_items_add_up_and_work_is_in_keeping(name):
    counts = parameter_counts(MODELS[name])
    items = [value for key, value in counts.items() if key.endswith("_parameters") and key in ITEMS]
    assert len(items) == len(ITEMS)
    assert sum(items) == counts["parameters"]
    assert all(value >= 0 for value in items)
    flops = flop_counts(MODELS[name], 4096)
    assert flops["forward_flops_causal"] < flops["forward_flops"]
    # Every weight multiplies but norms, biases, tables and per-head constants: under 3% of what a token uses.
    assert 0.97 < flops["matmul_flops"] / (2 * counts["active_parameters_without_embedding"]) <= 1


ITEMS = frozenset(
    f"{item}_parameters"
    for item in (
        "embedding",
        "position",
        "embedding_norm",
        "attention",
        "recurrent",
        "ffn",
        "routed_expert",
        "shared_expert",
        "router",
        "norm",
        "final_norm",
        "head",
        "extra",
    )
)
