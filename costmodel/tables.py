"""The tables that the code writes: `python -m costmodel.tables [--check]`.

tables/standard holds what the commands answer for standard models on standard clusters, tables/validation what is predicted for
published layouts beside what their sources say. They are kept beside the code so that a change of any prediction is seen in review. With --check nothing is written; the exit code
is 1 when a number has moved without its table, and it is named. From a checkout only: an installed package has no tables to write.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.report import Record, Scalar
from costmodel.report.csv import render

FOLDER = Path(__file__).resolve().parent.parent / "tables"
DIGITS = 6
"""Significant digits: below them the last bits of another processor's cube roots show."""

MODELS = ("7B", "13B", "70B", "405B")
CLUSTERS = (
    "dgx-a100:1024",
    "dgx-h100:1024",
    "dgx-h200:1024",
    "dgx-b200:1024",
    "dgx-gb200:1152",
    "h800-cluster:1024",
    "mi300x-cluster:1024",
    "tpu-v4:8x8x16",
    "tpu-v5e:16x16",
    "tpu-v5p:8x8x16",
    "tpu-v6e:16x16",
    "tpu-v7:8x8x16",
)
OPERATIONS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast", "send-recv")
SIZES = ("1KiB", "1MiB", "1GiB")
GROUPS = ("dgx-a100:8", "dgx-h100:8", "dgx-h100:512", "dgx-gb200:72", "dgx-gb200:576", "tpu-v5e:16x16", "tpu-v5p:8x8x8")
LARGE = ("dgx-h100:16384", "tpu-v5p:16x16x16")
WITH_EXPERTS = ("mixtral-8x7b", "qwen3-235b-a22b", "deepseek-v3")
EXPERT_CLUSTERS = ("dgx-h100:1024", "dgx-gb200:1152", "tpu-v5p:8x8x16")
COMPARED = (
    ("llama-3-70b", "dgx-h100:512", 8192, "4M"),
    ("llama-3-70b", "dgx-h100:512", 131_072, "16M"),
    ("qwen3-235b-a22b", "dgx-h100:512", 4096, "16M"),
)
"""What every strategy is tried on: a model, a cluster, a sequence length and a batch."""


def training() -> list[Record]:
    """The best layout of each model on each cluster; one that fits nowhere is shown as it is, with its margin."""
    from costmodel.studies.plan import plan

    catalog = Catalog.open()
    runs = [(model, cluster, "4M") for cluster in CLUSTERS for model in MODELS]
    runs += [("405B", cluster, "16M") for cluster in LARGE]
    runs += [(model, cluster, "16M") for cluster in EXPERT_CLUSTERS for model in WITH_EXPERTS]
    return [
        record
        for model, cluster, batch in runs
        for record in plan(model, cluster, sequence_length=8192, batch=batch, top=1, catalog=catalog).records()
    ]


def models() -> list[Record]:
    """The parameters of the standard models."""
    from costmodel.studies.models import show_model

    catalog = Catalog.open()
    return [record for model in MODELS for record in show_model(model, catalog).records()]


def collectives() -> list[Record]:
    """The fastest algorithm of each operation for each size on each group."""
    from costmodel.studies.collective import collective

    catalog = Catalog.open()
    return [
        {"on": group, **collective(operation, size, group, catalog=catalog).records()[0]}
        for group in GROUPS
        for operation in OPERATIONS
        for size in SIZES
    ]


def strategies() -> list[Record]:
    """The best layout of each strategy beside the best of all."""
    from costmodel.studies.strategies import strategies

    catalog = Catalog.open()
    return [record for compared in COMPARED for record in strategies(*compared, catalog)]


def layouts() -> list[Record]:
    """Published layouts, predicted beside published."""
    from costmodel.studies.validation.layouts import records

    return list(records(Catalog.open()))


TABLES: dict[str, Callable[[], Sequence[Record]]] = {
    "standard/collectives.csv": collectives,
    "standard/models.csv": models,
    "standard/strategies.csv": strategies,
    "standard/training.csv": training,
    "validation/layouts.csv": layouts,
}
"""Each file in tables/ that is written, and the function that gives its rows."""


def text(rows: Sequence[Record]) -> str:
    """The rows as they stand in the file: CSV with the numbers rounded."""
    return render([{name: _rounded(value) for name, value in row.items()} for row in rows])


def _rounded(value: Scalar) -> Scalar:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def moved(old: str, new: str) -> Iterator[str]:
    """Sentences on the first rows that differ."""
    before, after = old.splitlines(), new.splitlines()
    if len(before) != len(after):
        yield f"{len(before)} rows became {len(after)}"
    for number, (one, other) in enumerate(zip(before, after, strict=False), 1):
        if one != other:
            cells = [f"{a} -> {b}" for a, b in zip(one.split(","), other.split(","), strict=False) if a != b]
            yield f"row {number} ({one.split(',')[0]}): {'; '.join(cells[:4])}"


def main(arguments: Sequence[str], tables: Mapping[str, Callable[[], Sequence[Record]]] = TABLES) -> int:
    """Write the tables that have changed, or with --check name what moved and give 1."""
    check = list(arguments) == ["--check"]
    stale = 0
    for name, rows in tables.items():
        path, new = FOLDER / name, text(rows())
        old = path.read_text("utf-8") if path.exists() else ""
        if old == new:
            continue
        stale += 1
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(new, "utf-8")
        sys.stdout.write(f"{'moved without its table' if check else 'rewrote'}: tables/{name}\n")
        for sentence in list(moved(old, new))[:5]:
            sys.stdout.write(f"  {sentence}\n")
    if check and stale:
        sys.stderr.write("run python -m costmodel.tables\n")
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
