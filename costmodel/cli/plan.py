"""`costmodel plan`: the fastest layout of a model on a machine."""

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
    ExpertOverlap,
    Launches,
    LossChunks,
    MultiToken,
    Offload,
    On,
    Overlap,
    Placement,
    Recipe,
    Recomputed,
    Reduction,
    Reshard,
    Routing,
    SequenceLength,
    Slices,
    Tokens,
    count,
)
from costmodel.cli.progress import Progress
from costmodel.cli.software import software_of
from costmodel.report import Answer

app = new_app()


@app.command(
    cls=MachineCommand,
    epilog=examples(
        "plan llama-3.1-405b --on dgx-h100:16384 --seq 8192 --batch 16M",
        "plan llama-3-70b --on tpu-v5p:16x16x16 --batch 4M --top 10",
        "plan 30B --on aws-p5:256 --format json",
        "plan deepseek-v3 --on dgx-h100:2048 --batch 16M --recompute none,mla_up_proj+mlp,layernorm+moe",
    ),
)
@answering
def plan(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)],
    catalog: Catalog,
    on: On,
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
    placement: Placement = "best",
    offload: Offload = None,
    reshard: Reshard = None,
    ep_overlap: ExpertOverlap = None,
    recompute: Recomputed = None,
    top: Annotated[int, count("--top", "COUNT", "How many of the fastest layouts to show.")] = 5,
) -> Answer:
    """The fastest of all legal layouts, with time, memory and money.

    Ties, the trade of memory for time, and what rules out the others come with them. Ctrl-C shows the best so far.
    """
    from costmodel.studies.plan import plan as study

    shown = Progress()
    answer = study(
        model,
        on,
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
        placement=placement,
        offload=offload,
        reshard=reshard,
        ep_overlap=ep_overlap,
        recompute=recompute,
        top=top,
        catalog=catalog,
        progress=shown.share,
    )
    if answer.share_searched < 1:
        shown.end()
    return answer
