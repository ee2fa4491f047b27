"""Memory of the last pipeline stage against exact readings of the allocator.

The readings are golden values of Megatron-LM's functional tests (NVIDIA/Megatron-LM, tests/functional_tests/test_cases/gpt:
`mem-allocated-bytes` after a step and `mem-max-allocated-bytes`), which the last global rank reports. Dense models in bf16
with fused attention; tests of features that the equations leave out (fused cross-entropy, deferred embedding gradients,
several optimizer instances, experts, context parallelism) are not among them.
"""

import csv
from pathlib import Path
from statistics import mean, median, quantiles

import pytest

from costmodel.search.layout import Layout
from costmodel.search.workload import Workload
from tests.equations.training.drawn import Case, decoder, machine

READINGS = Path(__file__).with_name("megatron_memory.csv")
LAST = 2


def readings():
    with READINGS.open(newline="") as file:
        for row in csv.DictReader(file):
            sizes = {name: int(value) for name, value in row.items() if name not in {"test", "chip"}}
            yield pytest.param(sizes, id=f"{row['test']}-{row['chip']}-{row['chips']}")


def case(row):
    model = decoder(
        layers=row["layers"],
        hidden_size=row["hidden_size"],
        ffn_size=row["ffn_size"],
        heads=row["heads"],
        kv_heads=row["kv_heads"],
        head_size=row["head_size"],
        vocabulary=row["vocabulary"],
        gated_ffn=bool(row["gated_ffn"]),
        norm="rmsnorm" if row["rms_norm"] else "layernorm",
        attention_bias="qkvo" if row["biases"] else "none",
        ffn_bias=bool(row["biases"]),
        qk_norm="per-head" if row["qk_norm"] else "none",
        positions=row["positions"],
        tied_embeddings=bool(row["tied_embeddings"]),
    )
    layout = Layout(
        tp=row["tp"],
        pp=row["pp"],
        dp=row["chips"] // (row["tp"] * row["pp"]),
        virtual_stages=row["virtual_stages"],
        micro_batch_size=row["micro_batch_size"],
        zero=row["distributed_optimizer"],
        sequence_parallel=False,
        recompute="none",
        schedule="interleaved" if row["virtual_stages"] > 1 else "1f1b",
        placement="tp-dp-pp",
    )
    return Case(
        Workload(machine(f"dgx-h100:{row['chips']}"), model, row["sequence_length"], row["global_batch"]), layout
    )


def predicted(row):
    """States, and peak, of the stage that reports. The tests drop hidden features, which no large model does any more."""
    found = case(row)(hidden_mask_bytes=1)
    stage = LAST if row["pp"] > 1 else 0
    states = sum(found[name][stage] for name in ("stage_weights", "stage_gradients", "stage_optimizer"))
    return states, found["stage_peak"][stage] + found["workspace_bytes"]


@pytest.mark.parametrize("row", list(readings()))
def test_states_are_all_that_stays_but_a_workspace(row):
    """What is allocated between steps: states, and workspaces of 0.05 to 0.2 GB, or 1.5 GB with many large chunks."""
    states, _ = predicted(row)
    workspace = row["allocated_bytes"] - states
    assert 0.05e9 < workspace < (1.5e9 if row["virtual_stages"] > 4 else 0.16e9)


def test_peaks_are_near_the_readings():
    rows = [param.values[0] for param in readings()]
    errors = [predicted(row)[1] / row["peak_bytes"] - 1 for row in rows]
    sizes = sorted(map(abs, errors))
    middle, p90 = median(sizes), quantiles(sizes, n=10)[-1]
    told = f"{len(rows)} readings: median error {middle:.2%}, p90 {p90:.2%}, worst {sizes[-1]:.2%}, mean {mean(errors):+.2%}"
    assert len(rows) > 50
    assert middle < 0.015, told
    assert p90 < 0.035, told
    assert sizes[-1] < 0.06, told
    assert abs(mean(errors)) < 0.02, told
