"""The software of a training: which kernels its attention and its experts run, who launches them, what overlaps on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from costmodel.catalog.entries import Chip, Number
from costmodel.catalog.units import ELEMENT_BYTES
from costmodel.errors import InputError
from costmodel.generated import labels

ATTENTION = ("fused", "flash-2", "unfused")
"""One kernel, the best of the chip; one of the class of FlashAttention-2; products with passes over the scores between them."""
LAUNCHES = ("eager", "compiled", "graphs")
"""Kernels are launched one by one by a framework, by code that a compiler wrote, or as a graph."""
OVERLAPS = ("tp", "dp")
"""Communication that the code lets run beside compute on purpose: of tensor-parallel ranks, and of gradients and weights."""
EXPERT_KERNELS = ("plain", "fused")
"""Sorting, casts and exchanges of experts as Megatron-core's of 2024 and 2025 do them, an expert a launch; or few fused kernels."""
REDUCTIONS = ("fp32", "bf16")
"""What gradients are reduced in."""
FILE = "software"
"""Its numbers are in hardware/assumptions/software.yaml."""


@dataclass(frozen=True, slots=True)
class Software:
    """What the equations need to know of the code; the empty word is the default.

    Defaults: fused attention, eager launches on GPUs and graphs elsewhere, gradients that overlap, plain kernels of experts.
    """

    attention: str = ""
    dropout: bool = False
    launches: str = ""
    overlap: tuple[str, ...] | None = None
    experts: str = ""
    reduction: str = ""

    def __post_init__(self) -> None:
        """Raise InputError, with the nearest choice, for a word that is none."""
        for said, word, known in (
            ("attention", self.attention, ATTENTION),
            ("way to launch kernels", self.launches, LAUNCHES),
            ("kernels of experts", self.experts, EXPERT_KERNELS),
            ("precision of a reduction", self.reduction, REDUCTIONS),
        ):
            if word and word not in known:
                raise InputError.unknown(said, word, known)
        for word in self.overlap or ():
            if word not in OVERLAPS:
                raise InputError.unknown("overlap", word, (*OVERLAPS, "none"))

    @property
    def unfused(self) -> bool:
        """Whether attention keeps its scores."""
        return self.attention == ATTENTION[-1]

    @property
    def overlapped(self) -> tuple[str, ...]:
        """What overlaps on purpose."""
        return OVERLAPS[1:] if self.overlap is None else self.overlap

    def launched(self, chip: Chip) -> str:
        """Who launches kernels on that chip."""
        return self.launches or (LAUNCHES[0] if chip.kind == "gpu" else LAUNCHES[-1])

    def said(self, chip: Chip) -> str:
        """In a sentence."""
        both = " and ".join({"tp": "tensor-parallel traffic", "dp": "gradients"}[word] for word in self.overlapped)
        return (
            f"code: {self.attention or ATTENTION[0]} attention{' with dropout' if self.dropout else ''} (--attention), "
            f"{self.launched(chip)} launches (--launch), {both or 'nothing'} overlapped on purpose (--overlap), "
            f"{self.experts or EXPERT_KERNELS[0]} kernels of experts (--expert-kernels)"
        )

    def inputs(self, chip: Chip, constants: Mapping[str, Number], precise: bool) -> dict[str, float]:
        """As the equations take it; `precise` where products are in 16 bits. Raises InputError for a kernel that a chip lacks."""
        known = {name: number.value for name, number in constants.items()}
        fused = self.experts == EXPERT_KERNELS[-1]
        unfused = self.unfused
        found = {
            "attention_kernel": labels.CHOICES["attention_kernel"].index("unfused" if unfused else "fused"),
            "score_traffic_forward": known["score_traffic_forward"],
            "score_traffic_backward": known["score_traffic_backward"],
            "score_dropout_traffic": known["score_dropout_traffic"] if self.dropout else 0.0,
            "score_dropout_bytes": known["kept_score_dropout"] if self.dropout and unfused else 0.0,
            "launch_time": known[f"launch_time_{self.launched(chip)}"],
            "expert_launch_time": 0.0 if fused or self.launched(chip) == "graphs" else known["expert_launch_time"],
            "cast_kernels": 0.0 if precise else known["cast_kernels"],
            "expert_path_factor": known["expert_path_factor_fused"] if fused else 1.0,
            "expert_launches": known["expert_launches" if precise else "expert_launches_cast"],
        }
        if self.attention:
            found["score_bytes"] = known["kept_score"] if unfused else 0.0
        if self.dropout:
            found["dropout_bytes"] = known["dropout_bytes"]
        if self.attention in {"", ATTENTION[0]} and "attention_backward_factor" in chip.attainable:
            found["attention_backward_factor"] = chip.attainable["attention_backward_factor"].value
        if self.reduction:
            found["gradient_wire_bytes"] = ELEMENT_BYTES[self.reduction]
        if "tp" in self.overlapped:
            found["tp_hidden_share"] = known["tp_hidden_share_overlapped"]
        if "dp" not in self.overlapped:
            found["dp_hidden_share"] = 0.0
        return found


def attention_share(chip: Chip, attention: str) -> str:
    """The name of the share of peak that the fused kernel attains on a chip: an older kernel is slower where a newer one exists."""
    older = "training_attention_older_kernel"
    return older if attention == "flash-2" and older in chip.attainable else "training_attention"
