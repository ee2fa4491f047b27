"""`kernel`: how long one kernel takes on one chip, what bounds it, how near its peak it comes, and which shapes would do better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Chip, Number
from costmodel.errors import InputError
from costmodel.generated import kernels_math
from costmodel.report import Breakdown, Record, Scalar, Table, human
from costmodel.runtime import call
from costmodel.search.workload import default_dtype
from costmodel.studies.kernel_inputs import PEAKS, Kernel, interval
from costmodel.studies.kernel_inputs import kernel as constants_of
from costmodel.studies.kernel_shapes import KINDS, SYSTOLIC, Kind, neighbours, shape_of
from costmodel.studies.main_loop import main_loop
from costmodel.studies.ties import TIE

BETTER = 1.02
"""A neighbour is named where it reaches this much more of its peak or bandwidth."""
MOST_NEIGHBOURS = 3
_ALWAYS_NEW = float("inf")
"""Copies used in turn where nothing is found in a cache: of weights in a model, so many that they do not count."""

ORIGINS = {
    "measured": "Constants were fitted to measured kernels of this chip ({chip}).",
    "sister": "Constants are those of a sister chip, {chip}: the interval is wider.",
    "usual": "Nobody's measured kernels of this chip are at hand: usual constants, and the wide interval that goes with them.",
}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A shape near the one asked for that comes nearer its peak."""

    shape: Mapping[str, int]
    time_s: float
    share: float


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """One kernel on one chip. `parts` add up to the time; `overlapped` are the times of what could bound it."""

    kernel: str
    on: str
    precision: str
    implementation: str
    shape: Mapping[str, int]
    time_s: float
    low_time_s: float
    high_time_s: float
    work_flop: float | None
    traffic_bytes: float
    rate_flop_per_s: float | None
    share_of_peak: float | None
    share_of_bandwidth: float
    bound: str
    constants: str
    parts: Breakdown
    overlapped: Breakdown
    details: Mapping[str, Scalar]
    neighbours: tuple[Neighbour, ...]
    notes: tuple[str, ...]
    inside: Table | None = None
    exit_code: int = 0

    def records(self) -> Sequence[Record]:
        """One row."""
        return [{**self._key(), **self._figures()}]

    def long_records(self) -> Sequence[Record]:
        """One row a part of the time, and one for each thing that could bound it."""
        rows = {"part": self.parts, "overlapped": self.overlapped}
        return [
            {**self._key(), "kind": kind, "item": item, "value": value, "unit": "s"}
            for kind, held in rows.items()
            for item, value in held.items()
        ]

    def results(self) -> Sequence[Mapping[str, object]]:
        """As the row, with its parts, details and the nearest better shapes."""
        return [
            {
                **self._key(),
                **self._figures(),
                "parts": dict(self.parts),
                "overlapped": dict(self.overlapped),
                "details": dict(self.details),
                "better_shapes": [
                    {"shape": dict(near.shape), "time_s": near.time_s, "share": near.share} for near in self.neighbours
                ],
            }
        ]

    def extras(self) -> Mapping[str, object]:
        """What was assumed."""
        return {"notes": list(self.notes)}

    def tables(self) -> Sequence[Table]:
        """The time and its parts, what bounds it, what is inside, and shapes that would do better."""
        shape = " ".join(f"{key}={value:,}" for key, value in self.shape.items() if value)
        title = f"{self.kernel} {shape} in {self.precision} on {self.on}: {human.seconds(self.time_s)}"
        rows: list[tuple[str, str]] = [
            ("80 % interval", f"{human.seconds(self.low_time_s)} to {human.seconds(self.high_time_s)}"),
            *((name, human.seconds(value)) for name, value in self.parts.items() if value),
            ("bound by", self.bound),
            ("memory", f"{human.size(self.traffic_bytes)}, {human.percent(self.share_of_bandwidth)} of the bandwidth"),
        ]
        if self.rate_flop_per_s is not None:
            attained = f"{human.flops(self.rate_flop_per_s)}, {human.percent(self.share_of_peak)} of the peak"
            rows.append(("attained", attained))
        details = [
            (name, human.number(value) if isinstance(value, float) and value != int(value) else f"{value}")
            for name, value in self.details.items()
        ]
        tables = [Table(title, ("", ""), [*rows, *details])]
        alone = [(name, human.seconds(value)) for name, value in self.overlapped.items() if value]
        tables.append(Table("Each alone", ("what", "time"), alone))
        if self.inside is not None:
            tables.append(self.inside)
        if self.neighbours:
            better = [
                (
                    " ".join(f"{key}={value:,}" for key, value in near.shape.items() if value != self.shape[key]),
                    human.seconds(near.time_s),
                    human.percent(near.share),
                )
                for near in self.neighbours
            ]
            tables.append(Table("Nearest shapes that do better", ("with", "time", "share"), better))
        return [*tables, Table("", notes=self.notes)]

    def _key(self) -> dict[str, Scalar]:
        return {
            "kernel": self.kernel,
            "on": self.on,
            "precision": self.precision,
            "implementation": self.implementation,
            **self.shape,
        }

    def _figures(self) -> dict[str, Scalar]:
        return {
            "time_s": self.time_s,
            "low_time_s": self.low_time_s,
            "high_time_s": self.high_time_s,
            "work_flop": self.work_flop,
            "traffic_bytes": self.traffic_bytes,
            "rate_flop_per_s": self.rate_flop_per_s,
            "share_of_peak": self.share_of_peak,
            "share_of_bandwidth": self.share_of_bandwidth,
            "bound": self.bound,
            "constants": self.constants,
        }


