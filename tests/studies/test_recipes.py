"""Recipes: what frameworks and optimizers store of a weight, chosen by name, against published readings."""

import pytest

from costmodel.catalog.catalog import Catalog
from costmodel.cli.options import RECIPES
from costmodel.errors import CatalogError, InputError
from costmodel.search.workload import STATES, default_recipe
from costmodel.studies.plan import plan
from costmodel.studies.train import train
from tests.equations.training.drawn import CATALOG, machine, on

GIB = 2**30
CATALOG_RECIPES = Catalog.open().names("recipes")


def quick(recipe=None, layout="zero=1", on="dgx-h100:8", model="llama-3-8b", **options):
    usual = {"sequence_length": 8192, "batch": 16, "layout": layout, "recipe": recipe, "catalog": CATALOG}
    return train(model, on, **usual | options)


def states(recipe):
    """Weight, gradient, optimizer states and what the step adds, bytes a weight."""
    constants = CATALOG.recipe(recipe)
    return tuple(constants[name].value for name in STATES[:4])


def test_help_names_every_recipe():
    assert sorted(RECIPES) == sorted(CATALOG_RECIPES)


@pytest.mark.parametrize("recipe", CATALOG_RECIPES)
def test_every_recipe_gives_all_states_and_their_ranges_hold_the_value(recipe):
    constants = CATALOG.recipe(recipe)
    assert {*STATES, "update_bytes"} <= set(constants)
    for number in constants.values():
        assert number.at("low") <= number.value <= number.at("high")
    found = quick(recipe).estimates[0]
    for quantity in ("allocated", "reserved", "device_used"):
        ends = [found.memory_ranges[f"{quantity}_{end}_bytes"] for end in ("low", "high")]
        assert ends[0] <= getattr(found, f"{quantity}_bytes") <= ends[1]
        assert found.result()[f"{quantity}_low_bytes"] == ends[0]


@pytest.mark.parametrize(
    ("recipe", "whole", "shared", "step"),
    [
        ("megatron-bf16", 6, 12, 0),
        ("megatron-fp16", 4, 12, 4),
        ("megatron-precision-aware", 4, 10, 0),
        ("megatron-precision-aware-bf16-moments", 4, 6, 0),
        ("deepspeed-zero1-fp16", 4, 12, 6),
        ("deepspeed-zero3", 4, 12, 0),
        ("deepspeed-bf16", 8, 12, 0),
        ("nanotron", 6, 12, 0),
        ("torchtitan-fsdp2", 8, 8, 0),
        ("maxtext", 8, 8, 0),
        ("pure-bf16", 4, 4, 0),
        ("adamw-8bit", 4, 2, 0),
        ("sgd", 6, 8, 0),
        ("adafactor", 6, 4, 0),
        ("muon", 6, 8, 0),
    ],
)
def test_bytes_of_a_weight_under_zero_1(recipe, whole, shared, step):
    """Weights and gradients are whole on every rank, the states are shared over eight."""
    weight, gradient, optimizer, extra = states(recipe)
    assert (weight + gradient, optimizer, extra) == (whole, shared, step)
    found = quick(recipe, "zero=1 recompute=full").estimates[0]
    held = found.memory["parameters"] + found.memory["gradients"]
    assert held == pytest.approx(whole * 8.03e9, rel=2e-3)
    during = step if found.worst_phase == "optimizer" else 0
    assert found.memory["optimizer"] == pytest.approx((shared + during) * 8.03e9 / 8, rel=2e-3)


def test_a_recipe_that_needs_more_in_the_optimizer_step_peaks_there():
    one = quick("deepspeed-zero1-fp16", "zero=1 recompute=full", sequence_length=512, batch=8).estimates[0]
    assert one.worst_phase == "optimizer"


@pytest.mark.parametrize(
    ("layout", "read"), [("zero=3 mbs=2 recompute=selective", 77.0), ("zero=3 recompute=selective", 47.65)]
)
def test_what_torchtitan_reserves(layout, read):
    """Llama-3-8B on 8 GPUs, 8192 tokens a sequence: 77.0 GiB with two sequences, 47.65 with one (its issue 929)."""
    found = quick("torchtitan-fsdp2", layout).estimates[0]
    assert found.reserved_bytes / GIB == pytest.approx(read, rel=0.03)


@pytest.mark.parametrize(("recipe", "read"), [("pure-bf16", 54e9), ("adamw-8bit", 40.5e9)])
def test_states_of_llama_2_7b_in_torchtune(recipe, read):
    assert sum(states(recipe)) * 6.738e9 == pytest.approx(read, rel=5e-3)


