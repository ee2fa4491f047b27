"""Options that several commands share, worded once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from costmodel.errors import InputError

_DIGITS = re.compile(r"([+-]?)([0-9]+)")
_MOST = 2**63


def count(option: str, metavar: str, help: str, least: int = 1) -> Any:
    """An option that takes a whole number of `least` or more."""
    return typer.Option(option, parser=whole(option, least), metavar=metavar, help=help)


def whole(option: str, least: int) -> Callable[[object], int]:
    """The reader of a whole number of `least` or more, in plain digits; it raises InputError, which names the option."""

    def read(value: object) -> int:
        text = str(value).strip()
        shown = text if len(text) <= 40 else text[:20] + "..."
        match = _DIGITS.fullmatch(text)
        if match is None:
            raise InputError(f"{option} {shown!r} is not a whole number: give one in plain digits, such as 8")
        # More digits than these are out of range, and int() refuses thousands of them in words of its own.
        number = int(match[1] + (match[2].lstrip("0")[:20] or "0"))
        if number < least:
            raise InputError(f"{option} {shown!r} is too small: give {least} or more")
        if number > _MOST:
            raise InputError(f"{option} {shown!r} is too large: at most 2**63")
        return number

    return read


def folder(value: object) -> Path:
    """The folder of --catalog; raises InputError when it is empty, which pathlib takes for the current one."""
    if not str(value).strip():
        raise InputError("--catalog is empty: give the folder of your entries, or leave it out")
    return Path(str(value))


On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="CLUSTER:SIZE",
        show_default=False,
        help="Where: so many chips (dgx-h100:512), nodes x chips (dgx-h100:64x8), a slice (tpu-v5p:8x16x16), or "
        "Google's name of one (v5p-512); _twisted behind a shape twists it (tpu-v4:4x4x8_twisted).",
    ),
]
Slices = Annotated[
    int,
    count("--slices", "N", "TPU slices of that shape, joined by the data-center network."),
]
SequenceLength = Annotated[
    str | None,
    typer.Option(
        "--seq", metavar="TOKENS", help="Tokens of a sequence (8192 or 8Ki); default 8192, or the model's longest."
    ),
]
Batch = Annotated[
    str | None,
    typer.Option(
        "--batch",
        metavar="SIZE",
        help="Sequences of a step, or tokens with a suffix (16M), rounded to sequences that the layout divides; "
        "default 4M tokens, 16M from 100B parameters on.",
    ),
]
Tokens = Annotated[
    str | None,
    typer.Option("--tokens", metavar="TOKENS", help="Tokens of the whole run, for days and money; default 15T."),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        metavar="NAME",
        help="Of the weight products: bf16 (default), fp16 (default where a chip has no bf16), fp8 (one scale a tensor), "
        "fp8-delayed (the same from past steps), fp8-rowwise, fp8-block, mxfp8 or nvfp4. Attention, router and loss stay "
        "in 16 bits.",
    ),
]
Attention = Annotated[
    str | None,
    typer.Option(
        "--attention",
        metavar="KERNEL",
        help="fused (default): the best kernel of the chip; flash-2: one of the class of FlashAttention-2; unfused: products with passes "
        "over the scores between them.",
    ),
]
Dropout = Annotated[
    bool, typer.Option("--dropout", help="Hidden features and scores are dropped, as in GPT-3 and models of its time.")
]
Launches = Annotated[
    str | None,
    typer.Option(
        "--launch",
        metavar="HOW",
        help="How kernels are launched: eager (default on GPUs), compiled (torch.compile) or graphs (CUDA graphs; default "
        "elsewhere).",
    ),
]
Overlap = Annotated[
    str,
    typer.Option(
        "--overlap",
        metavar="AXES",
        help="What communicates beside compute on purpose: dp (gradients and weights), tp (products split to overlap), both "
        "as tp,dp, or none.",
    ),
]
ExpertKernels = Annotated[
    str,
    typer.Option(
        "--expert-kernels",
        metavar="KIND",
        help="plain: sorting, casts and exchanges are kernels of their own, and each expert a launch; fused: a few kernels, as "
        "in Megatron-core of mid-2026.",
    ),
]
Reduction = Annotated[
    str | None,
    typer.Option(
        "--reduce-in", metavar="NAME", help="Gradients on the wire: fp32 (default on GPUs) or bf16 (default on TPUs)."
    ),
]
Routing = Annotated[
    str | None,
    typer.Option(
        "--routing",
        metavar="WORDS",
        help="How tokens go to experts: imbalance (the busiest rank over the mean), capacity (the same at most, tokens beyond are "
        'dropped), dispatch and combine (precisions there and back), such as "imbalance=1.2 dispatch=fp8"; default: evenly, '
        "nothing dropped, in 16 bits.",
    ),
]
RECIPES = (
    *("megatron-bf16", "megatron-bf16-fused-loss", "megatron-fp16", "megatron-fp8", "megatron-precision-aware"),
    *("megatron-precision-aware-bf16-moments", "deepspeed-zero1-fp16", "deepspeed-zero3", "deepspeed-bf16"),
    "nanotron",
    *("torchtitan-fsdp2", "torchtitan-fsdp2-compiled", "torchtitan-fsdp2-loss-parallel", "torchtitan-fsdp2-2025-08"),
    *("llm-foundry", "maxtext"),
    *("pure-bf16", "adamw-8bit"),
    *("sgd", "adafactor", "muon"),
)
"""The files of hardware/recipes; they are named here because help reads no file."""
Recipe = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        metavar="NAME",
        help="What framework and optimizer store of each weight and logit; default megatron-bf16 on GPUs (megatron-fp16 "
        f"in fp16, megatron-fp8 in fewer bits), maxtext on TPUs. One of {', '.join(RECIPES)}, or a file of your own in recipes/ of --catalog.",
    ),
]
Placement = Annotated[
    str,
    typer.Option(
        "--placement",
        metavar="NAME",
        help="Which placements are tried: what megatron, torchtitan, llama3, jax or jax-split reaches, an order such as "
        "tp-dp-pp, those with each axis where you say (tp:x,fsdp:yz on a torus, tp:domain,dp:network), or one written out "
        "(domain:tp8/network:dp16.pp4); best tries all.",
    ),
]
Offload = Annotated[
    str | None,
    typer.Option(
        "--offload",
        metavar="WHERE",
        show_default=False,
        help="Let hosts keep optimizer states, weights or activations: host (in their memory) or nvme (states on their "
        "drives too). Nothing without it.",
    ),
]
Reshard = Annotated[
    str | None,
    typer.Option(
        "--reshard",
        metavar="WHEN",
        show_default=False,
        help="Also try FSDP that keeps gathered weights to the backward pass (backward), or to the end of the step too "
        "(step). Without it as the recipe has it.",
    ),
]
ExpertOverlap = Annotated[
    str | None,
    typer.Option(
        "--ep-overlap",
        metavar="WHAT",
        show_default=False,
        help="What the exchanges of experts hide behind, as ep_overlap of a layout: shared (the shared experts) or micro-batch "
        "(the work of another one). Nothing without it.",
    ),
]
Recomputed = Annotated[
    str | None,
    typer.Option(
        "--recompute",
        metavar="LIST",
        show_default=False,
        help="What may be run again in the backward pass, as recompute of a layout, separated by commas: words, Megatron's modules "
        "(core_attn+moe_act) or methods (full-uniform-4). Without it none, light, selective and full are tried.",
    ),
]
DocumentLength = Annotated[
    str | None,
    typer.Option(
        "--document-length",
        metavar="TOKENS",
        show_default=False,
        help="Tokens of the document that a token is in, on the mean over tokens, where sequences pack several that do "
        "not attend to each other; default: a sequence is one document.",
    ),
]
LossChunks = Annotated[
    int,
    count("--loss-chunks", "COUNT", "Pieces of a micro-batch in which head and loss are computed, for less memory."),
]
MultiToken = Annotated[
    int,
    typer.Option(
        "--mtp",
        "--multi-token-prediction",
        parser=whole("--mtp", 0),
        metavar="MODULES",
        help="Modules that predict further tokens (MTP) and are trained: each a decoder layer, a projection and a loss of its own, on "
        "the stage with the head; default: none, whatever the model was published with.",
    ),
]
MODEL = "A name (costmodel models list), a size such as 70B, or the path of a Hugging Face config.json."
