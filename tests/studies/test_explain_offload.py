"""`explain offload.*`: the numbers of a training question, the units that they are in, and what is not known of a host."""

import pytest

from costmodel.errors import InputError
from costmodel.studies.explain import explain, quantities
from costmodel.studies.train import train
from tests.equations.training.drawn import CATALOG

ASKED = {"sequence_length": 4096, "batch": 256, "layout": "tp=2 zero=1 recompute=full", "catalog": CATALOG}


def value(quantity, on="dgx-h100:64", **more):
    return explain(f"offload.{quantity}", "llama-3-8b", on, **ASKED | more).tree.value


def test_slower_by_what_shows_less_the_optimizer_on_the_chip():
    found = train("llama-3-8b", "dgx-h100:64", **ASKED).estimates[0]
    assert value("slower") == pytest.approx(value("exposed") - found.time["optimizer"])
    assert value("compute") == pytest.approx(found.step_time_s - found.time["optimizer"])


def test_an_eighth_of_a_host_is_what_a_chip_gets():
    assert value("per_chip") == pytest.approx(0.87 * 63e9)
    assert value("update") == pytest.approx(8 * value("owned") * 28 / (614e9 * 0.8))
    assert value("drive_update") == pytest.approx(8 * value("owned") * 32 / (8 * 7e9))


def test_more_ranks_own_less():
    assert value("owned", "dgx-h100:128") == pytest.approx(value("owned") / 2)
    assert value("owned", layout="tp=2 zero=0 recompute=full") == pytest.approx(32 * value("owned"))


def test_host_and_chips_exchange_states_for_memory():
    assert value("freed") == pytest.approx(12 * value("owned"))
    assert value("optimizer_on_host") == pytest.approx(1.5 * 8 * 16 * value("owned"))


def test_recomputation_loads_weights_once_more():
    kept = value("weight_copies", layout="tp=2 zero=3 recompute=none")
    assert value("weight_copies", layout="tp=2 zero=3 recompute=full") == pytest.approx(kept * 4 / 3)


def test_a_coherent_link_exposes_less():
    slow, fast = (value("copies", on, batch=64) for on in ("dgx-h100:16", "gh200-cluster:16"))
    assert fast < slow / 3


def test_an_unknown_memory_bandwidth_is_named():
    with pytest.raises(InputError, match="need dram_bandwidth"):
        value("exposed", "aws-p5:64")


def test_what_there_is_to_explain_lists_them():
    named = {(row[0], row[1]) for row in quantities().rows}
    assert {("offload", "exposed"), ("offload", "all_on_host"), ("offload", "activations_needed")} <= named


def test_in_symbols():
    assert "update" in explain("offload.exposed_delayed", catalog=CATALOG).told()[0]
