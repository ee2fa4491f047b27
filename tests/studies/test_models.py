"""`models list` and `models show`: the contract for scripts and what people read."""

import csv
import io
import json

import pytest

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.report import Format, write
from costmodel.studies.models import list_models, show_model

CATALOG = Catalog.open()


def told(answer, form, capsys, **options) -> str:
    write(answer, form, **options)
    return capsys.readouterr().out


def test_models_are_listed_by_a_part_of_their_name():
    names = [row["name"] for row in list_models(CATALOG, named="GPT3").results()]
    assert names == ["gpt3-175b"]
    with pytest.raises(InputError, match="no model has 'gpt-5'"):
        list_models(CATALOG, named="gpt-5")


def test_list_gives_names_and_aliases():
    results = list_models(CATALOG).results()
    assert len(results) == len(CATALOG.names("models"))
    for result in results:
        assert isinstance(result["name"], str) and isinstance(result["aliases"], list)
        assert result["active_parameters"] <= result["parameters"]
    assert {r["name"]: r["parameters"] for r in results}["llama-3.1-405b"] == 405_853_388_800


def test_show_gives_the_three_counts():
    (result,) = show_model("mixtral-8x7b", CATALOG).results()
    assert (result["parameters"], result["active_parameters"]) == (46_702_792_704, 12_879_925_248)
    assert result["active_parameters_without_embedding"] == 12_748_853_248
    assert result["matches_checkpoint"] is True
    assert result["experts"] == result["shape"]["experts"]["count"] == 8


@pytest.mark.parametrize("name", [*CATALOG.names("models"), "7B", "30B"])
def test_items_add_up(name):
    answer = show_model(name, CATALOG)
    (result,) = answer.results()
    assert (
        sum(result["items"].values()) == result["parameters"] == sum(row["parameters"] for row in answer.long_records())
    )
    for row in answer.long_records():
        assert row["each"] is None or row["each"] * row["layers"] == row["parameters"]


def test_show_says_where_the_numbers_come_from(capsys):
    text = told(show_model("deepseek-v3", CATALOG), Format.TABLE, capsys)
    for words in (
        "671,026,419,200",
        "the same, to the last parameter",
        "arXiv 2412.19437",
        "routed experts",
        "multi-token-prediction",
        "deepseek-r1",
    ):
        assert words in text
    assert max(map(len, text.splitlines())) <= 80


def test_show_names_what_has_no_step_time(capsys):
    assert "no step time is known for: mamba2" in told(show_model("nemotron-h-56b", CATALOG), Format.TABLE, capsys)


def test_a_model_without_a_recorded_checkpoint_says_so(capsys):
    answer = show_model("gpt3-175b", CATALOG)
    assert answer.results()[0]["matches_checkpoint"] is None
    assert "no exact count is recorded" in told(answer, Format.TABLE, capsys)


def test_every_format(capsys):
    for answer in (list_models(CATALOG), show_model("70B", CATALOG), show_model("nemotron-3-super", CATALOG)):
        results = json.loads(told(answer, Format.JSON, capsys))["results"]
        rows = list(csv.DictReader(io.StringIO(told(answer, Format.CSV, capsys))))
        assert [row["name"] for row in rows] == [result["name"] for result in results]
        assert [int(row["parameters"]) for row in rows] == [result["parameters"] for result in results]
        long = list(csv.DictReader(io.StringIO(told(answer, Format.CSV, capsys, long=True))))
        assert sum(int(row["parameters"]) for row in long) == sum(result["parameters"] for result in results)
        assert told(answer, Format.MARKDOWN, capsys)
        assert answer.exit_code == 0


def test_unknown_models_raise():
    with pytest.raises(InputError, match="did you mean llama-3"):
        show_model("llama-3.1-450b", CATALOG)
