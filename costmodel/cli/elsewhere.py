"""What other tools call a command or an option of this one: for the hint beside a name that is none."""

from __future__ import annotations

from collections.abc import Collection

COMMANDS = {
    "flash-attention": "attention",
    "gemm": "matmul",
    "layernorm": "norm",
    "mm": "matmul",
    "moe": "experts",
    "rmsnorm": "norm",
    "rope": "rotary",
}
"""The nearest by spelling would be another."""
OPTIONS = {
    "--batch-size": ("--batch", "--sequences"),
    "--chip": ("--on",),
    "--chips": ("--on",),
    "--cluster": ("--on",),
    "--context-length": ("--seq", "--tokens"),
    "--dtype": ("--precision",),
    "--global-batch-size": ("--batch",),
    "--gpu": ("--on",),
    "--gpus": ("--on",),
    "--hardware": ("--on",),
    "--head-dim": ("--head-size",),
    "--parallelism": ("--layout",),
    "--precision": ("--dtype",),
    "--seq": ("--tokens",),
    "--seq-len": ("--seq", "--tokens"),
    "--seq-length": ("--seq", "--tokens"),
    "--sequence-length": ("--seq", "--tokens"),
    "--system": ("--on",),
}
"""Those of other tools, and of other commands here, with what they may be called instead, likeliest first."""


def command(name: str, known: Collection[str]) -> str:
    """The command that `name` means elsewhere, where there is one of that name; else nothing."""
    meant = COMMANDS.get(name.lower().replace("_", "-"), "")
    return meant if meant in known else ""


def option(name: str, known: Collection[str]) -> str:
    """The option that `name` means elsewhere, where the command has it; else nothing."""
    return next((meant for meant in OPTIONS.get(name.lower().replace("_", "-"), ()) if meant in known), "")
