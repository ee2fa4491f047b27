"""What is trained on what, as inputs of the equations; what cannot be trained yet, by name."""

from dataclasses import replace

import pytest

from costmodel.catalog.entries import Unknown
from costmodel.catalog.resolve import resolve_model
from costmodel.equations.training_on_switches import OnSwitches
from costmodel.equations.training_on_torus import OnTorus
from costmodel.errors import InputError
from costmodel.search.precision import precision_inputs
from costmodel.search.software import Software
from costmodel.search.workload import Workload, check_model, chip_inputs, default_dtype, scalar_inputs
from costmodel.topology.placements import members
from tests.equations.training.drawn import CATALOG, decoder, machine, on


@pytest.mark.parametrize(
    ("model", "layers"),
    [
        ("nemotron-3-nano-30b-a3b", "mamba2 layers"),
        ("nemotron-h-56b", "mamba2 layers"),
    ],
)
def test_layers_that_are_not_modelled_are_refused_by_name(model, layers):
    with pytest.raises(InputError, match=f"{model} has .*{layers}.*not modelled yet.*llama"):
        check_model(resolve_model(model, CATALOG))


@pytest.mark.parametrize("on_machine", ["dgx-h100:64", "mi300x-cluster:16", "tpu-v5p:4x4x4", "tpu-v6e:4x4"])
def test_every_input_of_the_equations_is_given(on_machine):
    """By the catalog, the layout or the placement; none is left over to be guessed."""
    where = machine(on_machine)
    given = on("llama-3-8b", on_machine, "tp=4 pp=2", 4096, 64).inputs
    chapter = OnTorus if where.is_torus else OnSwitches
    missing = {e.name for e in chapter.system.inputs(["step_time", "device_used", "mfu", "hfu"])} - set(given)
    assert missing == set()
    assert set(members("tp-dp-pp", {"tp": 4, "pp": 2, "dp": where.chips // 8}, where)) <= set(given)


@pytest.mark.parametrize(("attention", "dropout", "kept"), [("unfused", False, 2), ("unfused", True, 5), ("", True, 0)])
def test_bytes_kept_of_a_score(attention, dropout, kept):
    """Korthikanti et al. 2022, section 4.1: the softmax's output 2, its dropout's mask 1 and output 2, the last two with dropout."""
    case = on(decoder(), "dgx-h100:8", "tp=8", 1024, 8)
    found = case.on(software=Software(attention=attention, dropout=dropout))()
    assert found["kept_scores"] == 1024 * 1024 * 16 * kept


def test_overlap_is_all_what_is_modelled_or_nothing():
    workload = Workload(machine("dgx-h100:64"), decoder(), 4096, 64)
    shares = tuple(f"{kind}_hidden_share" for kind in ("tp", "cp", "fsdp", "dp", "ep", "host"))
    found = {overlap: scalar_inputs(workload, CATALOG, overlap) for overlap in ("perfect", "modelled", "none")}
    assert [found["perfect"][share] for share in shares] == [1] * 6
    assert [found["none"][share] for share in shares] == [0] * 6
    assert all(0 < found["modelled"][share] <= 1 for share in shares)
    differing = {name for name in found["none"] if found["none"][name] != found["perfect"][name]}
    ranged = {
        name
        for constants in (CATALOG.assumptions("memory-gpu"), CATALOG.recipe("megatron-bf16"))
        for name, number in constants.items()
        if number.at("low") < number.at("high")
    }
    assert differing == {*shares, *ranged}
    assert all(found["perfect"][name] <= found["modelled"][name] <= found["none"][name] for name in ranged)


def test_precision_is_bf16_where_a_chip_has_it():
    assert default_dtype(CATALOG.chip("h100-sxm")) == "bf16"
    assert default_dtype(CATALOG.chip("v100-sxm2")) == "fp16"


def test_a_precision_that_a_chip_lacks_is_refused():
    formats = CATALOG.assumptions("precisions")
    with pytest.raises(InputError, match=r"training precision of v100-sxm2 'bf16'.*fp16"):
        precision_inputs(CATALOG.chip("v100-sxm2"), "bf16", formats)
    with pytest.raises(InputError, match="training precision of h100-sxm 'mxfp8'"):
        precision_inputs(CATALOG.chip("h100-sxm"), "mxfp8", formats)


def test_what_nobody_publishes_is_asked_for():
    chip = replace(CATALOG.chip("h100-sxm"), memory_bandwidth=Unknown("not measured", "hardware/chips/x.yaml"))
    with pytest.raises(InputError, match=r"x.yaml is unknown.*not measured"):
        chip_inputs(chip, "bf16")


def test_exponentials_within_the_share_of_peak_cost_nothing_more():
    assert chip_inputs(CATALOG.chip("tpu-v5p"), "bf16")["exponential_rate"] == float("inf")
    assert chip_inputs(CATALOG.chip("h100-sxm"), "bf16")["exponential_rate"] == 4.3e12