def kernel(
    name: str,
    on: str,
    *,
    precision: str | None = None,
    implementation: str | None = None,
    sustained: bool = False,
    cached: bool = False,
    catalog: Catalog | Path | None = None,
    **shape: int,
) -> KernelAnswer:
    """The time of one kernel on one chip.

    Args:
        name: matmul, grouped-matmul, attention, attention-decode, attention-backward, experts, or an elementwise operation.
        on: the chip, such as `h100-sxm`.
        precision: of the operands: bf16, fp16, tf32, fp8, fp8-block (a scale for 128 elements) or fp4; by default bf16, or fp16
            where a chip has no bf16.
        implementation: whose kernel, where several were measured: vllm, sglang, tensorrt-llm, flash-attention-2 or -3.
        sustained: in the midst of long work, the clock has come down to what the power allows.
        cached: the same operands come again at once, so that small ones lie in the last-level cache.
        catalog: an open catalog, or a folder of entries to lay over the shipped one.
        shape: whole numbers: rows, columns, features and groups of a product; sequences, tokens, context_tokens, heads,
            kv_heads, head_size, window and causal of attention; tokens, hidden_size, expert_ffn_size, experts,
            experts_per_token and gated of experts; rows and columns of an elementwise operation.

    Raises InputError, with the nearest valid choice, for anything that cannot be used.

    """
    opened = Catalog.of(catalog)
    InputError.unless(on, str, "a chip is a name such as 'h100-sxm'")
    if name not in KINDS:
        raise InputError.unknown("kernel", name, KINDS)
    chip = opened.chip(on)
    kind = _on(chip, KINDS[name])
    asked = default_dtype(chip) if precision is None else precision.lower()
    held = constants_of(chip, kind.family, opened, precision=asked, implementation=implementation)
    whole = shape_of(name, kind, shape)
    given = _inputs(kind, held, sustained=sustained, cached=cached)
    values = _values(kind, given, whole)
    low_time, high_time = interval(held, values)
    bounds = {label: values[quantity] for label, quantity in kind.overlapped.items()}
    better = [] if not kind.rounded else _better(kind, given, whole, values[kind.quality])
    return KernelAnswer(
        name,
        chip.name,
        held.precision,
        held.implementation,
        whole,
        values["time"],
        low_time,
        high_time,
        values.get("work"),
        values["traffic"],
        values["rate"] if "work" in values else None,
        values.get("share_of_peak"),
        call(kernels_math.attained, {**given, **values})["share_of_bandwidth"],
        _bound(bounds, values),
        held.source[0],
        Breakdown({label: values[quantity] for label, quantity in kind.parts.items()}),
        Breakdown(bounds),
        _details(values),
        tuple(better),
        _notes(held, kind, sustained=sustained),
        main_loop(chip, {**held.assumed, **given}, values, whole) if kind is KINDS["matmul"] else None,
    )


