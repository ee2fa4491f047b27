"""What hardware there is, what one entry says and from where, and whether a catalog holds together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

from costmodel.catalog.browse import Entry, facts_of, fields_of, find, load
from costmodel.catalog.catalog import KINDS, Catalog
from costmodel.catalog.entries import Chip, Cluster, Fact, Link, Number, shape_text
from costmodel.catalog.lint import Report, lint
from costmodel.errors import InputError
from costmodel.generated import collectives_math
from costmodel.report import Record, Table, human

_SINGULAR = {"chips": "chip", "links": "link", "clusters": "cluster"}
_SI_IN_NAMES = {
    "B": "bytes",
    "B/s": "bytes_per_s",
    "FLOP/s": "flop_per_s",
    "s": "s",
    "Hz": "hz",
    "1/s": "per_s",
    "W": "w",
    "USD": "usd",
    "USD/h": "usd_per_chip_hour",
    "B/clock": "bytes_per_clock",
}


def list_hardware(kind: str | None = None, catalog: Catalog | Path | None = None) -> HardwareList:
    """Every entry, or those of one kind (`clusters`, `chips` or `links`), with its headline numbers.

    Raises InputError for another kind and CatalogError at the first bad file.
    """
    opened = Catalog.of(catalog)
    if kind is not None and kind not in KINDS:
        raise InputError.unknown("kind of hardware", kind, KINDS)
    kinds = KINDS if kind is None else (kind,)
    entries = tuple((each, load(opened, each, name)) for each in kinds for name in opened.names(each))
    return HardwareList(entries, opened)


def show_hardware(name: str, catalog: Catalog | Path | None = None) -> HardwareDetails:
    """The entries called `name`, each with every number, its unit, source and confidence, and why others are unknown.

    A name may be that of a cluster and of its chip: then both are shown. Raises InputError with the nearest names
    when there is none, and CatalogError when a file is bad.
    """
    opened = Catalog.of(catalog)
    return HardwareDetails(tuple(find(opened, name)), opened.sources)


def check_catalog(folder: Path | None = None, catalog: Catalog | Path | None = None) -> CatalogCheck:
    """Everything that is wrong in the catalog, with `folder`, a user's own, laid over it.

    Raises InputError when the folder is not there.
    """
    return CatalogCheck(lint(Catalog.open(folder) if folder is not None else Catalog.of(catalog)))


@dataclass(frozen=True)
class HardwareList:
    """Entries with their kinds; clusters are told with numbers of their chips and links."""

    entries: tuple[tuple[str, Entry], ...]
    catalog: Catalog
    exit_code: int = 0

    def records(self) -> list[Record]:
        """One row an entry."""
        return [{**row, "aliases": " ".join(entry.aliases)} for row, (_, entry) in self._rows]

    def long_records(self) -> list[Record]:
        """One row a fact of each entry."""
        return [row for kind, entry in self.entries for row in _facts(kind, entry, self.catalog.sources)]

    def results(self) -> list[dict[str, object]]:
        """One object an entry."""
        return [{**row, "aliases": list(entry.aliases)} for row, (_, entry) in self._rows]

    def extras(self) -> dict[str, object]:
        """Nothing beside the results."""
        return {}

    def tables(self) -> list[Table]:
        """A table a kind."""
        tables = {"clusters": self._clusters, "chips": self._chips, "links": self._links}
        return [tables[kind]() for kind in dict.fromkeys(kind for kind, _ in self.entries)]

    @cached_property
    def _rows(self) -> list[tuple[dict[str, str | int | float | None], tuple[str, Entry]]]:
        return [(_headline(kind, entry, self.catalog), (kind, entry)) for kind, entry in self.entries]

    def _clusters(self) -> Table:
        rows = []
        for row, (_, entry) in self._rows:
            if isinstance(entry, Cluster):
                network = row["network_bytes_per_s"]
                size, chip = _domain_text(entry), entry.chip
                price = f"{entry.prices[0].usd_per_chip_hour.value:.2f}" if entry.prices else ""
                rows.append((entry.name, _also(entry), chip, size, _rate(network), price))
        notes = [
            "domain: chips joined by the fast link, for a torus its largest slice; network: GB/s of a chip, one way.",
            "price: US dollars for a chip and hour, the first on record; `costmodel hardware show NAME` has its date.",
            "Sizes: dgx-h100:512 is 512 chips, dgx-h100:64x8 64 nodes of 8, tpu-v5p:8x16x16 a slice, as is v5p-4096.",
        ]
        return Table("Clusters", ("cluster", "also", "chip", "domain", "network", "price"), rows, notes)

    def _chips(self) -> Table:
        rows = [
            (
                entry.name,
                _also(entry),
                _tera(entry.peak.get("bf16", entry.peak.get("fp16"))),
                _tera(entry.peak.get("fp8")),
                human.size(_value(entry.memory_capacity)),
                human.rate(_value(entry.memory_bandwidth)),
                human.number(_value(entry.power)),
            )
            for _, entry in self.entries
            if isinstance(entry, Chip)
        ]
        notes = ["16-bit, fp8: dense peaks in TFLOP/s; power: rated, in W."]
        return Table("Chips", ("chip", "also", "16-bit", "fp8", "memory", "bandwidth", "power"), rows, notes)

    def _links(self) -> Table:
        rows = [
            (
                entry.name,
                entry.per,
                human.rate(_value(entry.bandwidth)),
                human.seconds(_value(entry.latency)),
                human.number(_value(entry.attainable["collective"])),
            )
            for _, entry in self.entries
            if isinstance(entry, Link)
        ]
        notes = ["bandwidth: one way, of one chip, link or NIC; attained: share that collectives reach."]
        return Table("Links", ("link", "per", "bandwidth", "latency", "attained"), rows, notes)


@dataclass(frozen=True, slots=True)
class HardwareDetails:
    """Entries with all they say, and the texts of the sources they name."""

    entries: tuple[tuple[str, Entry], ...]
    sources: Mapping[str, str]
    exit_code: int = 0

    def records(self) -> list[Record]:
        """One row an entry, a column a field."""
        return [
            {
                "name": entry.name,
                "kind": _SINGULAR[kind],
                "aliases": " ".join(entry.aliases),
                **{_column(field): value for field, value in fields_of(entry).items()},
                **{_column(field, fact): _value(fact) for field, fact in facts_of(entry).items()},
                "note": entry.note,
            }
            for kind, entry in self.entries
        ]

    def long_records(self) -> list[Record]:
        """One row a fact."""
        return [row for kind, entry in self.entries for row in _facts(kind, entry, self.sources)]

    def results(self) -> list[dict[str, object]]:
        """One object an entry, with its plain fields and its facts by field."""
        return [
            {
                "name": entry.name,
                "kind": _SINGULAR[kind],
                "aliases": list(entry.aliases),
                "note": entry.note,
                "fields": fields_of(entry),
                "facts": {
                    str(row["field"]): {
                        key: value for key, value in row.items() if key not in _OF_THE_ENTRY and value is not None
                    }
                    for row in _facts(kind, entry, self.sources)
                },
            }
            for kind, entry in self.entries
        ]

    def extras(self) -> dict[str, object]:
        """Nothing beside the results."""
        return {}

    def tables(self) -> list[Table]:
        """A table an entry; notes on its numbers and the texts of its sources below."""
        return [self._table(kind, entry) for kind, entry in self.entries]

    def _table(self, kind: str, entry: Entry) -> Table:
        facts = facts_of(entry)
        numbers = [fact for fact in facts.values() if isinstance(fact, Number)]
        places = {source: index for index, source in enumerate(dict.fromkeys(fact.source for fact in numbers), 1)}
        rows: list[tuple[str, str, str, str]] = [
            (field, _shortened(str(value)), "", "") for field, value in fields_of(entry).items()
        ]
        for field, fact in facts.items():
            if isinstance(fact, Number):
                stated = fact.stated.removesuffix(" count").removesuffix(" ratio")
                stated = f"{stated} ({fact.date})" if fact.date else stated
                rows.append((field, stated, fact.confidence, f"[{places[fact.source]}]"))
            else:
                rows.append((field, "unknown", "", ""))
        notes = [f"Also called {', '.join(entry.aliases)}."] if entry.aliases else []
        notes += [entry.note] if entry.note else []
        for field, fact in facts.items():
            said = fact.note if isinstance(fact, Number) else fact.reason
            notes += [f"{field}: {said}"] if said else []
        notes += [f"[{place}] {self.sources.get(source, source)}" for source, place in places.items()]
        return Table(
            f"{_SINGULAR[kind].capitalize()} {entry.name}", ("field", "value", "confidence", "source"), rows, notes
        )


@dataclass(frozen=True, slots=True)
class CatalogCheck:
    """What is wrong in a catalog."""

    report: Report

    @property
    def exit_code(self) -> int:
        """1 when anything is wrong."""
        return 1 if self.report.problems else 0

    def records(self) -> list[Record]:
        """One row a problem."""
        return [
            {"file": problem.file, "line": problem.line or None, "field": problem.field, "problem": problem.message}
            for problem in self.report.problems
        ]

    def long_records(self) -> list[Record]:
        """One row a problem."""
        return self.records()

    def results(self) -> list[Record]:
        """One object a problem."""
        return self.records()

    def extras(self) -> dict[str, object]:
        """How many files were read."""
        return {"files": self.report.files}

    def tables(self) -> list[Table]:
        """One line a problem."""
        count = len(self.report.problems)
        found = "nothing is wrong" if not count else f"{count} problem{'s' if count > 1 else ''}"
        return [
            Table(
                f"Catalog of {self.report.files} files: {found}",
                notes=[str(problem) for problem in self.report.problems],
            )
        ]


_OF_THE_ENTRY = ("name", "kind", "field")


def _headline(kind: str, entry: Entry, catalog: Catalog) -> dict[str, str | int | float | None]:
    """The numbers by which entries are told apart, in SI."""
    row: dict[str, str | int | float | None] = {"name": entry.name, "aliases": "", "kind": _SINGULAR[kind]}
    if isinstance(entry, Link):
        return row | {
            "bandwidth_bytes_per_s": _value(entry.bandwidth),
            "latency_s": _value(entry.latency),
            "attainable_share": _value(entry.attainable["collective"]),
        }
    chip = catalog.chip(entry.chip) if isinstance(entry, Cluster) else entry
    row |= {
        "peak_bf16_flop_per_s": _value(chip.peak.get("bf16")),
        "peak_fp8_flop_per_s": _value(chip.peak.get("fp8")),
        "memory_capacity_bytes": _value(chip.memory_capacity),
        "memory_bandwidth_bytes_per_s": _value(chip.memory_bandwidth),
        "power_w": _value(chip.power),
    }
    if isinstance(entry, Chip):
        return row
    price = entry.prices[0].usd_per_chip_hour if entry.prices else None
    return row | {
        "chip": entry.chip,
        "chips_per_host": entry.chips_per_host,
        "domain_chips": entry.scale_up.size or prod(entry.scale_up.largest),
        "domain_shape": shape_text(entry.scale_up.largest),
        "largest_chips": entry.largest_chips,
        "network_bytes_per_s": _beyond_the_domain(entry, catalog),
        "price_usd_per_chip_hour": price.value if price else None,
        "price_date": price.date if price else None,
    }


def _beyond_the_domain(cluster: Cluster, catalog: Catalog) -> float | None:
    """What a chip can send beyond its fast domain, bytes/s one way; None where it is not known."""
    if not cluster.network:
        return None
    level = cluster.network[0]
    link = catalog.link(level.link)
    if not isinstance(link.bandwidth, Number):
        return None
    share = collectives_math.fair_share(
        links_per_host=level.links_per_host,
        link_bandwidth=link.bandwidth.value,
        chips_per_host=cluster.chips_per_host,
    )
    return float(share["per_chip"])


def _facts(kind: str, entry: Entry, sources: Mapping[str, str]) -> list[Record]:
    rows: list[Record] = []
    for field, fact in facts_of(entry).items():
        known = isinstance(fact, Number)
        rows.append(
            {
                "name": entry.name,
                "kind": _SINGULAR[kind],
                "field": field,
                "value": fact.value if isinstance(fact, Number) else None,
                "unit": fact.unit if isinstance(fact, Number) else None,
                "stated": fact.stated if isinstance(fact, Number) else None,
                "confidence": fact.confidence if isinstance(fact, Number) else None,
                "source": fact.source if isinstance(fact, Number) else None,
                "source_text": sources.get(fact.source, fact.source) if isinstance(fact, Number) else None,
                "date": (fact.date or None) if isinstance(fact, Number) else None,
                "note": (fact.note or None) if isinstance(fact, Number) else None,
                "unknown": None if known else fact.reason,  # type: ignore[union-attr]  # then it is an Unknown
            }
        )
    return rows


def _column(field: str, fact: Fact | None = None) -> str:
    """The name of a column: the field in one word, with the SI unit of its number where it has one."""
    name = re.sub(r"[^a-z0-9]+", "_", field.removeprefix("spec.").lower())
    unit = _SI_IN_NAMES.get(fact.unit) if isinstance(fact, Number) else None
    return f"{name}_{unit}" if unit else name


def _value(fact: Fact | None) -> float | None:
    return fact.value if isinstance(fact, Number) else None


def _tera(fact: Fact | None) -> str:
    value = _value(fact)
    return human.number(value / 1e12) if value is not None else human.UNKNOWN


def _rate(bytes_per_second: str | float | None) -> str:
    return human.number(float(bytes_per_second) / 1e9) if bytes_per_second else human.UNKNOWN


def _domain_text(cluster: Cluster) -> str:
    return shape_text(cluster.scale_up.largest) or str(cluster.scale_up.size)


def _also(entry: Entry, longest: int = 9) -> str:
    """The shortest alias, if it is shorter than the name and fits the column."""
    short = min(entry.aliases, key=len, default="")
    return short if len(short) <= min(longest, len(entry.name) - 1) else ""


def _shortened(text: str, longest: int = 40) -> str:
    return text if len(text) <= longest else f"{text[: longest - 4].rsplit(' ', 1)[0]} ..."
