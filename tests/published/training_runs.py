"""Published training runs and what the equations say of them; run as a module it writes the ratios of the file anew."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from costmodel.catalog.resolve import resolve_model
from costmodel.search.layout import parse_layout
from costmodel.search.workload import Workload
from tests.equations.training.drawn import CATALOG, Case, decoder, machine

FILE = Path(__file__).with_name("training_runs.yaml")
PLAIN = {"norm": "layernorm", "attention_bias": "qkvo", "ffn_bias": True}
"""Of shapes without gate; biases cost next to nothing, learned positions nothing."""


@dataclass(frozen=True)
class Published:
    """One run: its case, what was measured, and the ratio on file."""

    name: str
    case: Case
    step_time: float
    tflops: float
    causal_tflops: float
    ratio: float

    def predicted(self):
        """Predicted over measured step time."""
        found = self.case()
        if self.step_time:
            return found["step_time"] / self.step_time
        if self.causal_tflops:
            return self.causal_tflops * 1e12 / (found["mfu_causal"] * found["peak"])
        return self.tflops * 1e12 / found["chip_rate"]


def published(file=FILE):
    """Every run by source."""
    content = yaml.safe_load(file.read_text("utf-8"))
    shapes = {
        name: decoder(name=name, **(sizes if sizes["gated_ffn"] else sizes | PLAIN))
        for name, sizes in content["models"].items()
    }
    found = {}
    for source in content["sources"]:
        found[source["source"]] = [run(row, shapes) for row in source["runs"]]
    return found


def run(row, shapes):
    where = machine(row["machine"])
    model = shapes.get(row["model"]) or resolve_model(row["model"], CATALOG)
    workload = Workload(where, model, row["sequence_length"], row["batch"])
    case = Case(workload, parse_layout(row["layout"], where.chips))
    return Published(
        row["run"], case, row.get("step_time", 0), row.get("tflops", 0), row.get("causal_tflops", 0), row["ratio"]
    )


def main():
    text = FILE.read_text("utf-8")
    for runs in published().values():
        for one in runs:
            text = re.sub(rf"(\{{run: {one.name},[^}}]*ratio: )[0-9.]+", rf"\g<1>{one.predicted():.3f}", text)
    FILE.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main())
