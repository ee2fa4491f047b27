"""`explain` of how much tensor-parallel traffic products can hide that are cut for it."""

import pytest

from costmodel.errors import InputError
from costmodel.studies.explain import explain, quantities
from costmodel.studies.train import train
from tests.equations.training.drawn import CATALOG

ASKED = {"sequence_length": 8192, "batch": 512, "catalog": CATALOG}


def step(name, layout="tp=8 pp=4", on="dgx-h100:512"):
    return explain(f"overlap.{name}", "llama-3-70b", on, layout=layout, **ASKED).tree.value


@pytest.mark.parametrize(("on", "layout"), [("dgx-h100:512", "tp=8 pp=4"), ("tpu-v5p:8x8x8", "tp=8 zero=3")])
def test_cut_products_hide_most_of_the_traffic_that_a_step_has(on, layout):
    """A step's own answer lies between what Megatron-LM's two ways show at best and all of it."""
    found = train("llama-3-70b", on, layout=layout, **ASKED).estimates[0]
    whole = step("all_of_step", layout, on)
    assert whole == pytest.approx(found.communication["tp"], rel=1e-9)
    assert 0 < step("overlapped_of_step", layout, on) < step("plain_of_step", layout, on) < whole
    assert step("overlapped_of_step", layout, on) < found.time["tp"] < whole


@pytest.mark.parametrize(
    ("model", "layout", "told"),
    [
        ("llama-3-70b", "tp=1 zero=3", "nothing is gathered and scattered in a layer"),
        ("llama-3-70b", "tp=8 sp=0", "nothing is gathered and scattered in a layer"),
        ("deepseek-v3", "tp=8 ep=8", "dense feed-forwards and plain attention, which deepseek-v3 has not"),
    ],
)
def test_layouts_and_models_without_such_layers_are_refused(model, layout, told):
    with pytest.raises(InputError, match=told):
        explain("overlap.all_of_step", model, "dgx-h100:512", layout=layout, **ASKED)


def test_it_is_listed():
    assert ("overlap", "overlapped_of_step") in {(row[0], row[1]) for row in quantities().rows}
