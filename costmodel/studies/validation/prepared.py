"""A published run as the study of `train` takes it: a question, a layout, and every quantity of the step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Number
from costmodel.errors import InputError
from costmodel.generated import published_math
from costmodel.runtime import call
from costmodel.search.evaluate import inputs, math_module
from costmodel.search.layout import Layout, parse_layout
from costmodel.search.placing import written_out
from costmodel.search.precision import ALIASES, HALF, PRECISIONS
from costmodel.search.recomputation import recomputation
from costmodel.search.workload import Workload
from costmodel.studies.question import ask
from costmodel.studies.validation import assumed
from costmodel.studies.validation.machines import Machines, Place
from costmodel.studies.validation.rows import UnreadError
from costmodel.studies.validation.runs import PublishedRun
from costmodel.studies.validation.shapes import Shapes
from costmodel.topology.machine import Machine

MANY_SEQUENCES = 8
"""Sequences of a replica from which gradients are taken to be accumulated where the micro-batch is not stated."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that is specified enough: its workload and layout, what was assumed, and the quantities of the equations."""

    run: PublishedRun
    workload: Workload
    layout: Layout
    assumed: tuple[str, ...]
    values: Mapping[str, Any]

    @property
    def strategy(self) -> str:
        """The axes that it is spread over, in the order of the grammar: tp+pp+dp, fsdp."""
        layout = self.layout
        axes = [axis for axis in ("tp", "cp", "pp") if getattr(layout, axis) > 1]
        experts = ["ep"] if self.run.ep > 1 else []
        data = ["fsdp" if layout.zero == 3 else "dp"] if layout.dp > 1 else []
        return "+".join([*axes, *experts, *data]) or "one chip"


class Preparing:
    """Everything that the rows of a table share: models, machines, constants."""

    def __init__(self, catalog: Catalog, models: Path | None) -> None:
        """Raises InputError for a file of models that cannot be read."""
        self.catalog = _Remembering(catalog)
        self.shapes = Shapes(self.catalog, models)
        self.machines = Machines(self.catalog)
        self.constants = self.catalog.assumptions(assumed.ASSUMPTIONS_FILE)

    def prepare(self, run: PublishedRun, *, for_memory: bool = False) -> Prepared:
        """The run as a question. Raises InputError with the reason for one that is not specified enough, or not modelled.

        For memory alone, products in 8 bits are taken as those in 16: what is kept of a layer is the same.
        """
        if "one-layer" in run.traits:
            raise UnreadError("not a training step but one layer")
        for name, value in (
            ("chips", run.chips),
            ("sequence length", run.sequence_length),
            ("batch", run.global_batch),
        ):
            if value is None:
                raise UnreadError(f"the {name} is not stated")
        if run.tp is None and run.pp is None and run.dp is None:
            raise UnreadError("the layout is not stated")
        taken: list[str] = []
        model = self.shapes.model(run.model)
        chip = self.machines.chip(run.chip)
        machine = self.machines.at(
            Place(
                chip,
                run.chips or 0,
                run.chips_per_node,
                run.network.chip_gbytes_per_s,
                run.network.slices,
                run.network.slice_named,
            )
        )
        if for_memory and "fp4" in run.precision:
            raise UnreadError("what products in 4 bits keep")
        dtype = "bf16" if for_memory and "fp8" in run.precision else _dtype(run, machine, taken)
        question = ask(
            model,
            machine,
            self.catalog,
            sequence_length=run.sequence_length,
            batch=run.global_batch,
            tokens=1,
            dtype=dtype,
            recipe=assumed.recipe(run, dtype),
            software=assumed.software(run),
        )
        workload = question.with_sequences(run.global_batch or 0)
        layout = self._layout(run, machine, taken)
        values = self._evaluate(workload, layout)
        if (
            not run.recompute
            and "offload" not in run.traits
            and values["allocated"] > self.constants["full_recompute_limit"].value * values["memory_capacity"]
        ):
            taken.append("recomputation unstated: full, or the tensors would not fit")
            layout = replace(layout, recompute="full")
            values = self._evaluate(workload, layout)
        elif not run.recompute:
            taken.append(f"recomputation unstated: {layout.recompute}")
        broken = [
            math_module(workload).MEANING[name]
            for name, value in values.items()
            if name.startswith("rule_") and value <= 0
        ]
        if broken:
            raise UnreadError(f"an illegal layout: {broken[0]}")
        return Prepared(run, workload, layout, tuple(taken), values)

    def _evaluate(self, workload: Workload, layout: Layout) -> Mapping[str, Any]:
        return call(math_module(workload).evaluate, inputs(workload, layout, self.catalog))

    def _layout(self, run: PublishedRun, machine: Machine, taken: list[str]) -> Layout:
        chips = run.chips or 0
        tp, pp, cp = run.tp or 1, run.pp or 1, run.cp
        if chips % (tp * pp * cp):
            raise UnreadError(f"tp {tp} x cp {cp} x pp {pp} does not divide the {chips} chips")
        dp = chips // (tp * pp * cp)
        chunks, schedule = _schedule(run, taken)
        size = _micro_batch(run, dp, chips, taken)
        zero = _zero(run, dp * cp, taken)
        parts = [
            f"tp={tp} pp={pp} dp={dp} v={chunks} mbs={size} zero={zero}",
            f"sp={int(_sequence_parallel(run, tp))} recompute={_recompute(run, taken)}",
            f"schedule={schedule}" if schedule else "",
            f"cp={cp} cp_type={_context(run, machine)}" if cp > 1 else "",
            f"shard={run.shard_group}" if zero and 0 < run.shard_group < dp * cp else "",
            f"ep={run.ep}" if run.ep > 1 else "",
        ]
        placement = "best" if machine.is_torus else ""
        layout = parse_layout(" ".join(parts), chips, placement)
        if not machine.is_torus:
            return layout
        return written_out(self._for_placement(run, machine), layout, self.catalog)

    def _for_placement(self, run: PublishedRun, machine: Machine) -> Workload:
        """The workload by which placements are compared."""
        dtype = HALF[0]
        return Workload(
            machine, self.shapes.model(run.model), run.sequence_length or 0, run.global_batch or 0, dtype, ""
        )


