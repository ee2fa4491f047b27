"""`explain --set`: numbers that a person puts in place of an answer's."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.catalog.units import QUANTITIES, parse_measure
from costmodel.errors import InputError
from costmodel.studies.explain import explain

ASKED = {"model": "llama-2-7b", "on": "dgx-a100:8", "sequence_length": 4096, "batch": 16}


def test_a_measured_step_has_its_mfu():
    """65,536 tokens of 46.08 GFLOP on eight chips of 312 TFLOP/s in 2.2 s."""
    found = explain("mfu", **ASKED, values={"step_time": "2.2s"})
    assert found.tree.value == pytest.approx(0.55, abs=1e-3)
    assert "set: step_time = 2.2 s" in found.notes
    assert explain("mfu", **ASKED, values={"step-time": 2.2}).tree.value == found.tree.value


def test_what_an_answer_has_itself_changes_nothing():
    plain = explain("step_time", **ASKED)
    (peak,) = (part.value for part in explain("mfu", **ASKED, depth=1).tree.parts if part.name == "peak")
    assert explain("step_time", **ASKED, values={"peak": peak}).tree.value == plain.tree.value
    assert explain("step_time", **ASKED, values={"peak": 2 * peak}).tree.value < plain.tree.value


def test_numbers_alone_are_enough_where_they_are_all_that_is_needed():
    found = explain("mfu", values={"chip_rate": "420TFLOP/s", "peak": "989.4TFLOP/s"})
    assert found.tree.value == pytest.approx(0.4245, rel=1e-4)
    assert found.title == "training.mfu of the numbers given"
    regime = explain("mfu", values={"chip_rate": "420TFLOP/s", "peak": "989.4TFLOP/s"}, only=["peak"]).regime
    assert regime.value == found.tree.value


@pytest.mark.parametrize(
    ("quantity", "options", "said"),
    [
        ("mfu", {"values": {"chip_rate": 1}}, "training.mfu also needs peak: --set them too, or name a model and"),
        ("model.parameters", {"values": {"layers": 3}}, "also needs .* and others: --set them too, or name a model"),
        ("mfu", {**ASKED, "values": {"step_tim": 1}}, "did you mean .*step_time"),
        ("mfu", {**ASKED, "values": {"mfu": 1}}, "that is what is asked for"),
        ("mfu", {**ASKED, "values": {"schedule": 1}}, "a choice of the layout"),
        ("allocated", {**ASKED, "values": {"stage_weights": 1}}, "a value for every stage, not one"),
        ("mfu", {**ASKED, "values": {"nic_bandwidth": 1, "step_time": 1}}, "does not depend on it once step_time is"),
        ("model.parameters", {"model": "7B", "values": {"sequence_length": 1}}, "does not depend on it$"),
        ("mfu", {**ASKED, "values": {"step_time": "2GB"}}, "a unit of bytes"),
        ("mfu", {**ASKED, "values": {"step_time": "0"}}, "cannot be worked out with --set step_time=0: .* above 0$"),
        ("mfu", {**ASKED, "values": {"step_time": "fast"}}, "is not a number: give a number such as 2.5 s"),
    ],
)
def test_what_cannot_be_set_is_said(quantity, options, said):
    with pytest.raises(InputError, match=said):
        explain(quantity, **options)


@given(st.floats(1e-9, 1e9), st.sampled_from([(si, unit) for si, units in QUANTITIES.values() for unit in units]))
def test_a_number_with_any_unit_of_the_catalog(number, pair):
    si, unit = pair
    if si in ("count", "share", "ratio"):
        return  # counts take suffixes instead
    factor = next(units[unit] for base, units in QUANTITIES.values() if base == si)
    assert math.isclose(parse_measure(f"{number} {unit}", si, "x"), number * factor, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("text", "si", "value"),
    [
        ("16M", "", 16e6),
        ("1.4T", "", 1.4e12),
        ("0.5", "", 0.5),
        ("0", "s", 0),
        ("0.0 us", "s", 0),
        ("3TFLOP", "FLOP", 3e12),
    ],
)
def test_counts_and_zeros(text, si, value):
    assert parse_measure(text, si, "x") == value


@given(st.text(max_size=12), st.sampled_from(["", "s", "B", "FLOP/s", "1/s", "USD/s"]))
def test_any_text_is_a_number_or_refused_in_a_sentence(text, si):
    try:
        assert 0 <= parse_measure(text, si, "x") < math.inf
    except InputError as error:
        assert str(error).startswith("x ")


@pytest.mark.parametrize(("length", "tokens"), [(6048, 6048), (8192, 8192)])
def test_a_cache_is_explained(length, tokens):
    """80 layers of 8 heads of 128, keys and values in two bytes: 320 KiB a token."""
    assert explain("cache_per_sequence", "llama-3-70b", sequence_length=length).tree.value == 327_680 * tokens
    assert explain("cache_per_token", "llama-3-70b", dtype="fp8").tree.value == 327_680 / 2
    with pytest.raises(InputError, match="unknown dtype"):
        explain("cache_per_token", "llama-3-70b", dtype="fp7")


def test_a_step_time_has_its_interval():
    asked = ("llama-3-8b", "dgx-h100:64")
    assert "80 % interval, steps of dense models in 16 bits on GPUs" in explain("step_time", *asked).notes[-1]
    assert not any("interval" in note for note in explain("mfu", *asked).notes)


def test_a_share_of_the_peak_above_one_is_told():
    """A step of half a second in place of seven: 7.7 times the peak."""
    asked = ("llama-3-8b", "dgx-h100:64")
    told = explain("mfu", *asked, layout="dp=64 zero=2", values={"step_time": 0.5})
    assert "above 1 cannot be" in told.notes[-1]
    assert not any("cannot be" in note for note in explain("mfu", *asked, layout="dp=64 zero=2").notes)
