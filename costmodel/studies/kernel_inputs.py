"""What the equations of single kernels are given: of the chip, its measured constants or what stands in for them, and the precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Chip, Number
from costmodel.catalog.kernels import FAMILIES
from costmodel.errors import InputError
from costmodel.generated import kernels_math
from costmodel.runtime import call

Origin = Literal["measured", "sister", "usual"]
PEAKS = {"bf16": "bf16", "fp16": "fp16", "tf32": "tf32", "fp8": "fp8", "fp8-block": "fp8", "fp4": "fp4"}
"""The peak that each precision of a product has: `fp8` scaled by row or tensor, `fp8-block` by blocks of 128."""

SIXTEEN_BITS = ("bf16", "fp16")
IN_SIXTEEN_BITS = ("prefill", "decode", "backward")
"""Kernels whose forms were held to measurements in 16 bits alone."""

PASSES_BETWEEN = ("experts",)
"""Kernels whose traffic counts passes between products, which could stay on the chip."""

_MEASURED_AS = {"fp16": "bf16"}
_ANY_CACHE = 1.0
"""Bytes of cache where a chip's file has none: nothing fits in."""

IMPLEMENTATIONS = {
    "prefill": ("vllm", "sglang", "tensorrt-llm", "flash-attention-3", "flash-attention-2"),
    "decode": ("vllm", "sglang"),
    "backward": ("flash-attention-2",),
    "experts": ("vllm", "tensorrt-llm", "sglang"),
}
"""Whose kernels were measured, the first of them taken where none is named."""


@dataclass(frozen=True)
class Kernel:
    """A kind of kernel on a chip: the constants that the equations need of both."""

    chip: Chip
    family: str
    precision: str
    implementation: str
    catalog: Catalog

    @cached_property
    def name(self) -> str:
        """What its constants are called in a chip's file."""
        precision = _MEASURED_AS.get(self.precision, self.precision)
        parts = {"matmul": [precision], "experts": [precision, self.implementation], "stream": []}
        return "-".join([self.family, *parts.get(self.family, [self.implementation])])

    @cached_property
    def source(self) -> tuple[Origin, str]:
        """Where the constants come from: this chip's kernels, a sister's, or usual values; and the chip's name."""
        own = self.catalog.kernels(self.chip.name)
        if self.name in own.kernels:
            return "measured", self.chip.name
        if own.kernels_of and self.name in self.catalog.kernels(own.kernels_of).kernels:
            return "sister", own.kernels_of
        return "usual", ""

    @cached_property
    def measured_by(self) -> tuple[str, ...]:
        """The implementations whose kernels were measured on this chip or its sister."""
        known = IMPLEMENTATIONS.get(self.family, ())
        return tuple(name for name in known if replace(self, implementation=name).source[0] != "usual")

    @cached_property
    def constants(self) -> Mapping[str, float]:
        """Those of the kernel itself, by the names of the equations' inputs, with `low` and `high` of the interval."""
        origin, chip = self.source
        if origin == "usual":
            return self._usual()
        held = {name: number.value for name, number in self.catalog.kernels(chip).kernels[self.name].items()}
        near = {end: self.assumed[end] if origin == "sister" else 1.0 for end in ("near_low", "near_high")}
        return {**held, **near}

    @cached_property
    def assumed(self) -> Mapping[str, float]:
        """The constants that hold for every chip."""
        return {name: number.value for name, number in self.catalog.assumptions("kernels").items()}

    @cached_property
    def inputs(self) -> Mapping[str, float]:
        """All that does not depend on the shape. Raises InputError for a precision that the chip lacks."""
        cache = self.chip.details.get("last_level_cache_capacity", self.chip.details.get("l2_capacity"))
        return {
            **{
                name: self.assumed[name]
                for name in ("settle_time", "step_features", "cache_reach", "column_tile", "backward_factor")
            },
            **self.constants,
            **precision_inputs(self.precision, self.assumed),
            "sustained_share": self.chip.attainable["sustained"].value,
            "peak": peak(self.chip, self.precision),
            "memory_bandwidth": self.chip.memory_bandwidth.value,
            "units": units(self.chip),
            "cache_capacity": cache.value if isinstance(cache, Number) else _ANY_CACHE,
        }

    def _usual(self) -> dict[str, float]:
        """Shares of the chip's own file, and the rest as on the chips that were measured."""
        found = {
            name: self.assumed[f"{self.family}_{name}"]
            for name in FAMILIES[self.family]
            if f"{self.family}_{name}" in self.assumed
        }
        attainable = self.chip.attainable
        cached = attainable.get("cached_speedup")
        found["cached_speedup"] = cached.value if isinstance(cached, Number) else self.assumed["cached_speedup"]
        if self.family in {"matmul", "experts"}:
            low = {"fp8": "_fp8", "fp8-block": "_fp8", "fp4": "_fp4"}.get(self.precision, "")
            share = attainable.get(f"kernel_matmul{low}", attainable["kernel_matmul"]).value
            if low and self.family == "matmul":
                found |= {name: self.assumed[f"matmul_narrow_{name}"] for name in ("start", "low", "high")}
            found |= {"peak_share": share, "memory_share": attainable["kernel_memory_bandwidth"].value}
            needs = {**self.assumed, **precision_inputs(self.precision, self.assumed), "units": units(self.chip)}
            typical = call(
                kernels_math.typical_unit, needs | {"peak": peak(self.chip, self.precision), "peak_share": share}
            )
            found["unit_bandwidth"] = typical["unit_bandwidth"]
        if self.family in {"prefill", "backward"}:
            rate = attainable["attention_exponentials"]
            found |= {
                "peak_share": attainable["attention_matmul"].value,
                # Where the rate of exponentials was not measured apart, the share of peak includes them.
                "exponential_rate": rate.value if isinstance(rate, Number) else float("inf"),
                **{name: self.assumed[f"prefill_{name}"] for name in ("start", "row_start", "block_tokens")},
            }
            found |= call(
                kernels_math.typical_streams,
                {"usual_share": self.assumed["prefill_memory_share"], "cached_speedup": found["cached_speedup"]},
            )
        plain = {"wave_fill": 0.0, "whole_waves": 0.0, "near_low": 1.0, "near_high": 1.0}
        return {**plain, **found}


