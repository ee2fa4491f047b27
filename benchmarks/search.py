"""How many layouts a search evaluates a second, time and memory both: `python benchmarks/search.py [repeats]`.

Prints, for each case, the layouts of the grid (every placement counted), those whose time and memory were worked out (the rules let
no other pass), those that are legal, those that fit, the best wall time of the repeats and the processor time beside it, and the
rates a second of wall time: of legal ones, which is the rate that counts, then of those worked out and of the whole grid. The wide
cases split every level of the network apart, which multiplies the placements.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import sys
from dataclasses import replace
from time import perf_counter, process_time

from tabulate import tabulate

from costmodel.catalog.catalog import Catalog
from costmodel.report import human
from costmodel.search.candidates import candidates
from costmodel.search.grid import search
from costmodel.studies.question import ask
from costmodel.topology.machine import parse_machine

CASES: tuple[tuple[str, str, int, bool, int | None], ...] = (
    ("llama-3.1-405b", "dgx-h100:16384", 2048, False, None),
    ("llama-3.1-405b", "dgx-h100:16384", 2048, True, None),
    ("llama-3-70b", "tpu-v5p:16x16x16", 512, False, None),
    ("llama-3.1-405b", "tpu-v5p:16x20x28", 2240, False, None),
    ("gpt3-175b", "dgx-a100:4096", 1536, True, None),
    ("deepseek-v3", "h800-cluster:2048", 15360, False, 4096),
    ("qwen3-235b-a22b", "dgx-h100:1024", 8192, False, 4096),
)


def measure(model: str, on: str, sequences: int, all_levels: bool, length: int | None, repeats: int) -> tuple[str, ...]:
    """One row of the table."""
    catalog = Catalog.open()
    question = ask(
        model, parse_machine(on, 1, catalog), catalog, sequence_length=length, batch=sequences, tokens=None, dtype=None
    )
    workload = replace(question.workload, global_batch=sequences)
    tried = candidates(
        workload.model.layers,
        sequences,
        workload.sequence_length,
        experts=workload.routed_experts,
        shards=workload.shards,
    )
    seconds, processor = [], []
    for _ in range(repeats):
        start, used = perf_counter(), process_time()
        search(workload, catalog, tried, all_levels=all_levels)
        seconds.append(perf_counter() - start)
        processor.append(process_time() - used)
    best = min(seconds)
    grid = search(workload, catalog, tried, all_levels=all_levels)
    return (
        model,
        on + (" all levels" if all_levels else ""),
        f"{len(grid.rows_of):,}",
        f"{grid.searched:,}",
        f"{grid.evaluated:,}",
        f"{grid.count(grid.legal):,}",
        f"{grid.count(grid.fits):,}",
        human.seconds(best),
        human.seconds(min(processor)),
        f"{grid.count(grid.legal) / best / 1e6:.1f}",
        f"{grid.evaluated / best / 1e6:.1f}",
        f"{grid.searched / best / 1e6:.1f}",
    )


def main(repeats: int) -> None:
    """Print the table and the memory of the process."""
    rows = [measure(*case, repeats) for case in CASES]
    headers = (
        "model",
        "machine",
        "placements",
        "layouts",
        "evaluated",
        "legal",
        "fit",
        "wall",
        "processor",
        "legal M/s",
        "worked out M/s",
        "grid M/s",
    )
    sys.stdout.write(tabulate(rows, headers, disable_numparse=True, stralign="right") + "\n")
    sys.stdout.write(f"peak memory {human.size(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
