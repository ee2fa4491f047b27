"""Intervals: they grow with what is predicted, their ends keep their order, and a rate's is that of its time turned round."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.generated.intervals_math import rate_interval, size_interval, time_interval

VALUES = st.floats(1e-9, 1e15)
FACTORS = st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)).map(sorted)


@given(VALUES, FACTORS)
def test_ends_keep_their_order(value, factors):
    low, high = factors
    for found in (
        time_interval(time=value, low=low, high=high),
        size_interval(size=value, low=low, high=high),
        rate_interval(rate=value, low=low, high=high),
    ):
        assert 0 < found["p10"] <= found["p90"]


@given(VALUES, FACTORS, st.floats(0.1, 10))
def test_twice_the_time_has_twice_the_interval(value, factors, more):
    low, high = factors
    once, again = (time_interval(time=time, low=low, high=high) for time in (value, value * more))
    assert again["p10"] == pytest.approx(once["p10"] * more)
    assert again["p90"] == pytest.approx(once["p90"] * more)


@given(st.floats(1, 1e12), VALUES, FACTORS)
def test_a_rate_is_low_where_its_time_is_long(payload, time, factors):
    low, high = factors
    of_time = time_interval(time=time, low=low, high=high)
    of_rate = rate_interval(rate=payload / time, low=low, high=high)
    assert of_rate["p10"] == pytest.approx(payload / of_time["p90"])
    assert of_rate["p90"] == pytest.approx(payload / of_time["p10"])


def test_by_hand():
    assert time_interval(time=10.0, low=0.9, high=1.25) == pytest.approx(
        {"time": 10.0, "low": 0.9, "high": 1.25, "p10": 9.0, "p90": 12.5}
    )
