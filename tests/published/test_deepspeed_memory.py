"""What nvidia-smi read on A100 nodes of Megatron-DeepSpeed, against the recipes of DeepSpeed and their ranges.

Readings by hand from the BigScience chronicles (tr11 prequel, February 2022): GPT models of 150 to 200 G weights, tied embeddings,
2,048 tokens, full recomputation, ZeRO-1, attention that was not fused. One layout read 38 and 44 GB on different days.
"""

from statistics import median

import pytest

from costmodel.search.layout import parse_layout
from costmodel.search.workload import Workload
from costmodel.studies.estimate import estimate
from tests.equations.training.drawn import CATALOG, decoder, machine

GIB = 2**30
READINGS = (  # hidden size, layers, heads, GPUs, tp, pp, micro-batch, GiB read
    (14400, 80, 96, 384, 8, 4, 1, 47),
    (14400, 80, 96, 320, 8, 10, 2, 43),
    (14400, 80, 96, 320, 8, 10, 4, 55),
    (14400, 80, 96, 320, 8, 10, 8, 76),
    (14336, 72, 64, 384, 8, 12, 1, 29),
    (14336, 72, 64, 384, 8, 12, 8, 69),
    (14336, 72, 64, 384, 8, 6, 4, 56),
    (13824, 84, 64, 384, 8, 12, 2, 39),
    (13824, 84, 64, 384, 8, 6, 4, 56),
)


def device_used(hidden_size, layers, heads, chips, tp, pp, micro_batch, _):
    model = decoder(
        layers=layers,
        hidden_size=hidden_size,
        ffn_size=4 * hidden_size,
        heads=heads,
        kv_heads=heads,
        head_size=hidden_size // heads,
        vocabulary=50304,
        gated_ffn=False,
        tied_embeddings=True,
        norm="layernorm",
    )
    workload = Workload(machine(f"dgx-a100:{chips}"), model, 2048, 1920, "fp16", "deepspeed-zero1-fp16")
    layout = parse_layout(f"tp={tp} pp={pp} mbs={micro_batch} zero=1 sp=0 recompute=full", chips)
    found = estimate(workload, layout, CATALOG, 10**12)
    low, high = (found.memory_ranges[f"device_used_{end}_bytes"] / GIB for end in ("low", "high"))
    return found.device_used_bytes / GIB, low, high


@pytest.mark.parametrize("reading", READINGS)
def test_each_reading_lies_in_the_range(reading):
    predicted, low, high = device_used(*reading)
    assert low <= reading[-1] <= high
    assert predicted == pytest.approx(reading[-1], rel=0.11)


def test_all_of_them():
    assert median(abs(device_used(*reading)[0] / reading[-1] - 1) for reading in READINGS) <= 0.06
