"""GPT-3 175B on 4,096 A100, the same questions answered here and by calculon: `python benchmarks/beside_calculon.py [CHECKOUT]`.

CHECKOUT is a checkout of github.com/calculon-ai/calculon (its package is not on the index), which needs numpy, pandas and psutil:
`--python` names an interpreter that has them. Written against commit caa4b11 of 2024-02, its last (llm.py of
c02c5e9, optimal_execution.py of dd35b00, system.py of 345f893, network.py and `systems/a100_80g.json` of 71f6435). Without a checkout only this search is run, and it is said.

Two questions: `plain`, where nothing overlaps on purpose and hosts keep nothing, and `whole`, calculon's whole space, where
tensor-parallel traffic and gradients may overlap and hosts may keep weights, activations and states. Both tools model unfused attention
with dropout, in fp16. calculon works out one execution after the other, so each processor is given some seconds for points drawn at
random from its space: the rate is points over processor time, and its best is the best of those done (of all once `--seconds` suffices).

The spaces are not the same. calculon has 1F1B and interleaved schedules, and any micro-batch; this search has two zero-bubble schedules,
ZeRO up to 3 with HSDP, and every placement. calculon's sharing of optimizer states shares gradients too, and its activation function
keeps no input: it stands beside zero=1, and its memory is less for these two reasons. A layout of one that the other has no
word for is `none such`, one that the other does not allow `rejected`.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from calculon_words import IN_CALCULON, SYSTEM, as_execution, theirs
from tabulate import tabulate

from costmodel.errors import InputError
from costmodel.report import human
from costmodel.search.software import Software
from costmodel.studies.plan import PlanAnswer, plan
from costmodel.studies.train import train

MODEL, CHIPS, SEQUENCES, LENGTH = "gpt3-175b", 4096, 4096, 2048
ON = f"dgx-a100:{CHIPS}"
COMPARED = 3
"""Layouts of each tool that both are asked about."""
LOOKED_AT = 30
"""Our fastest layouts among which those are looked for that calculon has words for."""


class Asked(NamedTuple):
    """A question: what may overlap, and what hosts may keep."""

    name: str
    overlap: tuple[str, ...]
    offload: str | None

    @property
    def software(self) -> Software:
        """The code that calculon models."""
        return Software(attention="unfused", dropout=True, overlap=self.overlap)


QUESTIONS = (Asked("plain", (), None), Asked("whole", ("tp", "dp"), "host"))


def ours(asked: Asked, top: int) -> tuple[PlanAnswer, float, float]:
    """Our search for so many layouts, its wall time and the processor time of it."""
    start, used = perf_counter(), process_time()
    answer = plan(
        MODEL,
        ON,
        sequence_length=LENGTH,
        batch=SEQUENCES,
        dtype="fp16",
        software=asked.software,
        offload=asked.offload,
        top=top,
    )
    return answer, perf_counter() - start, process_time() - used


def estimate(layout: str, asked: Asked) -> tuple[str, str]:
    """Our step and the memory of our tensors, or why there is none."""
    try:
        one = train(
            MODEL, ON, layout=layout, sequence_length=LENGTH, batch=SEQUENCES, dtype="fp16", software=asked.software
        ).estimates[0]
    except InputError:
        return "none such", ""
    return human.seconds(one.step_time_s), human.size(one.allocated_bytes)


def compare(asked: Asked, checkout: Path | None, python: str, seconds: float) -> None:
    """Print one question's searches, and layouts of both as both see them."""
    answer, wall, processor = ours(asked, 1)
    points, rate = f"{answer.searched:,}", human.rate(answer.searched / processor, "/s")
    step = human.seconds(answer.best[0].step_time_s)
    rows = [
        ("costmodel", points, points, f"{answer.legal:,}", human.seconds(wall), rate, human.seconds(processor), step)
    ]
    told: list[tuple[str, ...]] = []
    if checkout:
        seen_first = ours(asked, LOOKED_AT)[0].best
        named = [(one.layout, as_execution(one.layout, asked.overlap, CHIPS, SEQUENCES)) for one in seen_first]
        mine = [(layout, point) for layout, point in named if point][:COMPARED]
        wanted = [point for _, point in mine]
        plain = asked.offload is None
        other = theirs(checkout, python, seconds, wanted, chips=CHIPS, sequences=SEQUENCES, plain=plain)
        speed = other["done"] / other["processor_s"]
        done = (f"{other['points']:,}", f"{other['done']:,}", f"{other['legal']:,}", human.seconds(other["wall_s"]))
        whole = human.duration(other["points"] / speed)
        best = other["best"][:COMPARED]
        fastest = human.seconds(best[0][1]["step_s"]) if best else "none"
        rows.append(("calculon", *done, human.rate(speed, "/s"), whole, fastest))
        pairs = [(words, its, "calculon") for words, its in best]
        pairs += [(one.without_placement, its, "costmodel") for (one, _), its in zip(mine, other["asked"], strict=True)]
        for words, its, whose in pairs:
            seen = (human.seconds(its["step_s"]), human.size(its["bytes"])) if its else ("rejected", "")
            told.append((whose, words, *estimate(words, asked), *seen))
    headers = ("", "points", "done", "legal", "wall", "rate a core", "all on a core", "best step")
    print(f"{asked.name}: {MODEL} on {ON}, {SEQUENCES:,} sequences of {LENGTH:,}")
    print(tabulate(rows, headers, disable_numparse=True, stralign="right"))
    if told:
        print(tabulate(told, ("best of", "layout", "ours", "tensors", "calculon", "memory"), disable_numparse=True))
    print()


def main() -> int:
    """Print each question; 2 when calculon was named and cannot run."""
    assert __doc__ is not None  # noqa: S101
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="?", type=Path, help="a checkout of calculon")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with calculon's packages")
    parser.add_argument("--seconds", type=float, default=60.0, help="that calculon gets for each question (60)")
    parser.add_argument("--question", choices=[one.name for one in QUESTIONS], help="this one only")
    told = parser.parse_args()
    checkout: Path | None = told.checkout
    if told.seconds < 1:
        parser.error(f"--seconds {told.seconds:g}: a second at least")
    if checkout and not ((checkout / SYSTEM).exists() and any((checkout / name).exists() for name in IN_CALCULON)):
        print(f"no calculon in {checkout}: {SYSTEM} and {IN_CALCULON[0]} are looked for", file=sys.stderr)
        return 2
    try:
        for asked in QUESTIONS:
            if told.question in {None, asked.name}:
                compare(asked, checkout, told.python, told.seconds)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    if not checkout:
        print("calculon was not run: no checkout was named")
    return 0


if __name__ == "__main__":
    sys.exit(main())
