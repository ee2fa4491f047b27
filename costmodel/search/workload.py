"""What is trained on what: the workload, and everything about it that does not depend on the layout, as equation inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Chip, Model, Number, Unknown
from costmodel.catalog.shape import equation_inputs
from costmodel.errors import InputError
from costmodel.search import precision, software
from costmodel.search.host import host_inputs
from costmodel.search.precision import HALF, half_of
from costmodel.search.routing import ExpertRouting
from costmodel.search.software import Software
from costmodel.topology.grammar import AXES
from costmodel.topology.groups import fabric_inputs
from costmodel.topology.libraries import library_in_training, library_inputs
from costmodel.topology.machine import Machine

EXPERT_DEGREES = ("ep", "etp")
"""The degrees of the second grid over the ranks of a stage, that of experts."""
Overlap = Literal["perfect", "modelled", "none"]
End = Literal["low", "value", "high"]
ENDS: dict[Overlap, End] = {"perfect": "low", "modelled": "value", "none": "high"}
STATES = ("weight_bytes", "gradient_bytes", "optimizer_bytes", "step_extra_bytes", "loss_bytes")
"""What a recipe gives of its own; further constants in it stand for those of the training step and of its memory."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A model trained on a machine: `global_batch` sequences of `sequence_length` tokens a step."""

    machine: Machine
    model: Model
    sequence_length: int
    global_batch: int
    dtype: str = "bf16"
    recipe: str = ""
    routing: ExpertRouting = field(default_factory=ExpertRouting)
    software: Software = field(default_factory=Software)
    document_length: int = 0
    """Tokens of the document that a token is in, on the mean over tokens; 0 where a sequence is one document."""
    loss_chunks: int = 1
    """Pieces of a micro-batch in which head and loss are computed."""
    multi_token_modules: int = 0
    """Modules that predict further tokens and are trained."""

    @property
    def has_experts(self) -> bool:
        """Whether the equations for any model are needed, and not those that know a model as dense with grouped attention."""
        return self.model.experts is not None or self.model.latent_attention is not None

    @property
    def routed_experts(self) -> int:
        """Routed experts of a layer; 1 where there are none."""
        return self.model.experts.count if self.model.experts else 1

    @property
    def shards(self) -> tuple[int, ...]:
        """Sizes of groups that share weights among neighbours, worth trying: those within the faster links of the machine."""
        machine = self.machine
        fast = prod(dimension.size for dimension in machine.fast)
        if machine.is_torus:
            tried = [fast // inside for inside in (1, 4, 8, 16)] if machine.slices > 1 else []
        else:
            tried = [fast, fast * fast]
        return tuple(size for size in dict.fromkeys(tried) if 1 < size < machine.chips)

    @property
    def kind(self) -> str:
        """The kind of machine and model, by which generated modules are named."""
        return self.machine.fabric + ("_with_experts" if self.has_experts else "")

    @property
    def degrees(self) -> tuple[str, ...]:
        """The degrees of a layout."""
        return (*AXES, *EXPERT_DEGREES) if self.has_experts else AXES

    @property
    def recipe_name(self) -> str:
        """What is stored of a weight: the recipe asked for, or what is usual on such a machine."""
        return self.recipe or default_recipe(self.machine.chip, self.dtype)

    @property
    def step_tokens(self) -> int:
        """Tokens of a step."""
        return self.global_batch * self.sequence_length


def default_dtype(chip: Chip) -> str:
    """The precision that a chip trains in when none is asked for: bf16, or fp16 on chips that have only that."""
    return next((dtype for dtype in HALF if isinstance(chip.peak.get(dtype), Number)), HALF[0])


def default_recipe(chip: Chip, dtype: str) -> str:
    """The recipe of states where none is asked for: MaxText's on TPUs, Megatron-LM's for that precision elsewhere."""
    if chip.kind == "tpu":
        return "maxtext"
    return {"bf16": "megatron-bf16", "fp16": "megatron-fp16"}.get(dtype, "megatron-fp8")


def check_model(model: Model) -> None:
    """Raise InputError, naming the layers, unless training of every layer of the model is covered."""
    recurrent = model.recurrent.kind if model.recurrent is not None else ""
    missing = [layers for layers in model.not_modelled if layers != recurrent]
    if recurrent:
        missing.append(f"{recurrent} layers")
    if missing:
        named = ", ".join(dict.fromkeys(missing))
        raise InputError(
            f"{model.name} has {named}, whose training is not modelled yet: decoders that attend in every layer are, such as llama-3.1-405b or deepseek-v3"
        )


def scalar_inputs(workload: Workload, catalog: Catalog, overlap: Overlap = "modelled") -> dict[str, float]:
    """The inputs of the training equations that are the same for every layout.

    `overlap` says how much communication hides: all that can, what is modelled, or nothing; what memory takes is then at the low
    end of its range, as usual, or at the high end. Raises InputError when the chip
    lacks a number that is needed.
    """
    machine, model = workload.machine, workload.model
    kind = "tpu" if machine.chip.kind == "tpu" else "gpu"
    time = _values(catalog.assumptions("training")) | _values(catalog.assumptions("experts"))
    if kind == "tpu":
        time |= _values(catalog.assumptions("training-tpu"))
    code = catalog.assumptions(software.FILE)
    formats = catalog.assumptions(precision.FILE)
    end = ENDS[overlap]
    memory = _values(catalog.assumptions(f"memory-{kind}"), end)
    recipe = _values(catalog.recipe(workload.recipe_name), end)
    for name in recipe:
        if name not in (*time, *memory, *STATES):
            raise InputError.unknown(f"constant of the recipe {workload.recipe_name}", name, (*time, *memory, *STATES))
    chosen = workload.software.inputs(machine.chip, code, workload.dtype in HALF)
    if overlap != "modelled":
        hidden = 1.0 if overlap == "perfect" else 0.0
        chosen |= {
            "tp_hidden_share": hidden,
            "cp_hidden_share": hidden,
            "fsdp_hidden_share": hidden,
            "dp_hidden_share": hidden,
            "host_hidden_share": hidden,
            "ep_hidden_share": hidden,
        }
    return {
        **({} if workload.has_experts else dict.fromkeys(EXPERT_DEGREES, 1)),
        **equation_inputs(model),
        **precision.precision_inputs(machine.chip, workload.dtype, formats),
        **chip_inputs(machine.chip, workload.dtype, workload.software.attention),
        **fabric_inputs(machine),
        **_values(formats),
        **_values(code),
        **library_inputs(machine, library_in_training(machine)),
        **host_inputs(machine, catalog),
        **time,
        **memory,
        **recipe,
        **chosen,
        **workload.routing.inputs(half_of(workload.dtype)),
        "chips": machine.chips,
        "global_batch": workload.global_batch,
        "sequence_length": workload.sequence_length,
        "document_length": workload.document_length or workload.sequence_length,
        "loss_chunks": workload.loss_chunks,
        "multi_token_modules": workload.multi_token_modules,
    }


def chip_inputs(chip: Chip, dtype: str, attention: str = "") -> dict[str, float]:
    """What the equations need to know of a chip: peak in 16 bits, memory, attainable shares. Raises InputError for what is unknown."""
    exponentials = chip.attainable["attention_exponentials"]
    return {
        "half_peak": chip.peak[half_of(dtype)].value,
        "memory_capacity": chip.memory_capacity.value,
        "memory_bandwidth": chip.memory_bandwidth.value,
        "memory_share": chip.attainable["kernel_memory_bandwidth"].value,
        "half_share": chip.attainable["training_matmul"].value,
        "attention_share": chip.attainable[software.attention_share(chip, attention)].value,
        "launch_gap": chip.attainable["launch"].value,
        # Where the rate of exponentials was not measured apart, the share of peak includes them.
        "exponential_rate": float("inf") if isinstance(exponentials, Unknown) else exponentials.value,
    }


def _values(constants: Mapping[str, Number], end: End = "value") -> dict[str, float]:
    return {name: number.at(end) for name, number in constants.items()}
