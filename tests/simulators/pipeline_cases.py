"""Schedules by label, and the cases worked out elsewhere (tests/published/pipeline_cases.csv).

A case gives forward, input and weight gradient of a device's whole share, or by stage where they differ.

Two families of cases are left out. Eager 1F1B sends further ahead, and no framework whose runs are known has it. Interleaved passes that
run as pairs, for the exchanges of experts, were counted with a chunk more in flight: layer by layer a pair frees what it makes, and
Megatron-Bridge's reading of Qwen3 30B with such pairs (62 GB) is 20 % below what a micro-batch more would hold, 8 % above none.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from tests.simulators import pipeline, pipeline_split, pipeline_two_way
from tests.simulators.pipeline import Program, Run

CASES = Path(__file__).parents[1] / "published" / "pipeline_cases.csv"
SEARCHED = ("v-half", "v-min")
"""Their orders are found by a search, which ours is not."""
UPDATES = 6
"""Steps of PipeDream-2BW that are executed to find the steady state."""


def program(schedule: str, p: int, m: int, v: int = 1, group: int | None = None) -> Program:
    """The schedule of a label."""
    match schedule:
        case "1f1b" | "pipedream" | "pipedream-2bw":
            return pipeline.one_forward_one_backward(p, m)
        case "interleaved":
            return pipeline.interleaved(p, m, v, group)
        case "gpipe":
            return pipeline.gpipe(p, m)
        case "breadth-first":
            return pipeline.breadth_first(p, m, v)
        case "zb-h1" | "zb-1p":
            return pipeline_split.zero_bubble(p, m)
        case "zb-h2":
            return pipeline_split.zero_bubble(p, m, depth=2)
        case "interleaved-zb":
            return pipeline_split.zero_bubble(p, m, v, group=group)
        case "zb-v":
            return pipeline_split.zb_v(p, m)
        case "v-half":
            return pipeline_split.v_half(p, m)
        case "v-min":
            return pipeline_split.v_min(p, m)
        case "dualpipe":
            return pipeline_two_way.dualpipe(p, m)
        case "dualpipev":
            return pipeline_two_way.dualpipev(p, m)
        case "chimera":
            return pipeline_two_way.chimera(p, m)
    raise ValueError(schedule)


def run_equal(
    of: Program,
    forward: Fraction,
    inputs: Fraction,
    weights: Fraction,
    message: Fraction = Fraction(0),
    pair: Fraction | None = None,
) -> Run:
    """Execute with equal stages; the times are those of a device's whole share."""
    times = [[Fraction(t) / of.chunks] * of.stages for t in (forward, inputs, weights)]
    return pipeline.run(
        of, times[0], times[1], message, weight=times[2], pair=None if pair is None else pair / of.chunks
    )


@dataclass(frozen=True, slots=True)
class Case:
    """A row; `forward`, `inputs` and `weights` by stage; what it does not tell is None."""

    name: str
    schedule: str
    p: int
    m: int
    v: int
    group: int
    forward: list[Fraction]
    inputs: list[Fraction]
    weights: list[Fraction]
    pair: Fraction | None
    message: Fraction
    makespan: Fraction
    in_flight: tuple[Fraction, ...] | None
    held: tuple[Fraction, ...] | None
    messages: int | None

    @property
    def equal(self) -> bool:
        """Whether all stages take the same time."""
        return len(set(self.forward)) == 1

    @property
    def covered(self) -> bool:
        """Whether the schedule's rules allow the case."""
        last = self.m % self.group or self.group if self.group else 0
        whole = self.forward[0] + self.inputs[0] + self.weights[0]
        rules = {
            "interleaved": self.group >= self.p and last >= self.p,
            "interleaved-zb": self.group >= self.p and last >= self.p,
            "zb-v": self.m >= 2 * self.p - 1,
            "v-half": self.m >= 2 * self.p,
            "v-min": self.m >= 2 * self.p,
            "chimera": self.m <= self.p or self.m % self.p == 0,
            "dualpipe": self.pair == whole,
            "dualpipev": self.pair == 2 * whole,
        }
        return rules.get(self.schedule, True)

    def run(self) -> Run:
        """The case executed."""
        m = self.m * UPDATES if self.schedule == "pipedream-2bw" else self.m
        of = program(self.schedule, self.p, m, self.v, self.group or None)
        pair = None if self.pair is None else self.pair / self.v
        return pipeline.run(of, self.forward, self.inputs, self.message, weight=self.weights, pair=pair)


def cases() -> Iterator[Case]:
    """Every row."""
    with CASES.open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            p, m, v = (int(row[key]) for key in ("devices", "micro_batches", "chunks"))
            stages = p * v
            yield Case(
                name=f"{number}-{row['schedule']}-{p}-{m}-{v}",
                schedule=row["schedule"],
                p=p,
                m=m,
                v=v,
                group=int(row["group"] or 0),
                forward=_by_stage(row["forward"], stages, v),
                inputs=_by_stage(row["input_gradient"], stages, v),
                weights=_by_stage(row["weight_gradient"], stages, v),
                pair=Fraction(row["pair"]) if row["pair"] else None,
                message=Fraction(row["message"]),
                makespan=Fraction(row["makespan"]),
                in_flight=_by_device(row["in_flight"], p),
                held=_by_device(row["held"], p),
                messages=int(row["messages"]) if row["messages"] else None,
            )


def _by_stage(text: str, stages: int, chunks: int) -> list[Fraction]:
    values = [Fraction(value) for value in text.split(";")]
    return [values[0] / chunks] * stages if len(values) == 1 else values


def _by_device(text: str, devices: int) -> tuple[Fraction, ...] | None:
    values = tuple(Fraction(value) for value in text.split(";")) if text else None
    return values * devices if values is not None and len(values) == 1 else values
