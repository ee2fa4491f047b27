"""How many layouts a search evaluates a second, time and memory both: `python benchmarks/search.py [repeats]`.

Prints, for each case, the layouts of the grid (every placement counted), those whose time and memory were worked out (the others
stand on degrees that no rule lets pass), those that are legal, those that fit, the best wall time of the repeats, and the rate of
those worked out. The wide cases split every level of the network apart, which multiplies the placements.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import sys
from dataclasses import replace
from time import perf_counter

from tabulate import tabulate

from costmodel.catalog.catalog import Catalog
from costmodel.report import human
from costmodel.search.candidates import candidates
from costmodel.search.grid import search
from costmodel.studies.question import ask
from costmodel.topology.machine import parse_machine

CASES = (
    ("llama-3.1-405b", "dgx-h100:16384", 2048, False),
    ("llama-3.1-405b", "dgx-h100:16384", 2048, True),
    ("llama-3-70b", "tpu-v5p:16x16x16", 512, False),
    ("llama-3.1-405b", "tpu-v5p:16x20x28", 2240, False),
    ("gpt3-175b", "dgx-a100:4096", 1536, True),
)


def measure(model: str, on: str, sequences: int, all_levels: bool, repeats: int) -> tuple[str, ...]:
    """One row of the table."""
    catalog = Catalog.open()
    question = ask(
        model, parse_machine(on, 1, catalog), catalog, sequence_length=None, batch=sequences, tokens=None, dtype=None
    )
    workload = replace(question.workload, global_batch=sequences)
    tried = candidates(
        workload.model.layers,
        sequences,
        workload.sequence_length,
        experts=workload.routed_experts,
        shards=workload.shards,
    )
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        search(workload, catalog, tried, all_levels=all_levels)
        seconds.append(perf_counter() - start)
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
        f"{grid.evaluated / best / 1e6:.1f}",
    )


def main(repeats: int) -> None:
    """Print the table and the memory of the process."""
    rows = [measure(*case, repeats) for case in CASES]
    headers = ("model", "machine", "placements", "layouts", "evaluated", "legal", "fit", "wall", "M/s")
    sys.stdout.write(tabulate(rows, headers, disable_numparse=True, stralign="right") + "\n")
    sys.stdout.write(f"peak memory {human.size(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
