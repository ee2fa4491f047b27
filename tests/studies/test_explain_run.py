"""`explain` of what a run takes and of buckets of gradients: the numbers are those of `train`."""

import pytest

from costmodel.errors import InputError
from costmodel.studies.explain import explain, quantities
from costmodel.studies.train import train
from tests.equations.training.drawn import CATALOG

ASKED = {"sequence_length": 1024, "batch": 256, "layout": "zero=0", "catalog": CATALOG}


def test_a_run_has_the_numbers_of_train():
    found = train("gpt2-xl", "dgx-h100:16", **ASKED).estimates[0]
    for quantity, value in {
        "run.goodput": found.failures.goodput,
        "mtbf": found.failures.mtbf_s,
        "cost_with_failures": found.failures.cost_with_failures_usd,
        "run.energy": found.energy_j,
    }.items():
        assert explain(quantity, "gpt2-xl", "dgx-h100:16", **ASKED).tree.value == pytest.approx(value)


def test_buckets_have_the_numbers_of_train():
    found = train("gpt2-xl", "dgx-h100:16", **ASKED).estimates[0].buckets
    told = explain("buckets.exposed", "gpt2-xl", "dgx-h100:16", **ASKED)
    assert told.tree.value == pytest.approx(found.exposed_s)
    assert any("largest" in line for line in told.told())


@pytest.mark.parametrize("layout", ["zero=1", "zero=3", "tp=16 zero=0"])
def test_buckets_need_whole_gradients_on_several_ranks(layout):
    with pytest.raises(InputError, match=r"no gradient is reduced in buckets.*zero=0"):
        explain("buckets.exposed", "llama-3-8b", "dgx-h100:16", **ASKED | {"layout": layout})


def test_a_run_needs_both_a_model_and_a_machine():
    with pytest.raises(InputError, match="need both a model and a machine"):
        explain("run.goodput", "gpt2-xl", catalog=CATALOG)
    with pytest.raises(InputError, match=r"say what run.goodput is of, such as `llama"):
        explain("run.goodput", only=["restart"], catalog=CATALOG)


def test_what_there_is_to_explain_lists_them():
    named = {(row[0], row[1]) for row in quantities().rows}
    assert {("run", "goodput"), ("buckets", "exposed")} <= named


def test_goodput_in_symbols():
    assert "goodput" in explain("run.goodput", catalog=CATALOG).told()[0]
    alone = explain("run.goodput", "gpt2-xl", "dgx-h100:16", only=["restart"], **ASKED)
    assert "restart" in alone.regime.expression
