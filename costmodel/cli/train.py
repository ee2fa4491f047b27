"""`costmodel train`: what a training step costs."""

from __future__ import annotations

from typing import Annotated

import typer

from costmodel.cli.answering import Catalog, answering
from costmodel.cli.app import MachineCommand, examples, new_app
from costmodel.cli.options import (
    MODEL,
    Attention,
    Batch,
    DocumentLength,
    Dropout,
    Dtype,
    ExpertKernels,
    Launches,
    LossChunks,
    MultiToken,
    On,
    Overlap,
    Recipe,
    Reduction,
    Routing,
    SequenceLength,
    Slices,
    Tokens,
)
from costmodel.cli.software import software_of
from costmodel.report import Answer
from costmodel.search.layout import KEYS

app = new_app()

LAYOUT_HELP = (
    f'Key=value words: {" ".join(KEYS)}, such as "tp=8 pp=16 v=8 zero=1". '
    "dp is derived when left out. Without a layout, the fastest one that fits."
)


@app.command(
    cls=MachineCommand,
    epilog=examples(
        "train llama-3-70b --on dgx-h100:512",
        'train llama-3.1-405b --on dgx-h100:16384 --batch 16M --layout "tp=8 pp=16 v=8 recompute=selective"',
        'train llama-3-70b --on dgx-h100:512 --layout "tp=8 pp=4" --measured 12.3s',
        "train 7B 13B 70B --on tpu-v5p:8x8x8 --seq 4096 --format csv -o sizes.csv",
    ),
)
@answering
def train(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help=f"Each one: {MODEL}")],
    catalog: Catalog,
    on: On,
    layout: Annotated[str | None, typer.Option("--layout", metavar="WORDS", help=LAYOUT_HELP)] = None,
    slices: Slices = 1,
    seq: SequenceLength = None,
    batch: Batch = None,
    tokens: Tokens = None,
    dtype: Dtype = None,
    recipe: Recipe = None,
    attention: Attention = None,
    dropout: Dropout = False,
    launch: Launches = None,
    overlap: Overlap = "dp",
    expert_kernels: ExpertKernels = "plain",
    reduce_in: Reduction = None,
    routing: Routing = None,
    document_length: DocumentLength = None,
    loss_chunks: LossChunks = 1,
    mtp: MultiToken = 0,
    stages: Annotated[
        bool, typer.Option("--stages", help="Show what each pipeline stage holds in each phase of a step.")
    ] = False,
    measured: Annotated[
        str | None,
        typer.Option(
            "--measured",
            metavar="TIME",
            help="Seconds of a step that you measured with this layout (12.3s, 850ms): which single term could explain the difference.",
        ),
    ] = None,
) -> Answer:
    """Time, memory and money of a training step, item by item."""
    from costmodel.studies.train import train as study

    return study(
        models,
        on,
        layout=layout,
        slices=slices,
        sequence_length=seq,
        batch=batch,
        tokens=tokens,
        dtype=dtype,
        recipe=recipe,
        software=software_of(attention, dropout, launch, overlap, expert_kernels, reduce_in),
        routing=routing,
        document_length=document_length,
        loss_chunks=loss_chunks,
        multi_token_prediction=mtp,
        stages=stages,
        measured=measured,
        catalog=catalog,
    )
