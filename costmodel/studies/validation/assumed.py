"""What is assumed where a source does not say, the same for all rows; the documentation and the answer print this table."""

from __future__ import annotations

import re
from typing import NamedTuple

from costmodel.search.software import OVERLAPS, Software
from costmodel.studies.validation.runs import PublishedRun

ASSUMPTIONS_FILE = "published-runs"
"""The numbers among them are in hardware/assumptions/published-runs.yaml."""


class Assumption(NamedTuple):
    """A field, what is taken where it is not stated, and what speaks for it."""

    field: str
    taken: str
    because: str


ASSUMED = (
    Assumption(
        "recomputation",
        "none; full where the tensors would take more than 1.8 times the memory of the chip; every second product in torchtitan",
        "published fast runs do not recompute fully: taking full for all is the worst choice tried; per-operation checkpointing is torchtitan's default",
    ),
    Assumption(
        "sequence parallelism", "on where tp is 2 or more; off in code of before 2023", "Megatron-LM has it since 2022"
    ),
    Assumption(
        "network",
        "that of the chip's usual cluster: a NIC a chip of 100 Gbit/s with V100, 200 with A100, 400 with H100, H200, B200 and GB200, 800 with B300 and GB300",
        "half or double moves the median by half a point",
    ),
    Assumption(
        "micro-batch",
        "1 with pipeline stages or eight and more sequences a replica, else all sequences of a replica",
        "such rows are no headline rows",
    ),
    Assumption("chunks of a stage", "1, or 2 where an interleaved schedule is named", "the least that the words allow"),
    Assumption(
        "sharding",
        "zero=1, and 0 in code of before 2023",
        "the distributed optimizer is the default of Megatron-Bridge, NeMo and DeepSpeed",
    ),
    Assumption(
        "precision", "bf16", "16 bits of either kind run at the same rate; where both are named, fp16 on A100 and V100"
    ),
    Assumption(
        "attention",
        "the best kernel of the chip; of the class of FlashAttention-2 in llm-foundry and where it is PyTorch's own; unfused with dropout in plain Megatron-LM",
        "llm-foundry and PyTorch have no newer kernel; Megatron-LM's own are unfused unless it is told otherwise, and exact readings of memory say the same of the runs that do not state it",
    ),
    Assumption(
        "launches",
        "eager on GPUs, compiled where torch.compile or JAX is named",
        "dense layers are hardly ever bound by them",
    ),
    Assumption(
        "tensor-parallel traffic",
        "overlaps on purpose in NeMo, Megatron-Bridge and where asyncTP is named",
        "their recipes turn it on",
    ),
    Assumption(
        "gradients on the wire",
        "2 bytes; 4 where fp32 is stated, in FSDP2 and in code of before 2023",
        "the recipes of Megatron-Bridge and the pure mode of llm-foundry reduce in bf16",
    ),
    Assumption(
        "kernels of experts",
        "fused in releases of Megatron-Bridge from 26.06 on, else plain",
        "the same layouts take 0.65 to 0.75 of the time from that release on",
    ),
    Assumption(
        "fp8 without a recipe", "one scale a tensor from current values", "what Megatron-Bridge and torchtitan call fp8"
    ),
    Assumption(
        "recomputation called selective",
        "every second product in torchtitan; as HFU over MFU says where both are printed; else the attention",
        "the defaults of torchtitan and Megatron-LM",
    ),
    Assumption(
        "reduction of gradients",
        "overlaps compute; not in code of before 2023",
        "it does not matter much where steps are long",
    ),
    Assumption(
        "placement",
        "tp-cp-dp-pp on switches, the fastest on a TPU slice",
        "the order in which Megatron-LM and torchtitan number ranks",
    ),
    Assumption(
        "context parallelism",
        "a ring in Megatron-LM, NeMo and torchtitan, all-gather elsewhere",
        "Transformer Engine passes keys round; Llama 3 and MaxText gather them",
    ),
    Assumption("slice", "the standard one with that many chips", "what is scheduled when a number is asked for"),
    Assumption("vocabulary", "51,200 entries", "GPT-2's, padded"),
    Assumption(
        "states",
        "those of the framework; of torchtitan on Blackwell those of its code of August 2025 on; of Moonlight, DeepSeek and Qwen3 with experts in Megatron-Bridge those of its precision-aware optimizer",
        "its recipes of these models say so, Moonlight's and DeepSeek's with moments in bf16",
    ),
)