def interval(held: Kernel, values: Mapping[str, float]) -> tuple[float, float]:
    """The bounds of the time of a kernel, seconds, whose equations gave these values."""
    streamed = 0.0 if held.family in PASSES_BETWEEN else values["traffic"]
    told = {"time": values["time"], "work": values.get("work", 0.0), "streamed": streamed}
    found = call(kernels_math.interval, {**held.inputs, **told})
    return found["low_time"], found["high_time"]


def kernel(
    chip: Chip, family: str, catalog: Catalog, *, precision: str = "bf16", implementation: str | None = None
) -> Kernel:
    """A kernel of one of the families of a chip's file; raises InputError for a precision or implementation that is none."""
    if precision not in PEAKS:
        raise InputError.unknown("precision of a kernel", precision, PEAKS)
    if family in IN_SIXTEEN_BITS and precision not in SIXTEEN_BITS:
        raise InputError.unknown(f"precision of {family} kernels", precision, SIXTEEN_BITS)
    peak(chip, precision)
    known = IMPLEMENTATIONS.get(family, ("",))
    if implementation is not None and implementation not in known:
        raise InputError.unknown(f"implementation of {family} kernels", implementation, known)
    chosen = [implementation] if implementation is not None else [*known]
    tried = [Kernel(chip, family, precision, each, catalog) for each in chosen]
    return next((each for each in tried if each.source[0] != "usual"), tried[0])


def peak(chip: Chip, precision: str) -> float:
    """Dense peak at a precision; raises InputError with those that the chip has."""
    held = [name for name, dtype in PEAKS.items() if isinstance(chip.peak.get(dtype), Number)]
    if precision not in held:
        raise InputError.unknown(f"precision of {chip.name}", precision, held)
    return chip.peak[PEAKS[precision]].value


def units(chip: Chip) -> float:
    """Streaming multiprocessors, compute units or cores; raises InputError where the chip's file does not say."""
    if "compute_units" not in chip.details:
        raise InputError(f"the catalog does not say how many compute units {chip.name} has, which kernels need")
    return chip.details["compute_units"].value


def precision_inputs(precision: str, assumed: Mapping[str, float]) -> dict[str, float]:
    """Bytes of elements at a precision."""
    name = precision.replace("-", "_")
    return {
        "operand_size": assumed[f"operand_bytes_{name}"],
        "result_size": assumed["result_bytes"],
        "cast_size": assumed.get(f"cast_bytes_{name}", 0.0),
        "weight_size": assumed[f"operand_bytes_{name}"],
        "activation_size": assumed["result_bytes"],
        "element_size": assumed["result_bytes"],
        "kv_element_size": assumed["result_bytes"],
        "narrow_size": assumed["operand_bytes_fp8"],
    }
