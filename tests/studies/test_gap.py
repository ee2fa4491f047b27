"""A measured step beside the predicted one: each reason, put in, closes the gap."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.report import Format
from costmodel.report.write import render
from costmodel.runtime import call
from costmodel.search.evaluate import inputs, math_module
from costmodel.studies.gap import SCALED, gap, measured_seconds
from costmodel.studies.question import ask
from costmodel.studies.train import settle, train
from costmodel.topology.machine import parse_machine

CATALOG = Catalog.open()
CASES = [
    ("llama-3-70b", "dgx-h100:512", "tp=8 pp=4"),
    ("llama-3-8b", "dgx-h100:64", "zero=3"),
    ("mixtral-8x7b", "dgx-h100:64", "ep=8"),
    ("llama-3-8b", "tpu-v5p:4x4x4", "zero=3"),
    ("llama-3-8b", "mi300x-cluster:64", "tp=8"),
]


def settled(model, on, layout):
    question = ask(
        model, parse_machine(on, 1, CATALOG), CATALOG, sequence_length=None, batch=None, tokens=None, dtype=None
    )
    return settle(question, layout, CATALOG)


SETTLED = {case: settled(*case) for case in CASES}


def step_time(workload, layout, changed):
    return call(math_module(workload).evaluate, {**inputs(workload, layout, CATALOG), **changed})["step_time"]


@settings(max_examples=12)
@given(st.sampled_from(CASES), st.floats(0.7, 1.8))
def test_each_constant_put_in_gives_the_measured_step(case, factor):
    workload, layout = SETTLED[case]
    given_inputs = inputs(workload, layout, CATALOG)
    predicted = step_time(workload, layout, {})
    found = gap(predicted * factor, workload, layout, CATALOG)
    if abs(factor - 1) < 1e-3:
        assert found.constants == found.items == ()
        return
    assert found.constants
    for one in found.constants:
        if one.needed is None:
            continue
        names = [name for name in SCALED.get(one.name, (one.name,)) if given_inputs.get(name) or name == one.name]
        first = next((name for name in names if name in given_inputs), one.name)
        changed = {
            name: one.needed if name == first or not one.now else given_inputs[name] * one.needed / one.now
            for name in names
            if name in given_inputs
        }
        if one.name == "expert_imbalance":
            # Rows of an expert fill whole tiles, so that the step goes up in stairs: the measured one lies on the rise.
            stairs = [step_time(workload, layout, {one.name: one.needed * times}) for times in (0.999, 1.001)]
            assert stairs[0] <= found.measured_s * (1 + 1e-9) and found.measured_s <= stairs[1] * (1 + 1e-9)
        else:
            assert step_time(workload, layout, changed) == pytest.approx(found.measured_s, rel=1e-6), one.name
        assert (one.verdict == "plausible") == (one.low <= one.needed <= one.high)
    for one in found.items:
        assert one.needed is None or one.needed - one.now == pytest.approx(found.gap_s, rel=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_a_step_of_slower_products_names_their_share(case):
    workload, layout = SETTLED[case]
    share = inputs(workload, layout, CATALOG)["matmul_share"]
    slower = {name: 0.9 * inputs(workload, layout, CATALOG)[name] for name in SCALED["matmul_share"]}
    measured = step_time(workload, layout, slower)
    first = {one.name: one for one in gap(measured, workload, layout, CATALOG).constants}["matmul_share"]
    assert first.needed == pytest.approx(0.9 * share, rel=1e-6)
    assert (first.verdict, first.explains) == ("plausible", 1.0)


def test_plausible_reasons_come_first_and_the_least_change_before_all():
    workload, layout = SETTLED[CASES[0]]
    found = gap(1.1 * step_time(workload, layout, {}), workload, layout, CATALOG).constants
    order = [one.verdict for one in found]
    assert order == sorted(order, key=["plausible", "implausible", "impossible"].index)
    changes = [abs(one.needed - one.now) / (one.high - one.low) for one in found if one.verdict == "plausible"]
    assert changes == sorted(changes)
    assert len(changes) > 1


def test_the_gap_is_in_every_format():
    answer = train("llama-3-70b", "dgx-h100:512", layout="tp=8 pp=4", measured="12.3s")
    assert answer.gap.measured_s == 12.3
    assert "matrix products," in render(answer, Format.TABLE)
    told = render(answer, Format.JSON)
    assert '"gap_s"' in told
    assert '"explains_at_most"' in told
    assert "measured" not in train("llama-3-70b", "dgx-h100:512", layout="tp=8 pp=4").extras()


def test_a_prediction_that_holds_has_no_gap():
    predicted = train("llama-3-70b", "dgx-h100:512", layout="tp=8 pp=4").estimates[0].step_time_s
    answer = train("llama-3-70b", "dgx-h100:512", layout="tp=8 pp=4", measured=predicted)
    assert answer.gap.constants == answer.gap.items == ()
    assert "Measured and predicted" in render(answer, Format.TABLE)


@pytest.mark.parametrize("text", ["0s", "-1s", "soon", "nan", "inf", "12 parsecs", "1e40s", 0.0, float("nan"), None])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(InputError):
        measured_seconds(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("12.3s", 12.3), ("850 ms", 0.85), ("2min", 120.0), ("3", 3.0), (1.5, 1.5)]
)
def test_times_as_people_write_them(text, seconds):
    assert measured_seconds(text) == pytest.approx(seconds)


def test_it_is_of_one_model_and_one_layout():
    with pytest.raises(InputError, match="give --layout"):
        train("llama-3-70b", "dgx-h100:512", measured="12s")
    with pytest.raises(InputError, match="name one beside --measured"):
        train(["llama-3-8b", "llama-3-70b"], "dgx-h100:512", layout="tp=8 pp=4", measured="12s")
