"""Published layouts: what a person asks of `train` with the same words, and reasons where nothing is predicted."""

import csv

import pytest

from costmodel.catalog.catalog import Catalog
from costmodel.studies.train import train
from costmodel.studies.validation.layouts import records
from costmodel.studies.validation.rows import published

CATALOG = Catalog.open()
ROWS = {row["id"]: row for row in csv.DictReader(published("layouts").read_text("utf-8").splitlines())}


@pytest.mark.parametrize(
    "name", ["korthikanti-175b-selective", "qwen3-30b-a3b-h100-16", "palm-540b", "torchtitan-8b-8"]
)
def test_the_same_words_give_the_same_answer_by_hand(name):
    row = ROWS[name]
    asked = train(
        row["model"],
        row["on"],
        layout=row["layout"],
        slices=int(row["slices"] or 1),
        sequence_length=int(row["sequence_length"]),
        batch=int(row["global_batch_sequences"]),
        dtype=row["dtype"],
        recipe=row["recipe"] or None,
        catalog=CATALOG,
    ).estimates[0]
    found = {one["quantity"]: one for one in records(CATALOG) if one["id"] == name}
    assert found["step_time_s"]["predicted"] == pytest.approx(asked.step_time_s, rel=1e-12)
    assert found["step_time_s"]["published"] == float(row["step_time_s"])
    if "mfu" in found:
        assert found["mfu"]["predicted"] == pytest.approx(asked.mfu, rel=1e-12)
    if "reserved_bytes" in found:
        assert found["reserved_bytes"]["predicted"] == pytest.approx(asked.reserved_bytes, rel=1e-12)


def test_a_row_without_a_prediction_says_why():
    rows = list(records(CATALOG))
    assert len({row["id"] for row in rows}) == len(ROWS) == len({row["id"] for row in ROWS.values()})
    for row in rows:
        assert (row["predicted"] is None) == bool(row["not_predicted"])
        assert row["error"] is None or row["error"] == pytest.approx(row["predicted"] / row["published"] - 1)


def test_what_cannot_be_asked_is_a_reason(tmp_path):
    table = tmp_path / "layouts.csv"
    plain = ROWS["llama3-405b-8k-8192"] | {"id": "a", "mfu_percent": "40"}
    rows = [plain | {"layout": "tp=8 pp=5"}, plain | {"on": "dgx-z:8"}, plain | {"layout": "tp=8 pp=16 v=5"}]
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, plain)
        writer.writeheader()
        writer.writerows(rows)
    reasons = [row["not_predicted"] for row in records(CATALOG, table)]
    assert "not the 8192 chips" in reasons[0]
    assert "dgx-z" in reasons[1]
    assert reasons[2] == (
        "it breaks the rule that pp times v divides the layers, or the layers and two, where first and last do not say otherwise"
    )