def _on(chip: Chip, kind: Kind) -> Kind:
    """A product goes by the array on chips that have one large one, by tiles on others."""
    if kind.family == "matmul" and "matmul_unit_size" in chip.details:
        return replace(SYSTOLIC, fields=kind.fields, fixed=kind.fixed)
    return kind


def _inputs(kind: Kind, held: Kernel, *, sustained: bool, cached: bool) -> dict[str, float]:
    """All that does not depend on the shape."""
    copies = 1.0 if cached else _ALWAYS_NEW
    given = {
        **held.inputs,
        **kind.fixed,
        "weight_copies": copies,
        "cache_copies": copies,
        "array_copies": copies,
        "sublanes": held.assumed["sublanes"],
    }
    if sustained:
        given["settle_time"] = 0.0
    if kind.form is SYSTOLIC.form:
        start = held.chip.attainable.get("kernel_start")
        given["array_size"] = held.chip.details["matmul_unit_size"].value
        given["start"] = start.value if isinstance(start, Number) else held.assumed["systolic_start"]
    return given


def _values(kind: Kind, given: Mapping[str, float], shape: Mapping[str, int]) -> Mapping[str, Any]:
    return call(kind.form, {**given, **{kind.fields[key].input: value for key, value in shape.items()}})


def _better(kind: Kind, given: Mapping[str, float], shape: Mapping[str, int], share: float) -> list[Neighbour]:
    """The nearest neighbours that reach more."""
    found = []
    for near in neighbours(kind, shape):
        values = _values(kind, given, near)
        if values[kind.quality] >= share * BETTER:
            found.append(Neighbour(near, values["time"], values[kind.quality]))
    return found[:MOST_NEIGHBOURS]


def _bound(bounds: Mapping[str, float], values: Mapping[str, Any]) -> str:
    """What takes longest alone, or all that come within what is not told apart."""
    most = max(bounds.values())
    names = [name for name, value in bounds.items() if value * (1 + TIE) >= most]
    if values.get("multiply_share", 1) < 1:
        names = ["operands into the units" if name == "matrix units" else name for name in names]
    return " and ".join(names)


_DETAILS = {
    "tile": ("best_rows", "best_columns"),
    "split of K": ("best_ways",),
    "waves": ("best_waves",),
    "padding": ("padding",),
    "active experts": ("active",),
    "rows of a tile": ("best_rows",),
    "unfused over fused": ("fusion_gain",),
    "blocks a head": ("blocks",),
}


def _details(values: Mapping[str, Any]) -> dict[str, Scalar]:
    """What is worth telling of the best tile, the experts or the fusion."""
    found: dict[str, Scalar] = {}
    for label, names in _DETAILS.items():
        if label == "rows of a tile" and "tile" in found:
            continue
        if all(name in values for name in names):
            numbers = [values[name] for name in names]
            found[label] = "x".join(f"{number:g}" for number in numbers) if len(numbers) > 1 else numbers[0]
    return found


def _notes(held: Kernel, kind: Kind, *, sustained: bool) -> tuple[str, ...]:
    origin, chip = held.source
    notes = [ORIGINS[origin].format(chip=chip)]
    if kind.form is SYSTOLIC.form:
        notes = [
            "On a systolic array: both sides of the weights padded to it. No measured kernels of such chips are at hand."
        ]
    others = [name for name in held.measured_by if name != held.implementation]
    if others:
        notes.append(f"Kernels of {held.implementation}; --implementation has {', '.join(others)} too.")
    if kind.family == "matmul" and kind.form is not SYSTOLIC.form:
        notes.append(
            "In the midst of long work, at the clock that the power allows."
            if sustained
            else "A kernel at a time; in the midst of long work (--sustained) the clock comes down."
        )
    notes.append(
        "Device time of a kernel in a CUDA graph: launching it from the host may take longer, see `kernel launch`."
    )
    return tuple(notes)


__all__ = ["PEAKS", "KernelAnswer", "Neighbour", "kernel"]
