"""Explanations of answers: the numbers are those of the studies, whatever is asked is met with help."""

import math
import re

import pytest

from costmodel.catalog.catalog import Catalog
from costmodel.equations.axes import INNER_AXES
from costmodel.equations.evaluation import step as training_step
from costmodel.errors import InputError
from costmodel.report import Format
from costmodel.report.write import render
from costmodel.runtime import call
from costmodel.search.evaluate import inputs
from costmodel.studies.collective import collective
from costmodel.studies.explain import explain, quantities
from costmodel.studies.models import show_model
from costmodel.studies.question import ask
from costmodel.studies.subjects import SUBJECTS
from costmodel.studies.train import settle, train
from costmodel.symbolic import compile_math, count
from costmodel.symbolic.explain import tree
from costmodel.symbolic.point import Point
from costmodel.symbolic.regime import regime
from costmodel.topology.machine import parse_machine
from tests.symbolic.worth import worth

LAYOUT = "tp=8 pp=16 dp=128 zero=1 sp=1"
STEP = {"layout": LAYOUT, "batch": "16M", "sequence_length": 8192}
STEP_405B = ("step_time", "llama-3.1-405b", "dgx-h100:16384")


@pytest.mark.parametrize(
    ("operation", "on", "more"),
    [
        ("all-reduce", "dgx-h100:64x8", {}),
        ("all-gather", "dgx-h100:512", {"group": 8}),
        ("reduce-scatter", "tpu-v5p:8x16x16", {"axes": "x"}),
        ("all-to-all", "tpu-v5p:4x4x8", {}),
    ],
)
def test_a_collective_is_explained_with_the_numbers_of_its_study(operation, on, more):
    fastest = collective(operation, "64MiB", on, **more).timings[0]
    found = explain(f"collective.{operation}", on=on, size="64MiB", depth=3, **more)
    assert math.isclose(found.tree.value, fastest.time_s, rel_tol=1e-12)
    taken = [part.name for part in found.tree.parts]
    assert taken[0].startswith(operation.replace("-", "_"))
    assert found.tree.parts[0].value == found.tree.value


@pytest.mark.parametrize(
    ("model", "on", "more"),
    [("llama-3.1-405b", "dgx-h100:16384", STEP), ("llama-3-70b", "tpu-v5p:8x8x8", {}), ("7B", "dgx-h100:8", {})],
)
def test_a_step_is_explained_with_the_numbers_of_train(model, on, more):
    (answer,) = train(model, on, **more).estimates
    found = explain("step_time", model, on, **more)
    assert math.isclose(found.tree.value, answer.step_time_s, rel_tol=1e-12)
    assert f"layout: {answer.layout}" in found.notes
    assert found.title == f"training.step_time of {answer.model} on {on}"


def test_a_model_is_explained_with_the_numbers_of_models_show():
    parameters = show_model("llama-3-70b").results()[0]["parameters"]
    assert explain("parameters", "llama-3-70b").tree.value == parameters
    assert explain("model.parameters", "llama-3-70b").title == "model.parameters of llama-3-70b"
    longer = [explain("forward_flops", "llama-3-70b", sequence_length=n).tree.value for n in (1024, 8192)]
    assert longer[0] < longer[1]


def test_a_definition_comes_without_numbers():
    found = explain("mfu")
    assert found.title == "training.mfu"
    assert found.tree.value is None
    assert found.tree.text == "chip_rate / peak"
    assert [part.name for part in found.tree.parts] == ["chip_rate", "peak"]
    assert explain("collective.all_gather_one_order").tree.text  # on a torus alone
    assert explain("mfu", depth=0).tree.parts == ()


def test_a_regime_is_a_formula_that_holds_for_other_machines_of_its_kind():
    found = explain(*STEP_405B, **STEP, only=["nic-bandwidth"])
    regime = found.regime
    fixed, times = re.fullmatch(r"([\d.]+) \+ ([\d.]+e10) / nic_bandwidth", regime.expression).groups()
    assert math.isclose(float(fixed) + float(times) / regime.now, regime.value, rel_tol=1e-5)
    assert regime.low < regime.now < regime.high
    assert found.records()[0]["exact_to"] == regime.high
    assert found.tables()[0].notes[0] == f"step_time = {regime.expression}   [s]"
    assert f"{regime.now:.0e}".replace("e+", "e") in found.tables()[0].notes[1]


def test_a_regime_of_two_numbers_has_no_ends():
    found = explain(*STEP_405B, **STEP, only=["nic_bandwidth", "global_batch"])
    assert {"nic_bandwidth", "global_batch"} <= set(re.findall(r"[a-z_]+", found.regime.expression))
    assert (found.regime.low, found.regime.high) == (None, None)


def test_rows_are_chosen_by_label():
    found = explain("layer_products", "llama-3-70b", "dgx-h100:64", rows={"part": "weight-gradient".replace("-", "_")})
    assert found.tree.shown == "layer_products[weight_gradient]"


