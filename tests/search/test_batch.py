"""Batches: rounded to whole sequences that a layout divides, exact counts untouched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.search.batch import MOST_TRIED, Batch, parse_batch
from costmodel.search.layout import Layout
from tests.equations.training.drawn import CATALOG

DEFAULTS = CATALOG.assumptions("workload")
small = st.integers(1, 64)


def layout(*, dp=1, size=1, pp=1, schedule="1f1b"):
    return Layout(1, pp, dp, 2 if schedule == "interleaved" else 1, size, 0, False, "none", schedule, "tp-dp-pp")


@given(st.integers(1, 10**8), st.sampled_from((1024, 4096, 8192)), small, small, small, st.booleans())
def test_tokens_become_the_nearest_multiple_that_the_layout_divides(tokens, length, dp, size, pp, interleaved):
    schedule = "interleaved" if interleaved else "1f1b"
    unit = dp * size * (pp if interleaved else 1)
    found = Batch(tokens=tokens).rounded_for(layout(dp=dp, size=size, pp=pp, schedule=schedule), length)
    assert found >= unit and found % unit == 0
    if found > unit:
        assert abs(found * length - tokens) <= unit * length / 2


@given(st.integers(1, 10**6), small, small)
def test_an_exact_count_is_left_alone(sequences, dp, size):
    batch = Batch(sequences=sequences)
    assert batch.rounded_for(layout(dp=dp, size=size), 8192) == sequences
    assert batch.candidates(1024, 8192, 0.05) == [sequences]
    assert batch.note(sequences, 8192) == ""


@given(st.integers(10**4, 10**8), st.sampled_from((1024, 4096)), st.integers(1, 20000), st.sampled_from((0.0, 0.0625)))
def test_candidates_stay_near_and_begin_with_what_divides_best(tokens, length, chips, slack):
    from math import gcd

    found = Batch(tokens=tokens).candidates(chips, length, slack)
    wanted = tokens / length
    assert 1 <= len(found) <= MOST_TRIED
    assert all(abs(n - wanted) <= slack * wanted + 1 for n in found)
    within = range(max(1, round(wanted * (1 - slack))), max(1, round(wanted * (1 + slack))) + 1)
    assert found == sorted(within, key=lambda n: (-gcd(n, chips), abs(n - wanted)))[:MOST_TRIED]


def test_candidates_of_an_enormous_batch_are_found_at_once():
    assert Batch(tokens=3 * 10**18).candidates(1_048_576, 1, 0.0625)[0] == round(3 * 10**18 / 1_048_576) * 1_048_576


def test_what_was_rounded_is_told():
    batch = Batch(tokens=16_000_000)
    assert batch.note(2048, 8192) == (
        "batch of 16,000,000 tokens rounded to 2,048 sequences of 8,192 = 16,777,216 tokens"
    )
    assert Batch(tokens=16_777_216).note(2048, 8192) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2048", Batch(sequences=2048)),
        ("16M", Batch(tokens=16_000_000)),
        ("4Mi", Batch(tokens=4 * 2**20)),
        ("1.5M", Batch(tokens=1_500_000)),
    ],
)
def test_a_number_counts_sequences_a_suffix_makes_it_tokens(text, expected):
    assert parse_batch(text, 8192, 10**10, DEFAULTS) == expected


def test_the_default_grows_with_the_model():
    assert parse_batch(None, 8192, 70 * 10**9, DEFAULTS) == Batch(tokens=4_000_000)
    assert parse_batch(None, 8192, 405 * 10**9, DEFAULTS) == Batch(tokens=16_000_000)


@pytest.mark.parametrize("text", ["", "0", "-4", "nan", "inf", "4.5", "M", "1e400M", "4 000", "1K", "0x10", "16 Gb"])
def test_what_is_no_batch_is_refused_in_a_sentence(text):
    with pytest.raises(InputError) as caught:
        parse_batch(text, 8192, 10**10, DEFAULTS)
    assert "batch" in str(caught.value)
    assert "\n" not in str(caught.value)
