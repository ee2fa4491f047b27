"""Memory of the last pipeline stage against exact readings of the allocator.

The readings are golden values of Megatron-LM's functional tests (NVIDIA/Megatron-LM, tests/functional_tests/test_cases/gpt:
`mem-allocated-bytes` after a step and `mem-max-allocated-bytes`), which the last global rank reports; they are in
tables/published/megatron_memory.csv. Here dense models in 16 bits with fused attention and without context parallelism, and models
with experts.
"""

import csv
from functools import cache
from statistics import mean, median, quantiles

import pytest

from costmodel.search.recomputation import recomputation
from costmodel.studies.validation import megatron
from costmodel.studies.validation.prepared import Preparing
from costmodel.studies.validation.rows import published
from tests.equations.training.drawn import CATALOG

TABLE = published("megatron_memory")


@cache
def readings():
    """Outcomes of both quantities by name, with the row of the table."""
    rows, found = iter(megatron.read(TABLE)), {}
    for outcome in megatron.outcomes(TABLE, Preparing(CATALOG, None)):
        if outcome.id not in found:
            found[outcome.id] = ({}, next(rows))
        found[outcome.id][0][outcome.quantity] = outcome
    return found


def plain():
    for name, (outcomes, row) in readings().items():
        usual = not (row.text("fused_cross_entropy") or megatron.unfused(row)) and row.text("cp") in {"", "1"}
        if usual and not row.text("experts") and outcomes["allocated_bytes"].headline:
            yield pytest.param(outcomes, row, id=name)


@pytest.mark.parametrize(("outcomes", "row"), list(plain()))
def test_states_are_all_that_stays_but_a_workspace(outcomes, row):
    """What is allocated between steps: states, and workspaces of 0.05 to 0.2 GB, or 1.5 GB with many large chunks."""
    reading = outcomes["between_steps_bytes"]
    workspace = reading.measured - reading.predicted + CATALOG.assumptions("memory-gpu")["workspace_bytes"].value
    chunked = row.text("layers_of_chunk") and int(row.text("layers")) >= 4 * int(row.text("pp") or 1) * int(
        row.text("layers_of_chunk")
    )
    assert 0.05e9 < workspace < (1.5e9 if chunked else 0.16e9)


def test_peaks_are_near_the_readings():
    errors = [param.values[0]["allocated_bytes"].error for param in plain()]
    sizes = sorted(map(abs, errors))
    middle, p90 = median(sizes), quantiles(sizes, n=10)[-1]
    told = f"{len(errors)} readings: median error {middle:.2%}, p90 {p90:.2%}, worst {sizes[-1]:.2%}, mean {mean(errors):+.2%}"
    assert len(errors) > 50, told
    assert middle < 0.015, told
    assert p90 < 0.035, told
    assert sizes[-1] < 0.06, told
    assert abs(mean(errors)) < 0.02, told


def mixtures():
    for name, (outcomes, row) in readings().items():
        if row.text("experts") and outcomes["allocated_bytes"].headline:
            yield pytest.param(outcomes, id=name)


@pytest.mark.parametrize("outcomes", list(mixtures()))
def test_states_of_experts_are_shared_over_the_ranks_that_hold_the_same_ones(outcomes):
    reading = outcomes["between_steps_bytes"]
    assert abs(reading.measured - reading.predicted) < 0.14e9


def test_peaks_with_experts_are_near_the_readings():
    """Of a row its experts keep what their first product reads, and what their activation reads and gives."""
    errors = sorted(abs(param.values[0]["allocated_bytes"].error) for param in mixtures())
    middle, p90 = median(errors), quantiles(errors, n=10)[-1]
    told = f"{len(errors)} readings: median error {middle:.2%}, p90 {p90:.2%}, worst {errors[-1]:.2%}"
    assert len(errors) > 30, told
    assert middle < 0.03, told
    assert p90 < 0.06, told
    assert errors[-1] < 0.09, told


def test_seven_billion_parameters_to_the_per_cent():
    """The large cases: four ways tensor parallel, and four stages of eight chunks."""
    large = {
        name: found["allocated_bytes"]
        for name, (found, row) in readings().items()
        if row.number("peak_allocated_bytes") > 50e9
    }
    dense = [one for one in large.values() if one.headline]
    assert len(dense) >= 4
    assert max(abs(one.error) for one in dense) < 0.035


def test_rows_that_name_modules_are_left_out_for_other_reasons():
    """Latent attention whose ranks are not stated, 8-bit products, offloading: not what is run again."""
    named = [outcomes for outcomes, row in readings().values() if row.text("recomputed_modules")]
    assert len(named) == 10
    reasons = {outcome.skipped for outcomes in named for outcome in outcomes.values()}
    assert all(reasons)
    assert not any("recomput" in reason for reason in reasons if not reason.startswith("a test of"))


@pytest.mark.parametrize(
    ("options", "recompute"),
    [
        ({"recomputation": "selective"}, "attention"),
        ({"recomputation": "selective", "recomputed_modules": "[layernorm moe_act]"}, "light"),
        ({"recomputation": "selective", "recomputed_modules": "[moe layernorm]"}, "layernorm+moe"),
        ({"recomputation": "full", "recompute_method": "uniform", "recompute_layers": "1"}, "full"),
        ({"recomputation": "full", "recompute_method": "uniform", "recompute_layers": "2"}, "full-uniform-2"),
        ({"recomputation": "full", "recompute_method": "block", "recompute_layers": "1"}, "full-block-1"),
    ],
)
def test_options_of_recomputation_keep_less(options, recompute, tmp_path):
    """A test with experts, as if it had been run with these options: less at the peak, the same between steps."""
    name, (plain, row) = next(
        (name, found)
        for name, found in readings().items()
        if found[1].text("experts") and found[1].text("pp") == "1" and found[0]["allocated_bytes"].headline
    )
    path = tmp_path / "readings.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, megatron.COLUMNS)
        writer.writeheader()
        writer.writerow(dict(row.cells) | options)
    found = {outcome.quantity: outcome for outcome in megatron.outcomes(path, Preparing(CATALOG, None))}
    assert not any(outcome.skipped for outcome in found.values()), name
    assert found["between_steps_bytes"].predicted == plain["between_steps_bytes"].predicted
    assert found["allocated_bytes"].predicted < plain["allocated_bytes"].predicted
    reading = megatron.read(path)[0]
    assert str(recomputation(recompute)) == megatron.recomputed_by(reading)