@pytest.mark.parametrize("form", ["text", "latex", "markdown"])
@pytest.mark.parametrize("output", list(Format))
@pytest.mark.parametrize("only", [(), ("nic_bandwidth",)])
def test_every_explanation_can_be_written_in_every_format(form, output, only):
    found = explain("collective.all_reduce", on="dgx-h100:64x8", size="1GiB", form=form, only=only)
    text = render(found, output, long=True)
    assert "all_reduce" in text or "all\\_reduce" in text
    if output is Format.TABLE and form == "text":
        assert all(len(line) <= 80 for line in text.splitlines())


def test_every_answer_is_listed_and_can_be_explained():
    listed = quantities()
    assert {row[0] for row in listed.rows} == set(SUBJECTS)
    for subject, name, unit, meaning in listed.rows:
        found = explain(f"{subject}.{name}", depth=0).tree
        assert (found.unit, found.equation.meaning) == (unit, meaning)
    assert all(render(listed, output) for output in Format)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (("step_tme",), {}, "unknown quantity 'step_tme': did you mean step_time"),
        (("collective.all_reduc",), {}, "did you mean collective.all_reduce"),
        (("colective.all_reduce",), {}, "unknown subject 'colective': did you mean collective?"),
        (("step_time", "llama-3-70b"), {}, "need both a model and a machine"),
        (("step_time", None, "dgx-h100:8"), {}, "need both a model and a machine"),
        (("collective.all_reduce", None, "dgx-h100:8"), {}, "need both its payload and a machine"),
        (("collective.all_reduce",), {"size": "1GiB"}, "need both its payload and a machine"),
        (("collective.all_reduce", "llama-3-70b"), {}, "a collective needs no model"),
        (("collective.dispatch", None, "dgx-h100:8"), {"size": "1GiB"}, "depends on a router"),
        (("collective.all_gather_one_order", None, "dgx-h100:8"), {"size": "1GiB"}, "unknown quantity of this kind"),
        (("collective.all_reduce", None, "dgx-h100:8"), {"size": "1GiB", "dtype": "bf17"}, "did you mean bf16"),
        (("collective.all_reduce", None, "dgx-h100:8"), {"size": "0"}, "0"),
        (("model.parameters", None, "dgx-h100:8"), {}, "needs a model and no machine"),
        (("model.parameters",), {"size": "1GiB"}, "are of collectives"),
        (("step_time",), {"only": ["nic_bandwidth"]}, "--only and --row need numbers"),
        (("step_time",), {"rows": {"part": "forward"}}, "--only and --row need numbers"),
        (STEP_405B, {**STEP, "only": ["nic_bandwith"]}, "did you mean nic_bandwidth"),
        (("layer_products", *STEP_405B[1:]), {**STEP, "rows": {"part": "sideways"}}, "axis part has no row 'sideways'"),
        (("layer_products", *STEP_405B[1:]), {**STEP, "rows": {"parts": "forward"}}, "there is no axis 'parts'"),
        (STEP_405B, {**STEP, "layout": "tp=7"}, "layout"),
        (("step_time", "llama-9", "dgx-h100:8"), {}, "unknown model"),
        (("step_time", "llama-3-70b", "dgx-h1000:8"), {}, "dgx-h100"),
    ],
)
def test_bad_questions_are_answered_with_help(arguments, options, said):
    with pytest.raises(InputError) as error:
        explain(*arguments, **options)
    assert said in str(error.value)


@pytest.fixture(scope="module", params=[("llama-3.1-405b", "dgx-h100:16384", LAYOUT), ("7B", "tpu-v5p:4x4x4", "tp=4")])
def step(request):
    """The kind of machine, the system, the inputs and the point of a step."""
    model, on, layout = request.param
    opened = Catalog.open()
    machine = parse_machine(on, 1, opened)
    question = ask(model, machine, opened, sequence_length=8192, batch=None, tokens=None, dtype=None)
    workload, chosen = settle(question, layout, opened)
    given = inputs(workload, chosen, opened)
    system = training_step(workload.kind)
    return system, given, Point(system, call(compile_math(system, looped=INNER_AXES), given), INNER_AXES)


def test_the_numbers_in_every_formula_of_a_step_make_its_value(step):
    system, _, point = step
    told = 0
    for e in system.order(["step_time", "allocated", "mfu"]):
        if not e.is_input:
            found = tree(point, e.name, 0)
            assert found.value == math.inf or math.isclose(
                worth(found.taken, found.values), found.value, rel_tol=1e-9
            ), e.name
            told += 1
    assert told > 300


def test_a_step_moved_by_any_of_its_measures_is_what_its_regime_says(step):
    """On one side at least: round numbers tie, and then the other side takes another branch. Counts only come whole."""
    system, given, point = step
    function = compile_math(system, ["step_time"], looped=INNER_AXES)
    measures = [e.name for e in system.inputs(["step_time"]) if e.unit != count and math.isfinite(given[e.name])]
    assert {"peak", "memory_bandwidth", "launch_latency"} <= set(measures)
    for name in measures:
        formula = regime(point, "step_time", [name])
        sides = [{**given, name: given[name] * factor} for factor in (0.9999, 1.0001)]
        answers = [call(function, moved)["step_time"] for moved in sides]
        said = [float(formula.subs(name, moved[name])) for moved in sides]
        assert any(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(answers, said, strict=True)), name
