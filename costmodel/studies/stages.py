"""What each kind of pipeline stage holds on a chip, item by item, in each phase of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from costmodel.generated.labels import ROWS
from costmodel.report import Breakdown, Table, human

PHASES = ROWS["phase"]
ITEMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "weights": ("parameters", ("stage",)),
    "gradients": ("gradients", ("stage",)),
    "optimizer": ("optimizer states", ("stage",)),
    "step_extra": ("held while the optimizer runs", ("stage", "phase")),
    "activations": ("kept activations", ("stage", "phase")),
    "logits": ("logits and loss", ("stage", "phase")),
    "gathered": ("gathered weights, gradients not scattered", ("stage", "phase")),
    "messages": ("messages between stages", ("stage", "phase")),
    "working": ("of the layer that is run", ("phase",)),
}
"""Quantities `stage_...` of the equations: what people call them, and the axes that they run over."""
MOMENTS = {
    "forward": "in the forward pass",
    "loss": "at the loss",
    "backward": "in the backward pass",
    "optimizer": "in the optimizer step",
}


@dataclass(frozen=True, slots=True)
class StageMemory:
    """One kind of stage: its layers, micro-batches in flight, and bytes by phase and item, workspaces of libraries apart."""

    stage: str
    layers: float
    modules: int
    """Modules that predict further tokens."""
    in_flight: float
    phases: tuple[Breakdown, ...]
    """In the order of `PHASES`."""
    allocated: Breakdown
    """By phase."""

    @property
    def fullest(self) -> str:
        """The phase with the most."""
        return max(self.allocated, key=lambda phase: self.allocated[phase])

    def result(self) -> dict[str, object]:
        """As scripts take it; each phase adds up to its `allocated_bytes` but for `workspaces_bytes`."""
        return {
            "stage": self.stage,
            "layers": self.layers,
            "multi_token_prediction": self.modules,
            "in_flight": self.in_flight,
            "fullest_phase": self.fullest,
            "phases": {
                phase: {"allocated_bytes": self.allocated[phase], **items}
                for phase, items in zip(PHASES, self.phases, strict=True)
            },
        }


def stage_memory(values: Mapping[str, Any]) -> tuple[StageMemory, ...]:
    """Every kind of stage that a pipeline has, in its order; one alone is `only`."""
    stages = ROWS["stage"]
    kinds = {0: "only"} if values["pp"] <= 1 else {i: stages[i] for i in range(3) if values["stage_layers"][i] > 0}
    return tuple(_stage(values, number, name) for number, name in kinds.items())


def _stage(values: Mapping[str, Any], stage: int, name: str) -> StageMemory:
    phases = []
    for number in range(len(PHASES)):
        at = {"stage": stage, "phase": number}
        items = {}
        for item, (_, axes) in ITEMS.items():
            found = values[f"stage_{item}"]
            for axis in axes:
                found = found[at[axis]]
            items[f"{item}_bytes"] = found
        phases.append(Breakdown(items))
    return StageMemory(
        name,
        values["stage_layers"][stage],
        int(values["stage_modules"][stage]),
        values["in_flight"][stage],
        tuple(phases),
        Breakdown({phase: values["phase_allocated"][stage][number] for number, phase in enumerate(PHASES)}),
    )


def _modules(stage: StageMemory) -> str:
    """The modules of a stage that predict further tokens, in words; nothing where there are none."""
    return f" and {stage.modules} MTP module{'' if stage.modules == 1 else 's'}" if stage.modules else ""


def stages_table(stages: Sequence[StageMemory]) -> Table:
    """One row an item of each stage, one column a phase; the fullest stage and moment are named below."""
    rows: list[tuple[str, ...]] = []
    for stage in stages:
        layers = f"{stage.layers:g} layer{'' if stage.layers == 1 else 's'}{_modules(stage)}, {stage.in_flight:.3g} in flight"
        rows.append((f"{stage.stage}: {layers}", *("" for _ in PHASES)))
        for item, (label, _) in ITEMS.items():
            sizes = [items[f"{item}_bytes"] for items in stage.phases]
            if any(sizes):
                rows.append((f"  {label}", *(human.size(size) if size else "" for size in sizes)))
        rows.append(("  allocated", *(human.size(stage.allocated[phase]) for phase in PHASES)))
    fullest = max(stages, key=lambda stage: stage.allocated[stage.fullest])
    named = "the only stage" if fullest.stage == "only" else f"the {fullest.stage} stage"
    notes = (
        f"fullest on {named}, {MOMENTS[fullest.fullest]}; workspaces of the libraries are in what is allocated",
        "of the stages between, the second is shown: it has most in flight",
    )
    return Table("Memory by stage and phase", ("", *PHASES), rows, notes if len(stages) > 2 else notes[:1])
