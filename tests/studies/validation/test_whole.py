"""Whole tables of a package: what is kept in little memory is what came, and what is asked wrongly is refused."""

import importlib.util

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.studies.validate import validate
from costmodel.studies.validation import kernel_packages
from costmodel.studies.validation.collective_packages import OTHER_LIBRARIES
from costmodel.studies.validation.gathered import Gathered
from costmodel.studies.validation.outcome import Outcome
from tests.equations.training.drawn import CATALOG

WORDS = st.sampled_from(["", "a", "vllm 0.24"])
NUMBERS = st.none() | st.floats(1e-9, 1e9)
NAMES = st.text("ab-/019٣", max_size=20)
OUTCOMES = st.builds(
    Outcome,
    WORDS,
    NAMES,
    WORDS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    skipped=WORDS,
    source=WORDS,
    strategy=WORDS,
    classes=st.sampled_from([(), ("a", "b")]),
    unseen=st.booleans(),
)
needs_package = pytest.mark.skipif(
    importlib.util.find_spec("aiconfigurator_core") is None, reason=kernel_packages.MISSING
)


@given(st.lists(OUTCOMES, max_size=8))
def test_what_is_gathered_is_what_came(outcomes):
    gathered = Gathered(outcomes)
    assert list(gathered) == outcomes
    assert len(gathered) == len(outcomes)
    assert gathered[1:] == outcomes[1:]


def test_without_the_package_one_row_says_so(monkeypatch):
    monkeypatch.setattr(kernel_packages, "find_spec", lambda _: None)
    found = validate(whole=True, catalog=CATALOG)
    assert [len(rows) for rows in found.outcomes.values()] == [1, 1]
    for rows in found.outcomes.values():
        assert "not installed: pip install 'roofline-costmodel[deep]'" in rows[0].skipped
    assert [record["n"] for record in found.records()] == [0, 0]


def test_what_has_no_whole_tables_is_refused(tmp_path):
    with pytest.raises(InputError, match="no whole tables of training: --whole is for collectives or kernels"):
        validate("training", whole=True, catalog=CATALOG)
    with pytest.raises(InputError, match="--whole takes the tables of an installed package"):
        validate(whole=True, table=tmp_path / "any.csv", catalog=CATALOG)


@needs_package
def test_every_measured_collective_is_predicted_or_names_its_library():
    found = validate("collectives", whole=True, catalog=CATALOG)
    (every, *_) = found.summaries("collectives")
    assert every.n > 5000
    assert every.median_abs_error < 0.06
    assert abs(every.bias) < 0.03
    rows = found.outcomes["collectives"]
    assert all("NCCL 2." in one.source for one in rows if not one.skipped)
    assert {one.skipped for one in rows if one.skipped} >= {
        OTHER_LIBRARIES[name] for name in ("custom_allreduce", "moe_a2a", "wideep", "oneccl")
    }
    times = {one.id: one.measured for one in rows}
    # 2**28 elements of two bytes are half a gibibyte: bus bandwidth of the largest all-gather is near, and below, the port's 450 GB/s.
    name = "h100_sxm/nccl/2.29.2/nccl_perf/all-gather-fp16-8-536870912"
    assert 300e9 < 7 / 8 * 2**29 / times[name] < 450e9