class _Remembering(Catalog):
    """A catalog that reads each file of constants once: thousands of rows ask for the same."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog.shipped_hardware, catalog.shipped_models, catalog.extra)
        self._constants_of = lru_cache(maxsize=None)(super()._constants)

    def _constants(self, kind: str, said: str, name: str) -> Mapping[str, Number]:
        return self._constants_of(kind, said, name)


def _dtype(run: PublishedRun, machine: Machine, taken: list[str]) -> str:
    """The precision by the names of the product."""
    if not run.precision:
        taken.append("precision unstated: bf16")
        return "bf16"
    if run.precision == "16-bit":
        return "fp16" if machine.chip.name.startswith(("a100", "v100")) else "bf16"
    name = ALIASES.get(run.precision, run.precision)
    if name not in PRECISIONS:
        raise UnreadError(f"precision {run.precision}")
    return name


def _schedule(run: PublishedRun, taken: list[str]) -> tuple[int, str]:
    """Chunks of a stage, and the schedule as a word of the layout; empty for the default of the chunks."""
    chunks = run.virtual_stages
    if run.schedule == "dualpipe":
        return 1, "dualpipe"
    if (run.pp or 1) == 1:
        return 1, ""
    if chunks is None:
        chunks = 2 if run.schedule == "interleaved" else 1
        taken.append(f"chunks of a stage unstated: {chunks}")
    return chunks, "" if run.schedule in {"", "1f1b", "interleaved"} else run.schedule


def _micro_batch(run: PublishedRun, dp: int, chips: int, taken: list[str]) -> int:
    batch, stated = run.global_batch or 0, run.micro_batch
    if stated is None:
        each = batch / dp
        size = 1 if (run.pp or 1) > 1 or each >= MANY_SEQUENCES else max(1, round(each))
        taken.append(f"micro-batch unstated: {size}")
        return size
    if re.search("maxtext", run.framework, re.IGNORECASE):
        # MaxText prints sequences of a device, which hold a part of a replica's.
        accumulated = batch / (stated * chips)
        if accumulated >= 1 and accumulated == int(accumulated) and batch % (dp * int(accumulated)) == 0:
            return batch // (dp * int(accumulated))
    if stated != int(stated):
        raise UnreadError(f"a micro-batch of {stated:g} sequences")
    return int(stated)


def _zero(run: PublishedRun, replicas: int, taken: list[str]) -> int:
    if replicas == 1:
        return 0
    if run.zero:
        return int(run.zero)
    zero = 0 if "before-2023" in run.traits else 1
    taken.append(f"sharding unstated: zero={zero}")
    return zero


def _sequence_parallel(run: PublishedRun, tp: int) -> bool:
    if tp == 1:
        return False
    if run.sequence_parallel:
        return run.sequence_parallel == "on"
    return "before-2023" not in run.traits


def _context(run: PublishedRun, machine: Machine) -> str:
    ring = re.search(r"megatron|nemo|torchtitan", run.framework, re.IGNORECASE) is not None
    return "ring" if ring and not machine.is_torus else "all-gather"


def _recompute(run: PublishedRun, taken: list[str]) -> str:
    """The words of the layout for what is run again. Raises UnreadError for what no layout expresses."""
    stated = run.recompute
    if stated == "selective-default":
        if run.hfu_percent and run.mfu_percent:
            stated = _share_rerun(run.hfu_percent / run.mfu_percent)
            taken.append(f"recomputation by HFU over MFU: {stated}")
        else:
            stated = "selective" if _is_torchtitan(run) else "attention"
    if not stated:
        return "selective" if _is_torchtitan(run) else "none"
    try:
        return str(recomputation(stated))
    except InputError:
        raise UnreadError(f"recomputation of {stated}") from None


def _is_torchtitan(run: PublishedRun) -> bool:
    return "torchtitan" in run.framework.lower()


def _share_rerun(ratio: float) -> str:
    """What is run again, by hardware over model FLOPs: the kind of recomputation that is nearest to the share of the forward pass."""
    share = published_math.printed_utilisation(hfu_over_mfu=ratio)["rerun_share"]
    every = next((n for n in range(1, 9) if share >= 2 / (2 * n + 1)), 0)
    return "none" if not every else "full" if every == 1 else f"full/{every}"


__all__ = ["InputError", "Prepared", "Preparing"]
