"""The options that `train` and `plan` share."""

from __future__ import annotations

from typing import Annotated

import typer

OnOption = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="MACHINE",
        help="Cluster and size: dgx-h100:512 (chips), dgx-h100:64x8 (nodes x chips), tpu-v5p:8x16x16 (a slice), v5p-512. "
        "See `costmodel hardware list`.",
    ),
]
SlicesOption = Annotated[
    int, typer.Option("--slices", help="TPU slices of that shape, joined by the data-centre network.")
]
SequenceOption = Annotated[
    str | None,
    typer.Option("--seq", metavar="TOKENS", help="Tokens of a sequence.  [default: 8192, or the model's longest]"),
]
BatchOption = Annotated[
    str | None,
    typer.Option(
        "--batch",
        metavar="N",
        help="Sequences of a step, or tokens with a suffix (16M), rounded to whole sequences that the layout divides.  "
        "[default: 4M tokens, 16M from 100B parameters]",
    ),
]
TokensOption = Annotated[
    str | None,
    typer.Option("--tokens", metavar="N", help="Tokens of the whole run, for days and money.  [default: 15T]"),
]
DtypeOption = Annotated[
    str | None, typer.Option("--dtype", help="bf16 or fp16.  [default: bf16, or fp16 on chips without it]")
]