def test_the_default_is_said_and_fits_the_machine():
    assert default_recipe(machine("dgx-h100:8").chip, "bf16") == "megatron-bf16"
    assert default_recipe(machine("dgx-h100:8").chip, "fp16") == "megatron-fp16"
    assert default_recipe(machine("tpu-v5p:2x2x2").chip, "bf16") == "maxtext"
    answer = quick()
    assert answer.estimates[0] == quick("megatron-bf16").estimates[0]
    assert any("recipe megatron-bf16 (--recipe): 2 + 4 + 12 bytes a weight" in line for line in answer.assumptions)
    assert any("recipe muon (--recipe): 2 + 4 + 8" in line for line in quick("muon").assumptions)


def test_optimizers_move_what_they_hold_and_muon_computes():
    times = {r: quick(r).estimates[0].time["optimizer"] for r in ("megatron-bf16", "sgd", "adafactor", "muon")}
    assert times["adafactor"] < times["sgd"] < times["megatron-bf16"]
    # 5 steps of 6 x 4096 operations a weight, on an eighth of 8 G weights, at the attained share of peak.
    chip = machine("dgx-h100:8").chip
    attained = chip.peak["bf16"].value * chip.attainable["training_matmul"].value
    assert times["muon"] - times["sgd"] == pytest.approx(5 * 6 * 4096 * 8.03e9 / 8 / attained, rel=0.1)


def test_plan_takes_a_recipe():
    best = plan("llama-3-8b", "dgx-h100:8", batch=64, sequence_length=4096, recipe="adamw-8bit", top=1, catalog=CATALOG)
    assert best.best[0].recipe.name == "adamw-8bit"
    again = train(
        "llama-3-8b",
        "dgx-h100:8",
        batch=64,
        sequence_length=4096,
        recipe="adamw-8bit",
        layout=str(best.best[0].layout),
        catalog=CATALOG,
    )
    assert again.estimates[0].allocated_bytes == best.best[0].allocated_bytes


def test_the_nearest_recipe_is_named():
    with pytest.raises(InputError, match="unknown recipe 'megatron-bf61': did you mean megatron-bf16"):
        quick("megatron-bf61")


def own(tmp_path, text):
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "mine.yaml").write_text(text)
    return tmp_path


CONSTANT = (
    "  {}:\n    meaning: as stored\n    value: {}\n    unit: B\n    source: my own run\n    confidence: measured\n"
)


def test_a_recipe_of_ones_own(tmp_path):
    sizes = {
        "weight_bytes": 1,
        "gradient_bytes": 2,
        "optimizer_bytes": 3,
        "step_extra_bytes": 0,
        "loss_bytes": 4,
        "update_bytes": 9,
    }
    text = "name: mine\nmeaning: eight bits\nconstants:\n" + "".join(CONSTANT.format(*item) for item in sizes.items())
    found = quick("mine", catalog=own(tmp_path, text)).estimates[0]
    assert found.memory["parameters"] == pytest.approx(8.03e9, rel=2e-3)


def test_a_constant_that_no_equation_takes_is_refused(tmp_path):
    text = "name: mine\nmeaning: a slip\nconstants:\n" + CONSTANT.format("weigth_bytes", 1)
    with pytest.raises(InputError, match="'weigth_bytes': did you mean weight_bytes"):
        quick("mine", catalog=own(tmp_path, text))


def test_a_range_that_leaves_its_value_out_is_refused(tmp_path):
    text = "name: mine\nmeaning: a slip\nconstants:\n" + CONSTANT.format("weight_bytes", 1) + "    low: 2\n"
    with pytest.raises(CatalogError, match="lies outside its range"):
        quick("mine", catalog=own(tmp_path, text))


def test_attention_that_is_not_fused_keeps_five_bytes_a_score():
    """34 h + 5 a s of the original block: 5 x 2048 x 2048 x 96 bytes more of each sequence of GPT-3, shared by tp."""
    case = on("gpt3-175b", "dgx-h100:8", "tp=8", 2048, 8)
    assert case(score_bytes=5)["whole_layer"] - case()["whole_layer"] == pytest.approx(5 * 2048 * 2048 * 96 / 8)
    assert CATALOG.recipe("deepspeed-zero1-fp16")["score_bytes"].value == 5


def test_messages_kept_of_every_micro_batch_in_flight():
    """1.5 x 2 x 4096 bytes of each of 2048 tokens: of four micro-batches on the first of four stages, of one on the last."""
    case = on("llama-3-8b", "dgx-h100:8", "pp=4 dp=2", 2048, 16)
    plain, kept = case()["pipeline_messages"], case(kept_messages=1.5)["pipeline_messages"]
    more = [after - before for after, before in zip(kept, plain, strict=True)]
    assert more[0] == pytest.approx(4 * 1.5 * 2 * 4096 * 2048)
    assert more[-1] == pytest.approx(1.5 * 2 * 4096 * 2048)
