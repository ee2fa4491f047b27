"""What one layout of a training run comes to: the record that `train` and `plan` are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Price
from costmodel.generated.labels import ROWS
from costmodel.report import Breakdown, Scalar
from costmodel.search.evaluate import evaluate
from costmodel.search.layout import Layout
from costmodel.search.workload import Workload
from costmodel.studies.buckets import GradientBuckets, gradient_buckets
from costmodel.studies.economics import Failures, economics, failures, list_price
from costmodel.studies.intervals import MEMORY, StepErrors
from costmodel.studies.stages import StageMemory, stage_memory

TIME_ITEMS = {
    "matmul": "weight products",
    "attention": "attention",
    "elementwise": "norms, activations, casts, accumulation",
    "host": "waiting for launches",
    "loss": "head and loss",
    "recompute": "recomputation",
    "tp": "tensor-parallel traffic",
    "cp": "context-parallel traffic",
    "ep": "exchanges of experts",
    "fsdp": "FSDP traffic",
    "dp": "gradient and weight traffic",
    "pp": "pipeline messages",
    "bubble": "pipeline bubble",
    "optimizer": "optimizer",
    "offload": "copies to and from the host, update there",
    "other": "outside the model",
}
COMMUNICATION = ("tp", "cp", "ep", "fsdp", "dp", "pp")
MEMORY_ITEMS = {
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer": "optimizer states",
    "activations": "kept activations",
    "logits": "logits and loss",
    "buffers": "gathered weights, messages, keys of other ranks, one layer run again",
    "overhead": "workspaces of the libraries",
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is stored of each weight and logit, in bytes, under the name of the recipe that says so."""

    name: str
    weight: float
    gradient: float
    optimizer: float
    step_extra: float
    logit: float

    @classmethod
    def of(cls, name: str, values: Mapping[str, Any]) -> Recipe:
        """From the inputs of the equations."""
        kinds = ("weight", "gradient", "optimizer", "step_extra", "loss")
        return cls(name, *(values[f"{kind}_bytes"] for kind in kinds))

    def said(self) -> str:
        """In a sentence."""
        extra = f", {self.step_extra:g} more while the optimizer runs" if self.step_extra else ""
        return (
            f"memory by the recipe {self.name} (--recipe): {self.weight:g} + {self.gradient:g} + {self.optimizer:g} bytes a weight, its "
            f"gradient and its optimizer states{extra}, {self.logit:g} a logit"
        )


@dataclass(frozen=True, slots=True)
class HostUse:
    """Memory and drives of a host that a layout takes, of what there is; None where that is not known. Bytes; bytes a second.

    `needed_bytes_per_s`: what a chip needs of its host so that no copy of a layer shows, forward or backward.
    """

    used_bytes: float
    capacity_bytes: float | None
    drives_used_bytes: float
    drives_bytes: float | None
    needed_bytes_per_s: float
    left_bytes: float

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> HostUse:
        """From the quantities of a step."""
        known = {
            name: values[name] if isfinite(values[name]) else None for name in ("host_capacity", "drives_capacity")
        }
        needed = max(values["host_needed_forward"], values["host_needed_backward"])
        return cls(
            values["host_used"],
            known["host_capacity"],
            values["drives_used"],
            known["drives_capacity"],
            needed,
            values["host_left"],
        )

    def figures(self) -> dict[str, Scalar]:
        """By the names of CSV and JSON."""
        return {
            "host_used_bytes": self.used_bytes,
            "host_capacity_bytes": self.capacity_bytes,
            "host_drives_used_bytes": self.drives_used_bytes,
            "host_bandwidth_needed_bytes_per_s": self.needed_bytes_per_s,
        }


