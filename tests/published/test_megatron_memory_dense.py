"""Every exact reading of dense GPT models in Megatron-LM's functional tests, whatever the attention, the loss and the parallelism.

One reading a row (megatron_memory_dense.csv): what the last global rank has allocated after a step, and the most in between, on
current machines. `left_out` names features that the equations do not have, whose peaks are judged apart; nothing is fitted to a row.
"""

import csv
from pathlib import Path
from statistics import mean, median, quantiles

import pytest

from costmodel.search.layout import Layout, default_placement
from costmodel.search.workload import Workload
from tests.equations.training.drawn import Case, decoder, machine

READINGS = Path(__file__).with_name("megatron_memory_dense.csv")
LAST, ONLY = 2, 0
WORDS = ("test", "chip", "recompute", "precision", "left_out")
UNFUSED_SCORE, FUSED_LOSS = 5, 10
"""Bytes kept of a score where attention is not fused, and of a logit where the loss is: what the study of these readings found."""


def readings():
    with READINGS.open(newline="") as file:
        return [
            {name: value if name in WORDS else int(value) for name, value in row.items()}
            for row in csv.DictReader(file)
        ]


ROWS = readings()
MODELLED = [row for row in ROWS if row["left_out"] in {"", "workspaces of many large chunks"}]


def predicted(row):
    """States, and peak, of the stage that reports."""
    model = decoder(
        **{
            name: row[name]
            for name in (
                "layers",
                "hidden_size",
                "ffn_size",
                "heads",
                "kv_heads",
                "head_size",
                "vocabulary",
                "positions",
            )
        },
        gated_ffn=bool(row["gated_ffn"]),
        norm="rmsnorm" if row["rms_norm"] else "layernorm",
        attention_bias="qkvo" if row["biases"] else "none",
        ffn_bias=bool(row["biases"]),
        qk_norm="per-head" if row["qk_norm"] else "none",
        tied_embeddings=bool(row["tied_embeddings"]),
    )
    layout = Layout(
        tp=row["tp"],
        cp=row["cp"],
        pp=row["pp"],
        dp=row["chips"] // (row["tp"] * row["cp"] * row["pp"]),
        virtual_stages=row["virtual_stages"],
        micro_batch_size=row["micro_batch_size"],
        zero=row["distributed_optimizer"],
        sequence_parallel=bool(row["sequence_parallel"]),
        recompute=row["recompute"],
        schedule="interleaved" if row["virtual_stages"] > 1 else "1f1b",
        placement=default_placement(row["cp"]),
    )
    at = machine(f"dgx-h100:{row['chips']}")
    recipe = f"megatron-{row['precision']}"
    workload = Workload(at, model, row["sequence_length"], row["global_batch"], row["precision"], recipe)
    changes = {"hidden_mask_bytes": row["dropout"], "score_bytes": 0 if row["fused_attention"] else UNFUSED_SCORE}
    found = Case(workload, layout)(**changes | ({"loss_bytes": FUSED_LOSS} if row["fused_loss"] else {}))
    stage = LAST if row["pp"] > 1 else ONLY
    states = sum(found[name][stage] for name in ("stage_weights", "stage_gradients", "stage_optimizer"))
    return states, found["stage_peak"][stage] + found["workspace_bytes"]


def errors(rows):
    return [predicted(row)[1] / row["peak_bytes"] - 1 for row in rows]


def judged(rows, most_median, most_p90, most_bias):
    found = errors(rows)
    sizes = sorted(map(abs, found))
    middle, p90 = median(sizes), quantiles(sizes, n=10)[-1]
    told = f"{len(rows)} readings: median {middle:.2%}, p90 {p90:.2%}, worst {sizes[-1]:.2%}, mean {mean(found):+.2%}"
    assert middle <= most_median and p90 <= most_p90 and abs(mean(found)) <= most_bias, told


def test_peaks_of_all_that_is_modelled():
    assert len(MODELLED) >= 119
    judged(MODELLED, 0.014, 0.06, 0.01)


@pytest.mark.parametrize(
    ("what", "kept", "bounds"),
    [
        ("attention that is not fused", lambda row: not row["fused_attention"], (0.008, 0.015, 0.01)),
        ("interleaving", lambda row: row["virtual_stages"] > 1, (0.007, 0.021, 0.01)),
        ("several stages", lambda row: row["pp"] > 1, (0.014, 0.072, 0.01)),
        ("context parallelism", lambda row: row["cp"] > 1, (0.026, 0.077, 0.03)),
        ("the optimizer shared", lambda row: row["distributed_optimizer"], (0.01, 0.033, 0.01)),
        ("full recomputation", lambda row: row["recompute"] == "full", (0.01, 0.01, 0.01)),
    ],
)
def test_peaks_by_what_is_used(what, kept, bounds):
    rows = [row for row in MODELLED if kept(row)]
    assert rows, what
    judged(rows * 2, *bounds)  # twice, since quantiles need two


def test_what_stays_between_steps():
    """States and little else: 0.11 GB of workspaces in the median."""
    apart = sorted(abs(row["allocated_bytes"] - predicted(row)[0]) for row in ROWS)
    assert median(apart) <= 0.11e9
    assert quantiles(apart, n=10)[-1] <= 0.17e9


def test_each_state_is_near():
    for row in ROWS:
        if not row["left_out"] and row["precision"] == "bf16":
            assert 0 < row["allocated_bytes"] - predicted(row)[0] < 0.17e9, row["test"]


def test_those_left_out_are_few_and_far():
    """Where a feature is not modelled the peak is 5 to 26 % low, never high: more is held than the equations know of."""
    left = [row for row in ROWS if row not in MODELLED]
    assert len(left) == 13
    assert all(-0.26 < error < -0.05 for error in errors(left))
