"""Measurements that nobody made: what a catalog with known constants predicts, in the formats that people have."""

import random
import re
import shutil
from math import exp

from costmodel.catalog.catalog import Catalog, shipped
from costmodel.studies.collective import collective
from costmodel.studies.validation import kernels, training
from costmodel.studies.validation.rows import Row
from costmodel.studies.validation.runs import OURS

HEADER = """# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
"""
COLUMNS = """#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
FOOTER = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 100.0\n#\n"


def scaled(folder, path, factors):
    """A catalog in which numbers of one shipped file of hardware/ are so many times as large, by the pattern of their names."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(shipped("hardware") / path, target)
    text = target.read_text()
    for pattern, factor in factors.items():
        found = re.compile(rf"^(\s+(?:{pattern}): {{value: )([\d.]+)", re.MULTILINE)
        assert found.search(text), pattern
        text = found.sub(lambda match, times=factor: f"{match[1]}{float(match[2]) * times:.6f}", text)
    target.write_text(text)
    return Catalog.open(folder)


def ranks(chips, per_host=8):
    lines = (f"#  Rank {n:2d} Group  0 Pid  10{n} on node{n // per_host} device {n % per_host}" for n in range(chips))
    return "".join(f"{line} [0x1b] NVIDIA H100 80GB HBM3\n" for line in lines)


def nccl_log(operation, on, catalog, *, chips, noise=0.0, seed=0, low=2**10, high=2**30):
    """What nccl-tests would print of a sweep."""
    draw = random.Random(seed)  # noqa: S311 - repeatable, not secret
    adds = operation in {"all-reduce", "reduce-scatter"}
    lines = []
    size = low
    while size <= high:
        answer = collective(operation, size, on, catalog=catalog)
        time = answer.timings[0].time_s * exp(draw.gauss(0, noise)) * 1e6
        bus = (answer.timings[0].busbw_bytes_per_s or 0) / 1e9
        rates = f"{size / time / 1e3:7.2f} {bus:7.2f}      0"
        lines.append(
            f"{size:12d} {size // 4:12d}     float {'sum' if adds else 'none':>7}      -1 "
            f"{time:9.3f} {rates} {time * 1.01:9.3f} {rates}\n"
        )
        size *= 2
    return HEADER + ranks(chips) + COLUMNS + "".join(lines) + FOOTER


def products(chip, catalog, *, count=40, noise=0.0, seed=0):
    """A CSV of timings of matrix products."""
    draw = random.Random(seed)  # noqa: S311 - repeatable, not secret
    lines = ["m,n,k,dtype,time_us\n"]
    for _ in range(count):
        m, n, k = 2 ** draw.randint(2, 13), 128 * 2 ** draw.randint(1, 7), 128 * 2 ** draw.randint(1, 7)
        cells = {
            "kind": "matmul",
            "chip": chip,
            "precision": "bf16",
            "groups": "1",
            "weight_copies": "1",
            "rows": str(m),
            "columns": str(n),
            "features": str(k),
        }
        time = kernels.predicted(Row(cells, "drawn"), catalog)["time"] * exp(draw.gauss(0, noise))
        lines.append(f"{m},{n},{k},bf16,{time * 1e6:.4f}\n")
    return "".join(lines)


def steps(runs, catalog, folder, *, noise=0.0, seed=0):
    """A CSV of step times of those runs, as tables/published/training.csv has them."""
    draw = random.Random(seed)  # noqa: S311 - repeatable, not secret
    table = folder / "drawn_runs.csv"
    filled = [dict.fromkeys(OURS, "") | run | {"step_time_s": "1"} for run in runs]

    def write(times):
        rows = (
            ",".join({**run, "step_time_s": repr(time)}[name] for name in OURS)
            for run, time in zip(filled, times, strict=True)
        )
        table.write_text(",".join(OURS) + "\n" + "\n".join(rows) + "\n")

    write([1.0] * len(filled))
    found = list(training.outcomes(catalog, table))
    assert all(one.predicted for one in found), [one.skipped for one in found]
    write([one.predicted * exp(draw.gauss(0, noise)) for one in found])
    return table


RUNS = [
    {
        "id": f"run-{n}",
        "source": "drawn",
        "framework": "Megatron-LM 2024",
        "model": model,
        "chip": "h100-sxm",
        "chips": str(chips),
        "sequence_length_tokens": "8192",
        "global_batch_sequences": str(2 * chips),
        "micro_batch_sequences": "1",
        "tp": str(tp),
        "sequence_parallel": "on" if tp > 1 else "",
        "pp": str(pp),
        "virtual_stages": "1",
        "zero": "1",
        "precision": "bf16",
        "recomputation": "none",
        "attention": "fused",
    }
    for n, (model, chips, tp, pp) in enumerate(
        (model, chips, tp, pp)
        for model in ("llama-3-8b", "llama-3-70b")
        for chips in (64, 128, 256)
        for tp, pp in ((8, 4), (4, 4), (8, 2))
    )
]
