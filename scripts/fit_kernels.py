"""Fit the constants of kernels to the part `fit` of the published tables and write them: `python scripts/fit_kernels.py`.

A file a chip in hardware/kernels is written anew. With --dry nothing is written. What is
minimised is the mean absolute logarithm of predicted over measured; the equations are those of costmodel/equations/kernels. A
constant that only some chips need is kept at its neutral value unless it lowers that mean by 2 %.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.units import QUANTITIES
from costmodel.equations.kernels.experts import ExpertBlock
from costmodel.equations.kernels.fused_attention import DecodeAttention, ForwardBackward, PrefillAttention
from costmodel.equations.kernels.gemm import Gemm
from costmodel.equations.kernels.streams import Stream
from costmodel.equations.kernels.tiles import KERNEL_AXES
from costmodel.runtime import Run, Table
from costmodel.studies.kernel_inputs import kernel
from costmodel.studies.validation.kernels import COLUMNS, FAMILY, published_rows, setting
from costmodel.studies.validation.rows import Row
from costmodel.symbolic import Axis, Chapter, EquationSystem, numpy_module
from costmodel.symbolic.write import load

Array = NDArray[np.float64]
FOLDER = Path(__file__).resolve().parent.parent / "hardware" / "kernels"
CHAPTERS: dict[str, type[Chapter]] = {
    "matmul": Gemm,
    "prefill": PrefillAttention,
    "forward-backward": ForwardBackward,
    "decode": DecodeAttention,
    "experts": ExpertBlock,
    "cast": Stream,
}
GAIN = 0.98
"""A further constant is kept where it lowers the mean error to this share or less."""
SURER = {"listing_time": 0.9}
"""The same of a constant that can stand in for another, as what every expert takes can for what a block of experts takes."""
CAST_BY_ROWS = ("matmul-fp8", "matmul-fp8-block")
"""Products whose casts find scales along a row; those to four bits have a scale for sixteen elements, and blocks that go over all rows."""
DIGITS = 3
OUTSIDE = {"decode": 0.055}
USUALLY_OUTSIDE = 0.08
"""Share of the fitted rows beyond either end: less than a tenth, the rows that judge lie further out; of decode kernels furthest."""
FEW = 30
NOTICE = (
    "# Written by scripts/fit_kernels.py: between `low` and `high` lie four of five of measured over predicted times."
)
SMALLEST = 1e-9
"""What stands for zero in the search, which goes by factors: a nanosecond."""


@dataclass(frozen=True)
class Search:
    """How a constant is searched for: where from, between what; and its unit in the file."""

    start: float
    low: float
    high: float
    unit: str


SHARE = Search(0.7, 0.1, 1.0, "share")
LATE = Search(3e-6, 5e-7, 3e-4, "us")
SMALL = Search(3e-7, SMALLEST, 1e-4, "us")
RATE = Search(1e11, 5e9, 5e12, "GB/s")
SPEED = Search(1.3, 1.0, 8.0, "ratio")
FREE: dict[str, dict[str, Search]] = {
    "matmul": {
        "peak_share": SHARE,
        "memory_share": SHARE,
        "start": LATE,
        "unit_bandwidth": RATE,
        "split_start": LATE,
        "cast_share": Search(0.3, 0.02, 1.0, "share"),
    },
    "prefill": {
        "peak_share": SHARE,
        "exponential_rate": Search(3e12, 2e11, 2e13, "T/s"),
        "memory_share": Search(0.4, 0.05, 1.0, "share"),
        "start": LATE,
    },
    "decode": {"memory_share": SHARE, "start": LATE, "item_time": Search(2e-6, SMALLEST, 1e-4, "us")},
    "experts": {
        "peak_share": SHARE,
        "memory_share": SHARE,
        "unit_bandwidth": RATE,
        "activation_share": Search(0.4, 0.03, 1.0, "share"),
        "start": Search(2e-5, 1e-6, 3e-4, "us"),
    },
    "stream": {"memory_share": SHARE, "start": LATE},
}
FREE["backward"] = {name: FREE["prefill"][name] for name in ("peak_share", "exponential_rate", "start")}
FURTHER: dict[str, list[dict[str, Search]]] = {
    "matmul": [
        {"cast_row_time": SMALL},
        {"wave_fill": SMALL, "whole_waves": Search(0.1, 1e-3, 1.0, "share")},
        {"cached_speedup": SPEED},
    ],
    "prefill": [{"row_start": SMALL}],
    "decode": [{"cached_speedup": SPEED}],
    "experts": [
        {"expert_start": Search(5e-6, SMALLEST, 1e-3, "us")},
        {"listing_time": Search(1e-7, SMALLEST, 1e-5, "us")},
        {"cached_speedup": SPEED},
    ],
    "backward": [],
    "stream": [{"cached_speedup": SPEED}],
}
NEUTRAL = {
    "wave_fill": (0.0, "us"),
    "whole_waves": (0.0, "share"),
    "cached_speedup": (1.0, "ratio"),
    "row_start": (0.0, "us"),
    "expert_start": (0.0, "us"),
    "listing_time": (0.0, "us"),
    "cast_share": (1.0, "share"),
    "cast_row_time": (0.0, "us"),
    "memory_share": (0.8, "share"),
    "block_tokens": (128.0, "count"),
}
"""Values that leave a term out; of the backward pass, whose traffic hardly shows, a usual share."""
BLOCKS = (128.0, 64.0)
"""Sizes of attention blocks that are tried."""


class Form:
    """A chapter as numpy over rows of a table: the time for each, in seconds."""

    def __init__(self, kind: str) -> None:
        system = CHAPTERS[kind].system
        self.columns = COLUMNS[kind]
        rows = EquationSystem(system.name)
        for name in self.columns.values():
            known = system[name]
            rows.input(name, known.unit, known.meaning, axes=(Axis(name),), owner=known.owner)
        rows.include(system)
        levels = {"once": (), "rows": tuple(self.columns.values())}
        self.module = load(numpy_module(system.name, rows, ["time"], KERNEL_AXES, levels), system.name)

    def table(self, rows: Sequence[Row]) -> Table:
        """The columns that vary from row to row."""
        return Table({name: [float(row.text(column)) for row in rows] for column, name in self.columns.items()})

    def __call__(self, table: Table, values: Mapping[str, float]) -> Array:
        """The time of each row."""
        scalars = {name: value for name, value in values.items() if name not in table.columns}
        run = Run(self.module, table, scalars).coarse()
        return np.concatenate([np.ravel(block["time"]) for _, block in run.blocks()])


@dataclass
class Group:
    """The measured rows of one kernel on one chip, in a part or the other."""

    chip: str
    name: str
    family: str
    fixed: dict[str, float]
    parts: dict[str, list[tuple[Form, Table, Array]]]

    def logarithms(self, part: str, values: Mapping[str, float]) -> Array:
        """Of predicted over measured."""
        held = [form(table, {**self.fixed, **values}) / times for form, table, times in self.parts[part]]
        return np.log(np.concatenate(held))


def groups(catalog: Catalog) -> list[Group]:
    """Every kernel on every chip that the tables hold rows of to fit to."""
    forms = {kind: Form(kind) for kind in CHAPTERS}
    gathered: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in published_rows():
        implementation = row.text("implementation") or None
        family = FAMILY.get(row.text("kind"), row.text("kind"))
        if implementation == "deepgemm":
            continue
        named = None if family in {"matmul", "stream"} else implementation
        precision = "bf16" if family == "stream" else row.text("precision")
        found = kernel(catalog.chip(row.text("chip")), family, catalog, precision=precision, implementation=named)
        gathered[row.text("chip"), found.name][row.text("part")].append(row)
    made = []
    for (chip, name), parts in gathered.items():
        if "fit" not in parts:
            continue
        first = parts["fit"][0]
        tables = {
            part: [
                (forms[kind], forms[kind].table(rows), np.array([float(row.text("time_us")) for row in rows]) * 1e-6)
                for kind in dict.fromkeys(row.text("kind") for row in held)
                if (rows := [row for row in held if row.text("kind") == kind])
            ]
            for part, held in parts.items()
        }
        fixed = {**setting(first, catalog), "window": 0.0}
        made.append(Group(chip, name, FAMILY.get(first.text("kind"), first.text("kind")), fixed, tables))
    return made


def minimise(
    loss: Callable[[Mapping[str, float]], float], free: Mapping[str, Search], begin: Mapping[str, float]
) -> tuple[dict[str, float], float]:
    """A pattern search by factors: each constant up or down by its own step, then once more along the whole move."""
    names = list(free)
    low, high = (np.log([getattr(free[name], end) for name in names]) for end in ("low", "high"))
    place = np.clip(np.log([max(begin[name], SMALLEST) for name in names]), low, high)

    def at(z: Array) -> float:
        return loss(dict(zip(names, np.exp(z), strict=True)))

    best, steps = at(place), np.full(len(names), 0.3)
    for _ in range(80):
        before = place.copy()
        for i in range(len(names)):
            for step in (steps[i], -steps[i]):
                tried = place.copy()
                tried[i] = np.clip(tried[i] + step, low[i], high[i])
                if tried[i] != place[i] and (value := at(tried)) < best - 1e-7:
                    best, place = value, tried
                    steps[i] = np.sign(step) * min(abs(step) * 1.6, 0.5)
                    break
            else:
                steps[i] /= 2
        tried = np.clip(2 * place - before, low, high)
        if np.any(place != before) and (value := at(tried)) < best - 1e-7:
            best, place = value, tried
        if np.max(np.abs(steps)) < 1e-3:
            break
    return dict(zip(names, map(float, np.exp(place)), strict=True)), best


def fit(group: Group) -> dict[str, tuple[float, str]]:
    """The constants of one kernel on one chip, each with its unit in the file."""
    family = group.family
    free = dict(FREE[family])
    if group.fixed["cast_size"] == 0:
        free.pop("cast_share", None)
    wanted = list(dict.fromkeys([*FREE[family], *(name for more in FURTHER[family] for name in more)]))
    wanted += ["memory_share"] * (family == "backward") + ["row_start", "block_tokens"] * (family == "backward")
    wanted += ["block_tokens"] * (family == "prefill")
    units = {name: search.unit for name, search in free.items()}
    held = {name: NEUTRAL[name][0] for name in wanted if name in NEUTRAL}

    def loss(values: Mapping[str, float]) -> float:
        return float(np.mean(np.abs(group.logarithms("fit", {**held, **values}))))

    begin = {name: search.start for name, search in free.items()}
    found, best = minimise(loss, free, begin)
    if "block_tokens" in held:
        for size in BLOCKS[1:]:
            held["block_tokens"] = size
            tried, value = minimise(loss, free, begin)
            if value < best * GAIN:
                found, best = tried, value
            else:
                held["block_tokens"] = BLOCKS[0]
    for more in FURTHER[family]:
        if "cast_row_time" in more and group.name not in CAST_BY_ROWS:
            continue
        larger = {**free, **more}
        tried, value = minimise(loss, larger, {**{name: search.start for name, search in more.items()}, **found})
        if value < best * min(SURER.get(name, GAIN) for name in more):
            free, found, best = larger, tried, value
            units |= {name: search.unit for name, search in more.items()}
    values = {**held, **found}
    return {name: (rounded(values[name]), units.get(name, NEUTRAL.get(name, (0, ""))[1])) for name in wanted}


def rounded(value: float) -> float:
    """With three digits."""
    return round(value, DIGITS - 1 - floor(log10(abs(value)))) if value > 2 * SMALLEST else 0.0


def interval(group: Group, constants: Mapping[str, float]) -> dict[str, tuple[float, str]]:
    """Between which shares of the predicted time four of five measured ones lie.

    Taken a little wider than in the part that was fitted, where three in four of the other part would lie within; and never
    narrower than a tenth either way where few rows were fitted.
    """
    over = np.exp(-group.logarithms("fit", constants))
    outside = OUTSIDE.get(group.family, USUALLY_OUTSIDE)
    low, high = (float(np.quantile(over, share)) for share in (outside, 1 - outside))
    least = 0.1 if len(over) < FEW else 0.0
    return {"low": (rounded(min(low, 1 - least)), "ratio"), "high": (rounded(max(high, 1 + least)), "ratio")}


def score(logarithms: Array) -> str:
    """Median and ninetieth percentile of the error, and its bias, in percent."""
    error = np.expm1(logarithms)
    middle, most = np.median(np.abs(error)), np.quantile(np.abs(error), 0.9)
    return f"{100 * middle:5.1f} /{100 * most:6.1f} /{100 * np.median(error):+6.1f}"


def text(chip: str, kernels: Mapping[str, Mapping[str, tuple[float, str]]]) -> str:
    """The file of a chip."""
    lines = [NOTICE, f"name: {chip}", "kernels:"]
    for name, constants in sorted(kernels.items()):
        lines.append(f"  {name}:")
        for key, (value, unit) in constants.items():
            factor = next(factors[unit] for _, factors in QUANTITIES.values() if unit in factors)
            stated = f"{value / factor:.4g}"
            lines.append(f"    {key}: {{value: {stated}, unit: {unit}, source: kernel-fit, confidence: fitted}}")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Fit every kernel, print its errors in both parts, and write the files unless --dry is given."""
    catalog = Catalog.open()
    blocks: dict[str, dict[str, dict[str, tuple[float, str]]]] = defaultdict(dict)
    print(f"{'chip and kernel':44s}  {'fitted: median / p90 / bias':>27s}  {'judged: the same, %':>24s}")
    for group in groups(catalog):
        constants = fit(group)
        values = {name: value for name, (value, _) in constants.items()}
        blocks[group.chip][group.name] = {**constants, **interval(group, values)}
        judged = score(group.logarithms("judge", values)) if "judge" in group.parts else ""
        print(
            f"{group.chip + ' ' + group.name:44s}  {score(group.logarithms('fit', values)):>27s}  {judged:>24s}",
            flush=True,
        )
    if "--dry" not in arguments:
        for chip, kernels in blocks.items():
            (FOLDER / f"{chip}.yaml").write_text(text(chip, kernels), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
