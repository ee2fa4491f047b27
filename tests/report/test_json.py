"""JSON: one object, the contract's keys first, no NaN."""

import json
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from costmodel.report.json import render
from costmodel.version import __version__
from tests.report.answers import Said


def strict(text):
    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def test_keys_in_order():
    whole = strict(render(Said(), "0123456789ab"))
    assert list(whole) == ["tool_version", "catalog_hash", "results", "searched"]
    assert whole["tool_version"] == __version__
    assert whole["catalog_hash"] == "0123456789ab"
    assert whole["results"] == [{"name": "ring", "time_s": 0.0123, "bytes": 1 << 30, "fits": True, "note": None}]


def test_what_is_not_finite_becomes_null_at_any_depth():
    more = {"a": {"b": [math.nan, (math.inf, 1.5)]}, "c": np.float64("nan"), "d": np.int64(3)}
    whole = strict(render(Said(more=more), ""))
    assert whole["a"] == {"b": [None, [None, 1.5]]}
    assert whole["c"] is None
    assert whole["d"] == 3


@given(st.dictionaries(st.text(), st.floats() | st.integers() | st.text() | st.booleans() | st.none()))
def test_any_record_is_strict_json(record):
    whole = strict(render(Said(rows=(record,)), ""))
    expected = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}
    assert whole["results"] == [expected]