@dataclass(frozen=True, slots=True)
class Estimate:
    """One layout: time and memory item by item, and what the run takes. Seconds, bytes, dollars, joules.

    `bounds` are the 80 % intervals of step time and memory, by the names of CSV and JSON; `errors` the classes that they follow.
    """

    model: str
    on: str
    chip: str
    chips: int
    layout: Layout
    dtype: str
    software: str
    sequence_length: int
    global_batch: int
    multi_token_prediction: int
    """Modules that predict further tokens, which are trained too."""
    step_time_s: float
    step_time_overlapped_s: float
    step_time_serial_s: float
    errors: StepErrors
    bounds: Breakdown
    time: Breakdown
    communication: Breakdown
    memory: Breakdown
    worst_stage: str
    worst_phase: str
    recipe: Recipe
    allocated_bytes: float
    reserved_bytes: float
    device_used_bytes: float
    memory_ranges: Breakdown
    capacity_bytes: float
    margin_bytes: float
    host: HostUse
    stages: tuple[StageMemory, ...]
    fits: str
    tokens_per_s: float
    chip_flops_per_s: float
    peak_flops_per_s: float
    mfu: float
    mfu_causal: float
    hfu: float
    train_tokens: int
    steps: int
    run_time_s: float
    chip_time_s: float
    cost_usd: float
    energy_j: float
    failures: Failures
    buckets: GradientBuckets | None
    price: Price | None

    def record(self) -> dict[str, Scalar]:
        """The estimate as one flat row, units in the names."""
        return {
            "model": self.model,
            "on": self.on,
            "chip": self.chip,
            "chips": self.chips,
            "layout": str(self.layout),
            "tp": self.layout.tp,
            "cp": self.layout.cp,
            "pp": self.layout.pp,
            "dp": self.layout.dp,
            "ep": self.layout.ep,
            "etp": self.layout.etp,
            "virtual_stages": self.layout.virtual_stages,
            "micro_batch_size": self.layout.micro_batch_size,
            "zero": self.layout.zero,
            "shard": self.layout.shard,
            "sequence_parallel": int(self.layout.sequence_parallel),
            "cp_type": self.layout.cp_type,
            "recompute": self.layout.recompute,
            "schedule": self.layout.schedule,
            "offload": self.layout.offload,
            "placement": self.layout.placement,
            "sequence_length": self.sequence_length,
            "global_batch_sequences": self.global_batch,
            "global_batch_tokens": self.global_batch * self.sequence_length,
            **self._figures(),
            **{f"time_{item}_s": seconds for item, seconds in self.time.items()},
            **{f"total_{item}_s": seconds for item, seconds in self.communication.items()},
            **{f"memory_{item}_bytes": size for item, size in self.memory.items()},
            "worst_stage": self.worst_stage,
            "worst_phase": self.worst_phase,
            "multi_token_prediction": self.multi_token_prediction,
        }

    def result(self) -> dict[str, object]:
        """The estimate as scripts take it: `time` adds up to the step, `memory` to what is allocated."""
        return {
            "model": self.model,
            "on": self.on,
            "chip": self.chip,
            "chips": self.chips,
            "layout": str(self.layout),
            "sequence_length": self.sequence_length,
            "global_batch": self.global_batch,
            "multi_token_prediction": self.multi_token_prediction,
            **self._figures(),
            "time": dict(self.time),
            "communication": dict(self.communication),
            "memory": dict(self.memory),
            "gradient_buckets": self.buckets.figures() if self.buckets else None,
            "worst_stage": self.worst_stage,
            "worst_phase": self.worst_phase,
            "stages": [stage.result() for stage in self.stages],
        }

    def items(self) -> list[dict[str, Scalar]]:
        """One row an item of time and of memory."""
        who: dict[str, Scalar] = {"model": self.model, "on": self.on, "layout": str(self.layout)}
        times = [
            {**who, "kind": "time", "item": name, "value": value, "unit": "s"} for name, value in self.time.items()
        ]
        sizes = [
            {**who, "kind": "memory", "item": name, "value": value, "unit": "bytes"}
            for name, value in self.memory.items()
        ]
        return times + sizes

    def _figures(self) -> dict[str, Scalar]:
        return {
            "step_time_s": self.step_time_s,
            "step_time_low_s": self.bounds["step_time_p10_s"],
            "step_time_high_s": self.bounds["step_time_p90_s"],
            "step_time_overlapped_s": self.step_time_overlapped_s,
            "step_time_serial_s": self.step_time_serial_s,
            **self.bounds,
            "error_class": self.errors.time.name,
            "tokens_per_s": self.tokens_per_s,
            "chip_flops_per_s": self.chip_flops_per_s,
            "mfu": self.mfu,
            "mfu_causal": self.mfu_causal,
            "hfu": self.hfu,
            "dtype": self.dtype,
            "recipe": self.recipe.name,
            "allocated_bytes": self.allocated_bytes,
            "reserved_bytes": self.reserved_bytes,
            "device_used_bytes": self.device_used_bytes,
            **self.memory_ranges,
            "capacity_bytes": self.capacity_bytes,
            "margin_bytes": self.margin_bytes,
            **self.host.figures(),
            "fits": self.fits,
            "train_tokens": self.train_tokens,
            "steps": self.steps,
            "run_time_s": self.run_time_s,
            "chip_time_s": self.chip_time_s,
            "cost_usd": self.cost_usd,
            "energy_j": self.energy_j,
            **self.failures.figures(),
            "price_provider": self.price.provider if self.price else None,
            "price_usd_per_chip_hour": self.price.usd_per_chip_hour.value if self.price else None,
            "price_date": self.price.usd_per_chip_hour.date if self.price else None,
        }


