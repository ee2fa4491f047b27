"""Draw the published sample of measured kernels from aiconfigurator-core: `python scripts/kernel_sample.py`.

It needs the extra `deep`, and is run again only when that package brings new tables. The rule of the two parts: rows whose weights or
heads have the same shape go together, by a checksum of it, so that nothing is judged on a shape that it was fitted to.
"""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.studies.validation.kernel_packages import Measured, Row, installed, part_of, rows, tables

FOLDER = Path(__file__).resolve().parent.parent / "tables" / "published" / "kernels"
SEED = 2026
MAIN = {"a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "gb200", "l40s"}
FILES = {"matmul": "matmul", "prefill": "attention", "decode": "attention", "experts": "experts", "cast": "cast"}


def main() -> int:
    """Write a file a kind; gives 1 where the package is not installed."""
    root = installed()
    if root is None:
        print("aiconfigurator-core is not installed: pip install 'roofline-costmodel[deep]'", file=sys.stderr)
        return 1
    catalog = Catalog.open()
    drawn: dict[str, list[dict[str, str]]] = {name: [] for name in dict.fromkeys(FILES.values())}
    for table in tables(root):
        found = rows(table, catalog.chip(table.chip).details["l2_capacity"].value)
        for part in ("fit", "judge"):
            own = [row for row in found if part_of(row) == part]
            for row in sample(table, part, own):
                number = len(drawn[FILES[table.kind]]) + 1
                drawn[FILES[table.kind]].append(
                    {"id": f"{FILES[table.kind]}-{number}", **row, "part": part, "source": table.source}
                )
    for name, chosen in drawn.items():
        with (FOLDER / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(chosen[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(chosen)
        print(f"{name}.csv: {len(chosen)} rows")
    return 0


def sample(table: Measured, part: str, own: Sequence[Row]) -> Sequence[Row]:
    """So many rows of one part of a table, drawn at random with a seed of their own, in the table's order."""
    size = {"matmul": 200 if table.precision == "bf16" else 80, "experts": 50, "cast": 30}.get(table.kind, 60)
    size = size if table.chip in MAIN else size // 2
    draw = random.Random(f"{SEED} {table.source} {table.precision} {part}")  # noqa: S311  a sample, no secret
    chosen = draw.sample(range(len(own)), min(size, len(own)))
    return [own[place] for place in sorted(chosen)]


if __name__ == "__main__":
    sys.exit(main())
