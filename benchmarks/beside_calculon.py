"""GPT-3 175B on 4,096 A100, searched here and by calculon: `python benchmarks/beside_calculon.py [CHECKOUT]`.

CHECKOUT is a checkout of github.com/calculon-ai/calculon, whose package is not on the index; its search runs in a process of its
own with this interpreter and is stopped after LONGEST seconds. Without one, only this search is run, and it is said.
Both search micro-batches, chunks, recomputation, sequence parallelism and sharing of optimizer states; calculon has offload and
overlap switches beside them, this search every placement, two more ZeRO stages and HSDP.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from tabulate import tabulate

from costmodel.report import human
from costmodel.studies.plan import plan

MODEL, CHIPS, SEQUENCES = "gpt3-175b", 4096, 4096
LONGEST = 3600
"""Seconds that calculon is given: one process of it works out some seventy executions a second."""


def ours() -> tuple[str, ...]:
    """One row: the search of `plan`."""
    start = perf_counter()
    answer = plan(MODEL, f"dgx-a100:{CHIPS}", sequence_length=2048, batch=SEQUENCES, top=1)
    wall = perf_counter() - start
    best = answer.best[0]
    return (
        "costmodel plan",
        f"{answer.searched:,}",
        f"{answer.legal:,}",
        human.seconds(wall),
        human.rate(answer.searched / answer.search_seconds, "/s"),
        human.seconds(best.step_time_s),
        best.layout.without_placement,
    )


def calculon(checkout: Path) -> tuple[str, ...]:
    """One row: the search `loe` of calculon with its own files of the model and the system."""
    model, system = checkout / "models/gpt3-175B.json", checkout / "systems/a100_80g.json"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        asked = ["loe", "-c", str(os.cpu_count() or 1), str(model), str(CHIPS), str(SEQUENCES), "float16", str(system)]
        command = [sys.executable, str(checkout / "bin/calculon"), *asked, str(out), "-t", "1"]
        start = perf_counter()
        try:
            done = subprocess.run(  # noqa: S603  the checkout that a person named
                command,
                env=os.environ | {"PYTHONPATH": str(checkout)},
                capture_output=True,
                text=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "calculon loe", "", "", f"stopped after {LONGEST} s", "", "", ""
        wall = perf_counter() - start
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            return "calculon loe", "", "", f"failed: {' '.join(last)[:60]}", "", "", ""
        found = json.loads(out.read_text("utf-8"))
    numbers = [int(number.replace(",", "")) for number in re.findall(r"(\d[\d,]*) (?:total )?executions", done.stdout)]
    count = max(numbers, default=0)
    best = next(iter(found.values())) if isinstance(found, dict) else found[0]
    return (
        "calculon loe",
        f"{count:,}",
        "",
        human.seconds(wall),
        human.rate(count / wall, "/s"),
        human.seconds(SEQUENCES / float(best.get("sample_rate", "nan"))),
        "",
    )


def main(arguments: list[str]) -> None:
    """Print one row a tool, or say that calculon is not there."""
    rows = [ours()]
    checkout = Path(arguments[0]) if arguments else None
    if checkout is not None and (checkout / "bin/calculon").exists():
        rows.append(calculon(checkout))
    headers = ("search", "layouts", "legal", "wall", "rate", "step", "best")
    sys.stdout.write(tabulate(rows, headers, disable_numparse=True, stralign="right") + "\n")
    if len(rows) == 1:
        where = f"no calculon in {checkout}" if checkout else "no checkout was named"
        sys.stdout.write(f"calculon was not run: {where}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
