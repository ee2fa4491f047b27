"""CSV: what is written is what is read back, and no text starts a formula."""

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from costmodel.report.csv import defused, render

# csv.reader itself turns nothing else away; surrogates cannot be written to any file.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def read_back(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
@example([('a"b', "c,d")])
@example([("two\nlines", "two\r\nlines")])
@example([("\r", " padded ")])
@example([("=1+1", "+1+1")])
@example([("-1+1", "@SUM(A1)")])
@example([("\t=1", "\uff1d1")])
def test_any_text_is_read_back_as_defused(rows):
    written = render([{"left": left, "right": right} for left, right in rows])
    assert read_back(written) == [["left", "right"], *([defused(a), defused(b)] for a, b in rows)]


@given(texts)
def test_defusing_adds_one_quote_at_most_and_leaves_no_formula(text):
    safe = defused(text)
    assert safe in (text, "'" + text)
    if safe[:1] in tuple("=+-@\t\r"):
        float(safe)  # only a plain number may start with a sign


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+1", "@x", "\tx", "\rx", "-", "=cmd|' /C calc'!A0", "-2e", "+1_0"])
def test_formulas_are_defused(text):
    assert defused(text) == "'" + text


@pytest.mark.parametrize("text", ["-5", "+5", "-1.5e-3", "-.5", "x=1", "", "'=1", "tp=8 pp=16"])
def test_numbers_and_words_stay(text):
    assert defused(text) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_every_digit(value):
    cell = read_back(render([{"x": value}]))[1][0]
    assert float(cell) == value
    assert "'" not in cell


@given(st.integers())
def test_whole_numbers_have_no_separators(value):
    assert read_back(render([{"x": value}]))[1][0] == str(value)


def test_none_and_what_is_not_finite_are_empty():
    row = {"a": None, "b": math.nan, "c": math.inf, "d": -math.inf, "e": 0.0}
    assert render([row]) == "a,b,c,d,e\n,,,,0.0\n"


def test_booleans_and_numpy_scalars_are_plain():
    row = {"a": True, "b": np.float64(0.1), "c": np.int64(7), "d": np.bool_(False)}
    assert render([row]) == "a,b,c,d\ntrue,0.1,7,false\n"


def test_columns_are_the_union_in_order_of_appearance():
    assert render([{"a": 1, "b": 2}, {"b": 3, "c": 4}]) == "a,b,c\n1,2,\n,3,4\n"


def test_a_hostile_column_name_is_defused():
    assert render([{"=x": 1}]) == "'=x\n1\n"


def test_what_is_no_scalar_is_refused():
    with pytest.raises(TypeError, match="cannot hold list"):
        render([{"a": [1]}])
