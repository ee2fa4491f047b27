"""Fit the constants of collectives in hardware/links to tables/published/collectives: `python scripts/fit_collectives.py [--write] [LINK ...]`.

Needs scipy. Prints for each constant what is fitted beside what the catalog holds, and the error of both on the rows that are
fitted and on those that judge; --write puts them into the catalog, links that copy them included. The formulas are the generated ones: a trial puts constants in and takes the fastest.
Beyond the largest payload of the tables, rows of one node that others published join them, drawn by their checksums too.
Curves of several nodes are fitted to those that one publisher drew and judged by the others.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median

from costmodel.catalog.catalog import Catalog, shipped
from costmodel.generated import group_on_switches_by_library_math as library
from costmodel.studies.collective import dispatch_latency
from costmodel.studies.timings import Group, inputs
from costmodel.studies.validation.collective_rows import Row, rows_of
from costmodel.topology.machine import parse_machine

RING_NAMES = (
    *("ll_start", "ll_step", "ll_share", "ll128_start", "ll128_step", "ll128_share"),
    *("simple_start", "simple_step", "simple_share", "own_shard", "in_network_start"),
)
RINGS = [
    dict(zip(RING_NAMES, guess, strict=True))
    for guess in (
        (5e-6, 0.8e-6, 0.03, 6e-6, 0.9e-6, 0.4, 17e-6, 0.8e-6, 0.8, 0.5, 80e-6),
        (8e-6, 1.2e-6, 0.012, 8.5e-6, 1.3e-6, 0.33, 10e-6, 7e-6, 0.85, 0.8, 80e-6),
        (8e-6, 0.9e-6, 0.02, 11e-6, 1e-6, 0.42, 20e-6, 8e-6, 0.83, 0.7, 80e-6),
        (5e-6, 1.4e-6, 0.16, 4e-6, 1.9e-6, 0.2, 4e-6, 6e-6, 0.4, 0.01, 80e-6),
    )
]
EXCHANGE = [
    {
        "exchange_ll_start": 9e-6,
        "exchange_ll_share": 0.02,
        "exchange_start": 16e-6,
        "exchange_share": 0.65,
        "own_block": 0.4,
    }
]
TREES = [{"ll128_ring_step": 8e-6, "ll128_tree_step": 40e-6, "simple_tree_step": 60e-6, "simple_nic_share": 0.9}]
"""What is fitted together, with first guesses: the same for all links, so that nothing hangs on what the catalog holds. Curves of
several lines have local minima: each guess is tried, and some beside it."""
FIRST = {"rings": RINGS, "exchange": EXCHANGE, "trees": TREES}
LARGEST_IN_TABLES = 2**29
EDGES = (0, 2**16, 2**24, LARGEST_IN_TABLES)
"""Classes of payloads between these count alike, however many rows each has."""
TIMES = ("start", "step")
BANDS = (("small", 0, 2**16), ("medium", 2**16, 2**24), ("large", 2**24, 2**62))
PASSES = 2
SPREAD = 0.2
"""Further tries beside each guess, and how far they lie from it in logarithms."""


@dataclass(frozen=True)
class Case:
    """A measured row and the inputs of the equations for it."""

    row: Row
    known: Mapping[str, float]
    ways: Sequence[str]

    def predicted(self, constants: Mapping[str, float]) -> float:
        """Seconds, with these constants in place of those of the catalog."""
        values = library.times(**{**self.known, **constants})
        return float(min(values[way] for way in self.ways))


def cases(catalog: Catalog, rows: Sequence[Row]) -> list[Case]:
    """The rows as cases."""
    found = []
    for row in rows:
        machine = parse_machine(row.machine, 1, catalog)
        host = dispatch_latency("nccl", catalog, row.started_by)
        group = Group.of(machine, group=None, axes=None, stride=1, library="nccl", dispatch_latency=host)
        known = inputs(row.payload, group, row.dtype or "bf16", None)
        wanted = {name: known[name] for name in library.times.__annotations__ if name in known}
        operation = row.operation.replace("-", "_")
        ways = [name for name in library.ALGORITHMS[operation] if not (row.no_in_switch and name.startswith("nvls"))]
        ways = [name for name in ways if name.startswith(row.family)]
        found.append(Case(row, wanted, [f"{operation}_{name}" for name in ways]))
    return found


def errors(some: Sequence[Case], constants: Mapping[str, float]) -> str:
    """Median and 90th percentile of the error by size of the payload, in per cent."""
    told = []
    for name, low, high in BANDS:
        sizes = sorted(
            abs(case.predicted(constants) / (case.row.time_s or 1) - 1)
            for case in some
            if low < case.row.payload <= high
        )
        if sizes:
            told.append(
                f"{name} {median(sizes):.1%} (90 % within {sizes[int(0.9 * (len(sizes) - 1))]:.0%}, {len(sizes)})"
            )
    return ", ".join(told)


def fitted(some: Sequence[Case], names: Sequence[str], guesses: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The constants that are least wrong, in logarithms and with outliers held down."""
    import numpy as np
    from scipy.optimize import least_squares

    def wrong(x: Sequence[float]) -> list[float]:
        constants = {name: exp(value) for name, value in zip(names, x, strict=True)}
        return [
            weight * log(case.predicted(constants) / (case.row.time_s or 1))
            for case, weight in zip(some, weights, strict=True)
        ]

    sizes = [sum(case.row.payload > edge for edge in EDGES) for case in some]
    weights = [(len(some) / len(EDGES) / sizes.count(size)) ** 0.5 for size in sizes]
    draw = np.random.default_rng(0)
    tries = []
    for guess in guesses:
        first = np.log([guess[name] for name in names])
        tries += [first, *(first + draw.normal(0, SPREAD, len(names)) for _ in range(PASSES))]
    found = [least_squares(wrong, x, loss="soft_l1", f_scale=0.05, max_nfev=200) for x in tries]
    best = min(found, key=lambda result: result.cost)
    return {name: exp(value) for name, value in zip(names, best.x, strict=True)}


