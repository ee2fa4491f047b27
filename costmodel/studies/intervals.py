"""The 80 % interval of a prediction: which class of error it is of, and the bounds by the factors of that class.

The factors are the tenth and the ninetieth percentile of measured over predicted in published rows; scripts/fit_intervals.py writes
them into hardware/assumptions/errors-*.yaml. A class with too few rows is not there, and a wider one stands in for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Chip, Number
from costmodel.errors import InputError
from costmodel.generated import intervals_math
from costmodel.runtime import call
from costmodel.search.precision import HALF
from costmodel.search.workload import Workload
from costmodel.topology.libraries import NONE

CLASSES: Mapping[str, Mapping[str, str]] = {
    "training": {
        "dense_16_bits": "steps of dense models in 16 bits on GPUs",
        "dense_8_or_4_bits": "steps of dense models in 8 or 4 bits on GPUs",
        "tpu": "steps of dense models on TPUs",
        "experts": "steps of models with experts",
        "measured": "steps on chips with measured training",
        "unmeasured_experts": "steps of models with experts on chips without measured training",
        "unmeasured": "steps on chips without measured training",
    },
    "memory": {
        "allocated_dense": "memory of tensors, dense models",
        "allocated_experts": "memory of tensors, models with experts",
        "reserved": "memory that the allocator holds",
        "device_used": "memory that the device reports",
        "between_steps": "memory of tensors between steps",
        "any": "memory of whichever quantity",
    },
    "collectives": {
        "in_node_small": "collectives in a fast domain, to 64 KiB",
        "in_node_medium": "collectives in a fast domain, to 16 MiB",
        "in_node_large": "collectives in a fast domain, larger",
        "over_nodes_small": "collectives over several fast domains, to 64 KiB",
        "over_nodes_medium": "collectives over several fast domains, to 16 MiB",
        "over_nodes_large": "collectives over several fast domains, larger",
        "over_nodes": "collectives over several fast domains",
        "torus": "collectives on a torus",
        "small": "collectives to 64 KiB",
        "medium": "collectives to 16 MiB",
        "large": "collectives of more than 16 MiB",
        "links_small": "collectives to 64 KiB, by the links alone",
        "links_medium": "collectives to 16 MiB, by the links alone",
        "links_large": "collectives of more than 16 MiB, by the links alone",
    },
}
"""The classes of each kind of measurement, in words."""
SMALL, MEDIUM = 2**16, 2**24
"""Bytes up to which a payload is small, or medium."""
MEMORY_CHIPS = "nvidia"
"""All readings of memory are of chips of this vendor."""
MEMORY = ("allocated", "reserved", "device_used")
"""The quantities of memory that a layout is told with."""
PERCENTILES = ("p10", "p90")
ENDS = ("low", "high", "rows")
"""What stands in a file for each class: the two factors, and how many rows they are of."""


@dataclass(frozen=True, slots=True)
class ErrorClass:
    """The class that a prediction is of, with its factors on what is predicted: `name` is the first of `names` that has any."""

    kind: str
    name: str
    names: tuple[str, ...]
    low: float
    high: float
    rows: int

    def said(self) -> str:
        """In a sentence."""
        words = CLASSES[self.kind]
        instead = "" if self.name == self.names[0] else f", for want of rows of {words[self.names[0]]}"
        return (
            f"{words[self.name]}: {self.low:.3g} to {self.high:.3g} times as predicted in {self.rows:,} rows{instead}"
        )

    def inputs(self, seconds: float) -> dict[str, float]:
        """Those of the equations of a time, seconds."""
        return {"time": seconds, "low": self.low, "high": self.high}

    def time(self, seconds: float) -> tuple[float, float]:
        """The bounds of a time, seconds."""
        return _ends(call(intervals_math.time_interval, self.inputs(seconds)))

    def size(self, size: float) -> tuple[float, float]:
        """The bounds of a quantity of memory, bytes."""
        return _ends(call(intervals_math.size_interval, {"size": size, "low": self.low, "high": self.high}))

    def rate(self, rate: float) -> tuple[float, float]:
        """The bounds of a rate whose time the factors are of, bytes a second."""
        return _ends(call(intervals_math.rate_interval, {"rate": rate, "low": self.low, "high": self.high}))


def _ends(found: Mapping[str, float]) -> tuple[float, float]:
    return found["p10"], found["p90"]


def error_class(kind: str, names: Sequence[str], catalog: Catalog) -> ErrorClass:
    """The first of the classes, the narrowest first, that has factors. Raises InputError where the catalog has none of them."""
    known = _factors(kind, catalog)
    for name in names:
        if all(f"{name}_{end}" in known for end in ENDS):
            low, high, rows = (known[f"{name}_{end}"].value for end in ENDS)
            return ErrorClass(kind, name, tuple(names), low, high, int(rows))
    raise InputError(
        f"the catalog has no errors of {CLASSES[kind][names[-1]]}: errors-{kind}.yaml says how they are written"
    )


@lru_cache(maxsize=64)
def _factors(kind: str, catalog: Catalog) -> Mapping[str, Number]:
    return catalog.assumptions(f"errors-{kind}")


@dataclass(frozen=True, slots=True)
class StepErrors:
    """The classes of error of a training step: of its time, and of each quantity of memory."""

    time: ErrorClass
    memory: tuple[tuple[str, ErrorClass], ...]

    @classmethod
    def of(cls, workload: Workload, catalog: Catalog) -> StepErrors:
        """Those of a model on a machine; layouts of one model are all of the same classes."""
        chip, experts = workload.machine.chip, workload.model.experts is not None
        return cls(
            error_class("training", of_step(chip, workload.dtype, experts=experts), catalog),
            tuple((name, error_class("memory", of_memory(name, chip, experts=experts), catalog)) for name in MEMORY),
        )

    def bounds(self, step_time_s: float, sizes: Mapping[str, float]) -> Mapping[str, float]:
        """All bounds, seconds and bytes, by the names of CSV and JSON."""
        ends = {("step_time", "s"): self.time.time(step_time_s)}
        ends |= {(name, "bytes"): found.size(sizes[name]) for name, found in self.memory if name in sizes}
        return {
            f"{name}_{end}_{unit}": value
            for (name, unit), two in ends.items()
            for end, value in zip(PERCENTILES, two, strict=True)
        }


def of_step(chip: Chip, dtype: str, *, experts: bool) -> tuple[str, ...]:
    """The classes of a training step."""
    if not trained_on(chip):
        return ("unmeasured_experts", "unmeasured") if experts else ("unmeasured",)
    if experts:
        return "experts", "measured"
    if chip.kind == "tpu":
        return "tpu", "measured"
    return ("dense_16_bits" if dtype in HALF else "dense_8_or_4_bits"), "measured"


def trained_on(chip: Chip) -> bool:
    """Whether training was measured on the chip or its like, so that its share in training is more than a guess."""
    share = chip.attainable.get("training_matmul")
    return isinstance(share, Number) and share.confidence != "guess"


def of_memory(quantity: str, chip: Chip, *, experts: bool) -> tuple[str, ...]:
    """The classes of a quantity of memory: allocated, reserved, device_used or between_steps."""
    if chip.vendor != MEMORY_CHIPS:
        return ("any",)
    if quantity == "allocated":
        quantity = "allocated_experts" if experts else "allocated_dense"
    return quantity, "any"


def of_collective(payload: float, library: str, *, torus: bool, domains: float) -> tuple[str, ...]:
    """The classes of a collective of `payload` bytes that spans so many fast domains, run by a library or by the links alone."""
    size = "small" if payload <= SMALL else "medium" if payload <= MEDIUM else "large"
    if library == NONE:
        return (f"links_{size}",)
    if domains > 1:
        return f"over_nodes_{size}", "over_nodes", size
    return ("torus", size) if torus else (f"in_node_{size}", size)
