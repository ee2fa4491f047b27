"""The tables of docs/reference/constants.md, every constant with its value, unit, confidence, source and note; and what intervals hold."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Fact, Number, Unknown
from costmodel.studies.intervals import CLASSES

COVERAGE = Path(__file__).resolve().parent.parent / "tests/published/accepted_coverage.csv"
HEADERS = ("constant", "value", "confidence", "source", "meaning or note")


def markdown(headers: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of several columns; bars inside cells are escaped."""
    lines = [headers, ("---",) * len(headers), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def row(name: str, fact: Fact) -> tuple[str, ...]:
    """One constant; an unknown one with its reason."""
    if isinstance(fact, Unknown):
        return f"`{name}`", "unknown", "", "", fact.reason
    span = ""
    if fact.low is not None or fact.high is not None:
        span = f" ({fact.at('low'):.4g} to {fact.at('high'):.4g} {fact.unit})"
    said = "; ".join(part for part in (fact.meaning, fact.note) if part)
    return f"`{name}`", fact.stated + span, fact.confidence, fact.source, said


def section(title: str, facts: Mapping[str, Fact]) -> Iterator[str]:
    """A heading and the table of its constants."""
    yield f"### {title}\n"
    yield markdown(HEADERS, [row(name, fact) for name, fact in facts.items()])


def of_files(kind: str) -> str:
    """Constants of assumptions or recipes, one table a file."""
    catalog = Catalog.open()
    read = catalog.assumptions if kind == "assumptions" else catalog.recipe
    return "\n".join(line for name in catalog.names(kind) for line in section(name, read(name)))


def of_chips() -> str:
    """What chips attain, beside their data sheets, one table a chip."""
    catalog = Catalog.open()
    found = {name: catalog.chip(name).attainable for name in catalog.names("chips")}
    return "\n".join(line for name, facts in found.items() for line in section(name, facts))


def of_links() -> str:
    """What links attain, and what libraries of collectives make of them."""
    catalog = Catalog.open()
    lines: list[str] = []
    for name in catalog.names("links"):
        link = catalog.link(name)
        library = (
            {f"{link.library.name}: {key}": n for key, n in link.library.constants.items()} if link.library else {}
        )
        facts = {"bandwidth": link.bandwidth, "latency": link.latency, **link.attainable, **library}
        lines += section(name, facts)
    return "\n".join(lines)


def of_kernels() -> str:
    """The constants of measured kernels, one line a kernel."""
    catalog = Catalog.open()
    rows: list[tuple[str, ...]] = []
    for chip in catalog.names("kernels"):
        held = catalog.kernels(chip)
        if held.kernels_of:
            rows.append((chip, "all", f"those of {held.kernels_of}", "", ""))
        for name, constants in held.kernels.items():
            values = ", ".join(f"{key} {number.stated}" for key, number in constants.items())
            rows.append((chip, f"`{name}`", values, *_same(constants.values())))
    return markdown(("chip", "kernel", "constants", "confidence", "source"), rows)


def _same(numbers: Iterable[Number]) -> tuple[str, str]:
    several = list(numbers)
    return " ".join(dict.fromkeys(n.confidence for n in several)), ", ".join(dict.fromkeys(n.source for n in several))


def sources() -> str:
    """What the ids of sources stand for."""
    return markdown(("source", "stands for"), [(f"`{key}`", text) for key, text in Catalog.open().sources.items()])


def coverage() -> str:
    """What 80 % intervals hold, as scripts/fit_intervals.py wrote it."""
    with COVERAGE.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    def share(row: Mapping[str, str], key: str) -> str:
        return f"{100 * float(row[key]):.0f} % of {row[f'{key}_n']}" if row[key] else ""

    shown = ("held_back", "in_turn", "unseen_sources")
    return markdown(
        ("kind", "class", "rows held back", "each quarter by the others", "each source by the others"),
        [
            (
                row["kind"],
                CLASSES.get(row["kind"], {}).get(row["class"], row["class"]),
                *(share(row, key) for key in shown),
            )
            for row in rows
        ],
    )


TABLES: Mapping[str, Callable[[], str]] = {
    "constants of assumptions": lambda: of_files("assumptions"),
    "constants of recipes": lambda: of_files("recipes"),
    "constants of chips": of_chips,
    "constants of links": of_links,
    "constants of kernels": of_kernels,
    "sources": sources,
    "coverage": coverage,
}