def estimate(workload: Workload, layout: Layout, catalog: Catalog, train_tokens: int) -> Estimate:
    """What a layout comes to. Raises InputError for a placement that the machine does not have; rules are not checked."""
    machine = workload.machine
    values = evaluate(workload, layout, catalog)
    low, high = (evaluate(workload, layout, catalog, overlap) for overlap in ("perfect", "none"))
    price = list_price(machine.cluster.prices)
    run = economics(workload, values, catalog, train_tokens, price)
    stage, phase = _worst(values)
    errors = StepErrors.of(workload, catalog)
    return Estimate(
        model=workload.model.name,
        on=machine.name_as_typed if machine.slices == 1 else f"{machine.name_as_typed} x {machine.slices} slices",
        chip=machine.chip.name,
        chips=machine.chips,
        layout=layout,
        dtype=workload.dtype,
        software=workload.software.said(machine.chip),
        sequence_length=workload.sequence_length,
        global_batch=workload.global_batch,
        multi_token_prediction=workload.multi_token_modules,
        step_time_s=values["step_time"],
        step_time_overlapped_s=low["step_time"],
        step_time_serial_s=high["step_time"],
        errors=errors,
        bounds=Breakdown(errors.bounds(values["step_time"], {name: values[name] for name in MEMORY})),
        time=Breakdown({item: values[f"time_{item}"] for item in TIME_ITEMS}),
        communication=Breakdown({item: values[f"total_{item}"] for item in COMMUNICATION}),
        memory=Breakdown({item: values[f"memory_{item}"] for item in MEMORY_ITEMS}),
        worst_stage=stage,
        worst_phase=phase,
        recipe=Recipe.of(workload.recipe_name, values),
        memory_ranges=Breakdown(
            {
                f"{quantity}_{end}_bytes": found[quantity]
                for quantity in MEMORY
                for end, found in (("low", low), ("high", high))
            }
        ),
        allocated_bytes=values["allocated"],
        reserved_bytes=values["reserved"],
        device_used_bytes=values["device_used"],
        capacity_bytes=values["memory_capacity"],
        margin_bytes=values["margin"],
        host=HostUse.of(values),
        stages=stage_memory(values),
        fits=_fits(values),
        tokens_per_s=values["tokens_per_second"],
        chip_flops_per_s=values["chip_rate"],
        peak_flops_per_s=values["peak"],
        mfu=values["mfu"],
        mfu_causal=values["mfu_causal"],
        hfu=values["hfu"],
        train_tokens=train_tokens,
        steps=int(run["steps"]),
        run_time_s=run["run_time"],
        chip_time_s=run["chip_time"],
        cost_usd=run["cost"],
        energy_j=run["energy"],
        failures=failures(run),
        buckets=gradient_buckets(workload, layout, values, catalog),
        price=price,
    )


def _fits(values: Mapping[str, Any]) -> str:
    """The verdict: by the memory of the chip, and no where a host cannot keep what it should."""
    if values["host_left"] < 0 or values["overflow"] > 0:
        return "no"
    return "yes" if values["margin"] >= 0 else "marginal"


def _worst(values: Mapping[str, Any]) -> tuple[str, str]:
    """Names of the stage and the phase with the most memory; one stage alone is `only`."""
    stages, phases = ROWS["stage"], ROWS["phase"]
    stage = max(range(len(stages)), key=lambda i: values["stage_peak"][i])
    phase = max(range(len(phases)), key=lambda i: values["memory_use"][stage][i])
    return (stages[stage] if values["pp"] > 1 else "only"), phases[phase]


__all__ = ["COMMUNICATION", "MEMORY_ITEMS", "TIME_ITEMS", "Estimate", "estimate"]
