"""Write tables/published from tables with the columns of their sources: `python scripts/published.py FOLDER`.

FOLDER holds training_runs.csv, training_models.csv and memory_megatron_golden.csv, as docs/reference/published-runs.md describes them. What
cannot be read is named and left out. Nothing needs the folder afterwards: the tables are committed.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.resolve import resolve_model
from costmodel.errors import InputError
from costmodel.studies.validation import megatron, runs, shapes

TABLES = Path(__file__).resolve().parent.parent / "tables" / "published"


def main(arguments: list[str]) -> int:
    """Write the tables and give 0; 2 without a folder."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    rows = []
    for run in runs.read_runs(folder / "training_runs.csv"):
        if isinstance(run, runs.Unread):
            print(f"left out {run.id}: {run.reason}")
        else:
            rows.append(runs.as_ours(run))
    write("training", runs.OURS, rows)
    readings = megatron.read(folder / "memory_megatron_golden.csv")
    write("megatron_memory", tuple(megatron.COLUMNS), [row.cells for row in readings])
    write("models", tuple(shapes.COLUMNS), models(folder / "training_models.csv"))
    return 0


def models(path: Path) -> list[Mapping[str, str]]:
    """The shapes that the catalog does not have, or has otherwise under that name."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [
            {ours: row[theirs].removesuffix(".0") for ours, theirs in shapes.COLUMNS.items()}
            for row in csv.DictReader(file)
        ]
    return [row for row in rows if not same_in_catalog(row, Catalog.open())]


def same_in_catalog(row: Mapping[str, str], catalog: Catalog) -> bool:
    """Whether the catalog has a model of that name with those layers and heads."""
    try:
        model = resolve_model(row["name"], catalog)
    except InputError:
        return False
    return all(not row[key] or int(row[key]) == getattr(model, key) for key in ("layers", "hidden_size", "heads"))


def write(name: str, columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
    """One table, in the order of its source."""
    with (TABLES / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{name}: {len(rows)} rows")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
