"""A CSV of timings of matrix products: columns m, n, k or rows, columns, features, a precision, and a time with its unit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Chip, Number
from costmodel.catalog.kernels import FAMILIES
from costmodel.catalog.units import QUANTITIES
from costmodel.errors import InputError
from costmodel.generated import kernels_math
from costmodel.runtime import call
from costmodel.studies.calibration.cases import Case, Kind
from costmodel.studies.calibration.constants import Values, of_kernel
from costmodel.studies.kernel_inputs import PEAKS, Kernel, kernel
from costmodel.studies.validation.rows import Row, read_table

NAME = "products"
SHAPES = (("m", "n", "k"), ("rows", "columns", "features"))
PRECISIONS = ("dtype", "precision", "type")
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_TIME = re.compile(r"(?:\w*(?:time|latency|duration)\w*?)[ _(\[]+(ns|us|ms|s|sec|seconds)[)\]]?")
_LONG = {"sec": "s", "seconds": "s"}
NAMES = {
    "bfloat16": "bf16",
    "half": "fp16",
    "float16": "fp16",
    "float8": "fp8",
    "float8_e4m3fn": "fp8",
    "e4m3": "fp8",
    "float4": "fp4",
    "nvfp4": "fp4",
}
"""What others call a precision."""
MOST_SIZE = 2.0**40


def knows(columns: Sequence[str]) -> bool:
    """Whether a table with these columns is one of timings of products."""
    return _shape(columns) is not None and _time_column(columns) is not None


def _shape(columns: Sequence[str]) -> tuple[str, str, str] | None:
    """The columns of rows, columns and features as the file spells them."""
    lower = {column.lower(): column for column in columns}
    found = next((names for names in SHAPES if all(name in lower for name in names)), None)
    return (lower[found[0]], lower[found[1]], lower[found[2]]) if found else None


def _time_column(columns: Sequence[str]) -> tuple[str, float] | None:
    """The column of times, and its unit in seconds."""
    for column in columns:
        match = _TIME.fullmatch(column.strip().lower())
        if match:
            return column, UNITS[_LONG.get(match[1], match[1])]
    return None


def kind(tables: Sequence[tuple[str, Path]], chip: Chip, catalog: Catalog) -> Kind:
    """The cases of tables of products on that chip. Raises InputError, with file and line, for a row that cannot be read."""
    cases, made, notes = [], [], []
    unsaid = 0
    for file, path in tables:
        columns, rows = read_table(path)
        shape, time = _shape(columns), _time_column(columns)
        if shape is None or time is None:
            raise InputError(
                f"{file} is no table of products: expected m, n, k or rows, columns, features, and time_us"
            )
        if not rows:
            raise InputError(f"{file} has no row below its columns")
        lower = {column.lower(): column for column in columns}
        precision = next((lower[name] for name in PRECISIONS if name in lower), None)
        for row in rows:
            if chip_named := row.text(lower.get("chip", "")):
                _check_chip(chip_named, chip, row, catalog)
            named = row.text(precision).lower() if precision else ""
            unsaid += not named
            made.append((_precision(named or "bf16", row), {**_sizes(row, shape, lower), **_run(row, lower)}))
            seconds = _positive(row, time[0]) * time[1]
            cases.append(Case(row.where, f"{made[-1]}", seconds, _held(made[-1][0], chip, catalog).name))
    if unsaid:
        notes.append(f"{unsaid} rows do not say their precision: taken as bf16")
    held = {name: _held(name, chip, catalog) for name in dict.fromkeys(precision for precision, _ in made)}
    constants = [
        constant for one in held.values() for constant in of_kernel(chip.name, one.name, _numbers(one, catalog))
    ]

    def predict(values: Values) -> list[float]:
        inputs = {name: _inputs(one, values) for name, one in held.items()}
        return [call(kernels_math.matmul_time, {**inputs[name], **sizes})["time"] for name, sizes in made]

    return Kind(
        NAME,
        tuple(file for file, _ in tables),
        cases,
        constants,
        predict,
        tuple(notes),
        {(chip.name, one.name): _numbers(one, catalog) for one in held.values()},
    )


def _check_chip(named: str, chip: Chip, row: Row, catalog: Catalog) -> None:
    found = catalog.chip(named).name
    if found != chip.name:
        raise InputError(
            f"{row.where}: the row is of {found}, and {chip.name} is calibrated; give each chip its own file"
        )


def _held(precision: str, chip: Chip, catalog: Catalog) -> Kernel:
    return kernel(chip, "matmul", catalog, precision=precision)


def _inputs(one: Kernel, values: Values) -> Mapping[str, float]:
    inputs = {**one.inputs, "weight_copies": 1.0, "array_copies": 1.0, "cache_copies": 1.0}
    for place, value in values.items():
        if place.shelf == "kernels" and place.entry == one.chip.name and place.path[1] == one.name:
            inputs[place.path[2]] = value
    return inputs


def _numbers(one: Kernel, catalog: Catalog) -> Mapping[str, Number]:
    """The constants of a kernel as a file would hold them, whether they are the chip's own, a sister's or the usual ones."""
    origin, chip = one.source
    if origin != "usual":
        return catalog.kernels(chip).kernels[one.name]
    source, why = "the usual constants of assumptions/kernels.yaml and of the chip", "guess"
    units = {name: quantity for name, (quantity, *_) in FAMILIES["matmul"].items()}
    return {name: _number(one.constants[name], units[name], source, why) for name in FAMILIES["matmul"]}


def _number(value: float, quantity: str, source: str, confidence: str) -> Number:
    unit, factor = {"duration": ("us", 1e-6), "bytes per second": ("GB/s", 1e9)}.get(quantity, (quantity, 1.0))
    return Number(value, QUANTITIES[quantity][0], source, confidence, stated=f"{value / factor:.15g} {unit}")


def _precision(named: str, row: Row) -> str:
    name = NAMES.get(named, named)
    if name not in PEAKS:
        raise InputError(f"{row.where}: {InputError.unknown('precision of a product', named, PEAKS)}")
    return name


def _sizes(row: Row, shape: tuple[str, str, str], lower: Mapping[str, str]) -> dict[str, float]:
    sizes = {name: _positive(row, column) for name, column in zip("MNK", shape, strict=True)}
    groups = next((lower[name] for name in ("groups", "batch") if name in lower), None)
    sizes["groups"] = _positive(row, groups) if groups and row.text(groups) else 1.0
    for name, value in sizes.items():
        if value != int(value) or value > MOST_SIZE:
            raise InputError(f"{row.where}: {name} is {value:g}, not a whole number up to 2**40")
    return sizes


def _run(row: Row, lower: Mapping[str, str]) -> dict[str, float]:
    """What a table of tables/published/kernels says besides: copies of the weights used in turn, and whether the cast is in the time."""
    copies = lower.get("weight_copies", "")
    again = {"weight_copies": _positive(row, copies)} if row.text(copies) else {}
    return again | ({"cast_size": 0.0} if row.text(lower.get("cast_included", "")) == "no" else {})


def _positive(row: Row, column: str) -> float:
    try:
        value = row.number(column)
    except InputError as error:
        raise InputError(f"{row.where}: {error}") from None
    if value is None:
        raise InputError(f"{row.where}: {column} is empty")
    return value


__all__ = ["NAME", "kind", "knows"]
