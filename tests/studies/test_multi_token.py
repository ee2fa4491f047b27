"""`train`, `plan`, `explain` and `models show` with modules that predict further tokens."""

import json

import pytest

from costmodel.catalog.huggingface import read_config
from costmodel.errors import CatalogError, InputError
from costmodel.studies.explain import explain
from costmodel.studies.models import show_model
from costmodel.studies.plan import plan
from costmodel.studies.train import train
from tests.catalog.configurations import CONFIGURATIONS
from tests.equations.training.drawn import CATALOG

ASKED = {"batch": 2048, "sequence_length": 4096, "catalog": CATALOG}
LAYOUT = "tp=2 ep=32 pp=4 zero=1"


def answer(number, model="glm-4.5", **more):
    return train(model, "dgx-h100:1024", layout=LAYOUT, multi_token_prediction=number, **ASKED | more)


def notes(found):
    return " ".join(found.notes[0])


def test_what_is_trained_is_said_beside_what_was_published():
    assert "trained without its 1 multi-token-prediction module; --mtp 1 adds it" in notes(answer(0))
    assert "trained with 1 multi-token-prediction module (--mtp)" in notes(answer(1))
    assert "trained with 2 multi-token-prediction modules (--mtp); glm-4.5 was published with 1" in notes(answer(2))
    dense = train("llama-3-8b", "dgx-h100:8", layout="tp=2", batch=64, sequence_length=4096, catalog=CATALOG)
    assert "multi-token" not in notes(dense)


def test_scripts_are_told_the_number():
    found = answer(1)
    assert found.results()[0]["multi_token_prediction"] == found.records()[0]["multi_token_prediction"] == 1
    assert [stage["multi_token_prediction"] for stage in found.results()[0]["stages"]] == [0, 0, 1]


def test_the_table_of_stages_names_the_module():
    tables = answer(1, stages=True).tables()
    table = next(table for table in tables if table.title == "Memory by stage and phase")
    named = [row[0] for row in table.rows if not row[0].startswith(" ")]
    assert named[-1] == "last: 23 layers and 1 MTP module, 1 in flight"
    assert all("MTP" not in name for name in named[:-1])


def test_the_loss_takes_twice_the_time_and_the_checkpoint_grows():
    none, one = (answer(number).estimates[0] for number in (0, 1))
    assert one.time["loss"] > 0
    assert one.step_time_s > none.step_time_s
    assert one.failures.checkpoint_bytes > none.failures.checkpoint_bytes
    assert one.mfu == pytest.approx(one.chip_flops_per_s / one.peak_flops_per_s)


def test_a_plan_is_of_the_same_modules():
    best = plan("glm-4.5-air", "dgx-h100:128", multi_token_prediction=1, top=2, **ASKED).best
    for found in best:
        again = train(
            "glm-4.5-air", "dgx-h100:128", layout=str(found.layout), multi_token_prediction=1, **ASKED
        ).estimates[0]
        assert again.step_time_s == found.step_time_s
        assert found.multi_token_prediction == 1


def test_explain_has_the_numbers_of_train():
    (told,) = explain(
        "step_time", "glm-4.5", "dgx-h100:1024", layout=LAYOUT, multi_token_prediction=1, **ASKED
    ).results()
    assert told["value"] == answer(1).estimates[0].step_time_s


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (-1, "--mtp -1 is out of range: from 0 to the 92 layers of glm-4.5; glm-4.5 was published with 1"),
        (93, "--mtp 93 is out of range: from 0 to the 92 layers"),
        ("1", "--mtp is a whole number of modules"),
    ],
)
def test_numbers_that_cannot_be_are_answered_with_help(number, said):
    with pytest.raises(InputError, match=said.replace("(", r"\(")):
        answer(number)


def test_a_collective_has_no_modules():
    with pytest.raises(InputError, match="--mtp is of a training step"):
        explain("collective.all_reduce", size="1GiB", on="dgx-h100:16", multi_token_prediction=1, catalog=CATALOG)


def test_models_show_tells_what_a_module_weighs_beside_the_total():
    (result,) = show_model("deepseek-v3", CATALOG).results()
    assert result["parameters"] == 671_026_419_200
    assert result["multi_token_prediction"] == {
        "layers": 1,
        "parameters_each": 11_610_068_224,
        "parameters_each_with_shared": 13_463_426_304,
    }
    totals = show_model("deepseek-v3", CATALOG).tables()[1]
    assert ("a multi-token-prediction module, of 1", "11,610,068,224") in totals.rows
    (without,) = show_model("llama-3-8b", CATALOG).results()
    assert without["multi_token_prediction"] is None
    assert without["multi_token_prediction_layers"] == 0


def configuration(tmp_path, name, **fields):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIGURATIONS[name] | fields), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["deepseek-v3", "llama-3.1-8b"])
@pytest.mark.parametrize(("field", "layers"), [(2, 2), (0, 0), (None, 0)])
def test_config_json_says_how_many(tmp_path, name, field, layers):
    model = read_config(configuration(tmp_path, name, num_nextn_predict_layers=field))
    assert model.multi_token_prediction_layers == layers
    assert ("multi-token-prediction" in model.not_counted) == bool(layers)
    assert "num_nextn" not in model.note


def test_config_json_that_says_nonsense_is_refused_by_field(tmp_path):
    with pytest.raises(CatalogError, match="num_nextn_predict_layers"):
        read_config(configuration(tmp_path, "deepseek-v3", num_nextn_predict_layers=-1))