def write(link: str, constants: Mapping[str, float]) -> None:
    """Put constants into the file of a link, to three digits, and where another link copies them."""
    for path in sorted((shipped("hardware") / "links").glob("*.yaml")):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        for number, line in enumerate(lines):
            name = line.strip().partition(":")[0]
            if name in constants and (path.stem == link or f"note: as {link}}}" in line):
                value = constants[name] * (1e6 if name.endswith(TIMES) else 1.0)
                lines[number] = re.sub(r"value: [^,]*", f"value: {value:.3g}", line)
        path.write_text("".join(lines), "utf-8")


def report(
    link: str,
    guesses: Sequence[Mapping[str, float]],
    fit: Sequence[Case],
    judge: Sequence[Case],
    catalog: Catalog,
    *,
    store: bool,
) -> None:
    """Fit one set of constants and print it; `store` puts it into the catalog."""
    entry = catalog.link(link).library
    held = {name: entry.constants[name].value for name in guesses[0] if name in entry.constants} if entry else {}
    found = fitted(fit, list(held), guesses)
    print(f"\n{link}")
    for name, value in found.items():
        unit, factor = ("us", 1e6) if name.endswith(TIMES) else ("", 1.0)
        print(f"  {name:20} {value * factor:9.4g} {unit:2}  (catalog {held[name] * factor:.4g})")
    if store:
        write(link, found)
    print(
        f"  fitted to:  {errors(fit, found)}\n  judged by:  {errors(judge, found)}\n  catalog:    {errors(judge, held)}"
    )


def link_of(row: Row, catalog: Catalog) -> tuple[str, bool]:
    """The link that decides a row, and whether that is a NIC: of several domains the first level's, else the domain's."""
    machine = parse_machine(row.machine, 1, catalog)
    levels = [level.link.name for level in machine.network if level.size > 1 and not machine.is_torus]
    return (levels[0], True) if levels else (machine.dimensions[0].link.name, False)


def main(words: Sequence[str]) -> None:
    """Fit the links that are named, or all."""
    store, wanted = "--write" in words, [word for word in words if word != "--write"]
    catalog, folder = Catalog.open(), shipped("tables") / "published" / "collectives"
    rows = [
        row
        for name in ("in_node", "published")
        for row in rows_of(folder / f"{name}.csv", catalog)
        if not row.skipped
        and row.time_s
        and (name == "in_node" or row.payload > LARGEST_IN_TABLES or link_of(row, catalog)[1])
    ]
    groups: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in rows:
        link, across = link_of(row, catalog)
        exchange = row.operation == "all-to-all"
        if across and row.operation != "all-reduce":
            continue
        what = "trees" if across else "exchange" if exchange else "rings"
        groups.setdefault((link, what), {"fit": [], "judge": []})[row.part].append(row)
    for (link, what), parts in groups.items():
        if parts["fit"] and (not wanted or link in wanted):
            fit, judge = (cases(catalog, parts[part]) for part in ("fit", "judge"))
            report(link, FIRST[what], fit, judge, catalog, store=store)


if __name__ == "__main__":
    main(sys.argv[1:])
