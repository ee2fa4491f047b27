"""80 % intervals: which class a prediction is of, what stands in for one without rows, and what answers say of it."""

import pytest

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.studies.collective import collective
from costmodel.studies.explain import explain
from costmodel.studies.intervals import (
    CLASSES,
    ENDS,
    error_class,
    of_collective,
    of_memory,
    of_step,
    trained_on,
)
from costmodel.studies.plan import plan
from costmodel.studies.train import train
from tests.equations.training.drawn import CATALOG

SIZES = (2**16, 2**24, 2**30)


def chips():
    return [CATALOG.chip(name) for name in CATALOG.names("chips")]


def chains():
    """Every list of classes that there can be."""
    for chip in chips():
        for experts in (False, True):
            for dtype in ("bf16", "fp8"):
                yield "training", of_step(chip, dtype, experts=experts)
            for quantity in ("allocated", "reserved", "device_used", "between_steps"):
                yield "memory", of_memory(quantity, chip, experts=experts)
    for size in SIZES:
        for library in ("nccl", "none"):
            for torus in (False, True):
                for domains in (1, 4):
                    yield "collectives", of_collective(size, library, torus=torus, domains=domains)


def test_every_prediction_has_an_interval_of_a_class_that_is_described():
    met = set()
    for kind, names in chains():
        found = error_class(kind, names, CATALOG)
        assert set(names) <= set(CLASSES[kind])
        assert 0 < found.low < found.high
        assert found.rows >= 20
        met |= {(kind, name) for name in names}
    assert met == {(kind, name) for kind, names in CLASSES.items() for name in names}


def test_files_hold_three_constants_a_class_and_nothing_else():
    for kind, names in CLASSES.items():
        known = CATALOG.assumptions(f"errors-{kind}")
        assert set(known) <= {f"{name}_{end}" for name in names for end in ENDS}
        for name in names:
            held = [f"{name}_{end}" in known for end in ENDS]
            assert all(held) or not any(held), name
        assert all(number.confidence == "fitted" and "rows of" in number.note for number in known.values())


def test_a_class_without_rows_takes_a_wider_one_and_says_so():
    names = of_collective(2**10, "nccl", torus=False, domains=8)
    found = error_class("collectives", names, CATALOG)
    assert names[0] == "over_nodes_small"
    assert found.name != names[0]
    assert "for want of rows of collectives over several fast domains, to 64 KiB" in found.said()
    plain = error_class("training", of_step(CATALOG.chip("h100-sxm"), "bf16", experts=False), CATALOG)
    assert "for want of" not in plain.said()


def test_what_nobody_measured_is_wider():
    h100, mi300x = CATALOG.chip("h100-sxm"), CATALOG.chip("mi300x")
    assert trained_on(h100)
    assert not trained_on(mi300x)
    measured, guessed = (error_class("training", of_step(c, "bf16", experts=False), CATALOG) for c in (h100, mi300x))
    assert guessed.high / guessed.low > measured.high / measured.low
    run, alone = (
        error_class("collectives", of_collective(2**20, lib, torus=False, domains=1), CATALOG)
        for lib in ("nccl", "none")
    )
    assert alone.high / alone.low > run.high / run.low
    assert alone.low > 1


def test_a_catalog_of_ones_own_can_say_otherwise(tmp_path):
    (tmp_path / "assumptions").mkdir()
    constant = "{{meaning: mine, value: {}, unit: {}, source: mine, confidence: measured}}"
    held = {"low": (0.5, "ratio"), "high": (2, "ratio"), "rows": (99, "count")}
    lines = [f"  dense_16_bits_{end}: {constant.format(*value)}" for end, value in held.items()]
    text = "\n".join(["name: errors-training", "meaning: mine", "constants:", *lines])
    (tmp_path / "assumptions/errors-training.yaml").write_text(text)
    (found,) = train("7B", "dgx-h100:8", layout="tp=2 dp=4", catalog=Catalog.open(tmp_path)).records()
    assert found["step_time_p10_s"] == pytest.approx(found["step_time_s"] / 2)
    assert found["step_time_p90_s"] == pytest.approx(found["step_time_s"] * 2)


def test_classes_that_are_none_are_refused():
    with pytest.raises(InputError, match=r"errors-training\.yaml"):
        error_class("training", ("measured",), _Empty())


class _Empty:
    def assumptions(self, name):
        del name
        return {}


@pytest.fixture(scope="module")
def trained():
    return train("llama-3-70b", "dgx-h100:64", layout="tp=8 dp=8 zero=1 recompute=full", catalog=CATALOG)


def test_a_step_and_its_memory_carry_intervals(trained):
    (row,) = trained.records()
    error = error_class("training", ("dense_16_bits",), CATALOG)
    assert row["error_class"] == "dense_16_bits"
    assert row["step_time_p10_s"] == pytest.approx(row["step_time_s"] * error.low)
    assert row["step_time_p90_s"] == pytest.approx(row["step_time_s"] * error.high)
    for quantity in ("allocated", "reserved", "device_used"):
        ends = [row[f"{quantity}_{end}_bytes"] for end in ("p10", "p90")]
        assert ends[0] <= row[f"{quantity}_bytes"] <= ends[1]
    (result,) = trained.results()
    assert result["step_time_p10_s"] == row["step_time_p10_s"]


def test_people_see_it_beside_the_step_time_with_its_class(trained):
    cells = {row[0]: row[1] for table in trained.tables() for row in table.rows if len(row) == 2}
    assert "80 % interval" in cells["step time"]
    assert "80 % interval" in cells["memory"]
    assert any("dense models in 16 bits" in note and "rows" in note for note in trained.assumptions)


def test_layouts_of_a_plan_are_of_one_class():
    rows = plan("llama-3-8b", "dgx-h100:16", batch="1M", top=3, catalog=CATALOG).records()
    shares = [
        (row["step_time_p10_s"] / row["step_time_s"], row["step_time_p90_s"] / row["step_time_s"]) for row in rows
    ]
    assert len(rows) == 3
    assert all(share == pytest.approx(shares[0]) for share in shares)


def test_collectives_carry_intervals_and_bounds_do_not():
    answer = collective("all-reduce", "1GiB", "dgx-h100:2x8", catalog=CATALOG)
    for row in answer.records():
        assert row["error_class"] == "over_nodes"
        assert 0 < row["time_p10_s"] < row["time_p90_s"]
    assert answer.comparison
    assert all(row.bounds == (None, None) for row in answer.comparison)
    assert any("80 % interval" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("place", "name"), [("domain", "in_node_medium"), ("leaf", "over_nodes"), ("host", "links_medium")]
)
def test_a_message_is_of_the_class_of_its_place(place, name):
    (row,) = collective("send-recv", "1MiB", "dgx-h100:64", between=place, catalog=CATALOG).records()
    assert row["error_class"] == name


def test_a_collective_of_one_rank_takes_no_time():
    (row,) = collective("all-reduce", "1MiB", "dgx-h100:8", group=1, catalog=CATALOG).records()
    assert (row["time_p10_s"], row["time_p90_s"]) == (0, 0)


def test_explain_shows_where_the_ends_come_from(trained):
    (row,) = trained.records()
    answer = explain(
        "interval.p90", "llama-3-70b", on="dgx-h100:64", layout="tp=8 dp=8 zero=1 recompute=full", catalog=CATALOG
    )
    text = "\n".join(str(table) for table in answer.tables())
    assert f"{row['step_time_p90_s']:.4g}" in text