NEWER_EXPERT_KERNELS = r"container 26\.(0[6-9]|1)|container 2[7-9]\."
"""Releases of Megatron-Bridge whose layers of experts are a few fused kernels."""

RECIPES = (
    (r"torchtitan", "torchtitan-fsdp2"),
    (r"llm-foundry|composer", "llm-foundry"),
    (r"maxtext|jax|pax|t5x", "maxtext"),
    (r"megatron-deepspeed|^deepspeed", "deepspeed"),
    (r"nanotron", "nanotron"),
    (r"pytorch fsdp|metaseq", "torchtitan-fsdp2"),
)
"""The recipe of states by framework, the first that matches; others have that of Megatron-LM for their precision."""

MODEL_RECIPES = (
    (r"megatron-bridge", r"^(moonlight|deepseek)", "megatron-precision-aware-bf16-moments"),
    (r"megatron-bridge", r"^qwen3-.*-a\d", "megatron-precision-aware"),
)
"""The recipe of states by framework and model, before those by framework."""


def recipe(run: PublishedRun, dtype: str) -> str | None:
    """The recipe for what a framework stores; None for Megatron-LM's, the default on GPUs."""
    framework = run.framework.lower()
    for pattern, model, own in MODEL_RECIPES:
        if re.search(pattern, framework) and re.search(model, run.model):
            return own
    name = next((name for pattern, name in RECIPES if re.search(pattern, framework)), None)
    if name == "deepspeed":
        return "deepspeed-zero1-fp16" if dtype == "fp16" else "deepspeed-bf16"
    if name == "torchtitan-fsdp2" and "torchtitan" in framework:
        if (run.tp or 1) > 1:
            return "torchtitan-fsdp2-loss-parallel"
        # Code of 2025 on compiles the loss, and from August 2025 on has groups of their own for embedding and head: nothing
        # tells it in a row but chips that were not there before, H200 in June 2025 and Blackwell from that August on.
        if re.search(r"b[23]00", run.chip):
            return "torchtitan-fsdp2-2025-08"
        return "torchtitan-fsdp2-compiled" if "h200" in run.chip else name
    return name


_PLAIN_MEGATRON = re.compile(r"^megatron-lm(?!.*nemo)", re.IGNORECASE)


def unfused(run: PublishedRun) -> bool:
    """Whether the attention writes its scores to memory."""
    return run.attention == "naive" or (not run.attention and _PLAIN_MEGATRON.search(run.framework) is not None)


def software(run: PublishedRun) -> Software:
    """The code of a run: what its row states, else what that framework does."""
    before = "before-2023" in run.traits
    overlap = [word for word in OVERLAPS if f"{word}-overlap" in run.traits]
    if not before and "dp-not-overlapped" not in run.traits:
        overlap.append("dp")
    release = re.search(NEWER_EXPERT_KERNELS, run.framework)
    return Software(
        attention="unfused"
        if unfused(run)
        else "flash-2"
        if run.attention == "flash-2" or re.search(r"llm-foundry", run.framework, re.IGNORECASE)
        else "fused",
        dropout=dropout(run),
        launches="graphs" if "cuda-graphs" in run.traits else "compiled" if "compiled" in run.traits else "",
        overlap=tuple(overlap),
        experts="fused" if release else "",
        reduction="" if before or "reduces-fp32" in run.traits else "bf16",
    )


def dropout(run: PublishedRun) -> bool:
    """Whether hidden features are dropped, as in the models that were trained with plain Megatron-LM."""
    return _PLAIN_MEGATRON.search(run.framework) is not None
