"""`validate`: statistics, groups, records, and what it refuses."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.studies.validate import validate
from costmodel.studies.validation import kinds
from costmodel.studies.validation.outcome import Outcome
from costmodel.studies.validation.rows import published
from costmodel.studies.validation.statistics import quantile, summaries, summary, worst
from tests.equations.training.drawn import CATALOG


def outcome(name, measured, predicted, **more):
    return Outcome("training", name, "step_time_s", measured, predicted, **more)


TEN = [outcome(f"r{n}", 10, 10 + n, source="odd" if n % 2 else "even") for n in range(1, 11)]


def test_statistics_that_can_be_checked_in_the_head():
    found = summary("training", "all", TEN)
    assert (found.n, found.median_abs_error, found.bias) == (10, pytest.approx(0.55), pytest.approx(0.55))
    assert found.p90_abs_error == pytest.approx(0.91)
    low = summary(
        "training", "all", [outcome("a", 10, 9), outcome("b", 10, 8), outcome("c", 10, 15), outcome("d", 10, None)]
    )
    assert (low.n, low.median_abs_error, low.bias) == (3, pytest.approx(0.2), pytest.approx(-0.1))
    assert summary("training", "all", []).median_abs_error is None


def test_groups():
    found = {one.group: one.n for one in summaries("training", TEN, "source")}
    assert found == {"all": 10, "even": 5, "odd": 5}
    assert [one.group for one in summaries("training", TEN, None)] == ["all"]


def test_the_worst_counts_too_low_as_much_as_too_high():
    rows = [outcome("half", 10, 5), outcome("more", 10, 19), outcome("double", 10, 21)]
    assert [one.id for one in worst(rows, 3)] == ["double", "half", "more"]


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=50), st.floats(0, 1))
def test_a_quantile_lies_between_the_ends_and_grows(numbers, share):
    ordered = sorted(numbers)
    assert ordered[0] <= quantile(ordered, share) <= ordered[-1] * (1 + 1e-12)
    assert quantile(ordered, share * 0.9) <= quantile(ordered, share) * (1 + 1e-12)


@pytest.fixture(scope="module")
def training():
    return validate("training", catalog=CATALOG)


def test_every_row_is_predicted_or_says_why_not(training):
    rows = training.outcomes["training"]
    assert len(rows) > 700
    assert all((one.predicted is None) == bool(one.skipped) for one in rows)
    assert all(one.predicted > 0 and one.measured > 0 for one in rows if not one.skipped)
    assert sum(one.headline for one in rows) > 300


def test_records(training):
    (record, *_) = training.records()
    assert list(record) == ["kind", "group", "n", "median_abs_error", "p90_abs_error", "bias"]
    assert (record["kind"], record["group"]) == ("training", "all")
    each = validate("memory", each_row=True, catalog=CATALOG).records()
    assert {"id", "quantity", "measured", "predicted", "low", "high", "skipped"} <= set(each[0])
    assert {row["quantity"] for row in each} == {
        "allocated_bytes",
        "reserved_bytes",
        "device_used_bytes",
        "between_steps_bytes",
    }


def test_all_rows_are_more_than_the_headline_rows(training):
    every = validate("training", all_rows=True, catalog=CATALOG)
    assert every.records()[0]["n"] > training.records()[0]["n"]


def test_a_table_tells_its_kinds():
    assert kinds.of_table(published("training")) == ("training", "memory")
    assert kinds.of_table(published("megatron_memory")) == ("memory",)


def test_shipped_rows_in_another_file_are_no_more_unseen_than_here(tmp_path, training):
    """Factors were fitted to three in four of them: a copy of the table must not claim that nobody looked."""
    copy = tmp_path / "copy.csv"
    copy.write_text(published("training").read_text("utf-8"), "utf-8")
    again = validate("training", table=copy, catalog=CATALOG)
    assert [one.unseen for one in again.outcomes["training"]] == [one.unseen for one in training.outcomes["training"]]
    golden = tmp_path / "golden.csv"
    golden.write_text(published("megatron_memory").read_text("utf-8"), "utf-8")
    (*_, every) = validate("memory", table=golden, catalog=CATALOG).coverages("memory")
    assert every.unseen < every.n / 2


def test_what_it_refuses(tmp_path):
    with pytest.raises(InputError, match="did you mean training"):
        validate("trainings", catalog=CATALOG)
    with pytest.raises(InputError, match="unknown grouping 'sources': did you mean source"):
        validate(by="sources", catalog=CATALOG)
    odd = tmp_path / "odd.csv"
    odd.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="are those of no kind of measurement"):
        validate(table=odd, catalog=CATALOG)
    with pytest.raises(InputError, match="holds no training"):
        validate("training", table=published("megatron_memory"), catalog=CATALOG)
    with pytest.raises(InputError, match="cannot read the table"):
        validate(table=Path("nowhere.csv"), catalog=CATALOG)
