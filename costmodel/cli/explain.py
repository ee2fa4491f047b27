"""`costmodel explain`: what a formula says, with numbers where an answer is named."""

from __future__ import annotations

from typing import Annotated

import typer

from costmodel.cli.answering import Catalog, answering
from costmodel.cli.app import MachineCommand, examples, new_app
from costmodel.cli.options import (
    MODEL,
    Attention,
    Batch,
    Dropout,
    Dtype,
    ExpertKernels,
    Launches,
    MultiToken,
    On,
    Overlap,
    Recipe,
    Reduction,
    SequenceLength,
    Slices,
    count,
)
from costmodel.cli.software import software_of
from costmodel.errors import InputError
from costmodel.report import Answer

app = new_app()

QUANTITY = (
    "step_time, mfu, collective.all_reduce, model.parameters, or any name in their formulas. Left out: a list of them."
)


@app.command(
    cls=MachineCommand,
    epilog=examples(
        "explain mfu",
        "explain collective.all_reduce --size 1GiB --on dgx-h100:64x8 --depth 3",
        "explain step_time llama-3.1-405b --on dgx-h100:16384 --batch 16M --only nic_bandwidth",
        "explain product_time llama-3-70b --on tpu-v5p:8x8x8 --row matmul=ffn_in",
        "explain mfu llama-2-7b --on dgx-a100:8 --seq 4096 --batch 16 --set step_time=2.2s",
    ),
)
@answering
def explain(
    catalog: Catalog,
    quantity: Annotated[str | None, typer.Argument(metavar="[QUANTITY]", help=QUANTITY)] = None,
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help=f"For its numbers. {MODEL}")] = None,
    on: Annotated[str | None, On.__metadata__[0]] = None,
    layout: Annotated[
        str | None, typer.Option("--layout", metavar="WORDS", help="As for train; default: the fastest that fits.")
    ] = None,
    slices: Slices = 1,
    seq: SequenceLength = None,
    batch: Batch = None,
    dtype: Dtype = None,
    recipe: Recipe = None,
    attention: Attention = None,
    dropout: Dropout = False,
    launch: Launches = None,
    overlap: Overlap = "dp",
    expert_kernels: ExpertKernels = "plain",
    reduce_in: Reduction = None,
    mtp: MultiToken = 0,
    size: Annotated[str | None, typer.Option("--size", metavar="SIZE", help="Payload of a collective.")] = None,
    group: Annotated[int | None, count("--group", "RANKS", "Of a collective; default: all.")] = None,
    stride: Annotated[int, count("--stride", "RANKS", "From one of the group to the next.")] = 1,
    axes: Annotated[str | None, typer.Option("--axes", metavar="AXES", help="On a torus, those of the group.")] = None,
    library: Annotated[
        str | None,
        typer.Option("--library", metavar="NAME", help="What runs a collective; none: what the links would allow."),
    ] = None,
    depth: Annotated[
        int | None, count("--depth", "LEVELS", "Definitions to go down; default 2 with numbers, else 1.", least=0)
    ] = None,
    row: Annotated[
        list[str] | None, typer.Option("--row", metavar="AXIS=LABEL", help="The row to look at; default: the largest.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Instead: the quantity as an expression of these alone."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A number in place of the answer's, such as step_time=2.2s or nic_bandwidth=100GB/s; repeat it for more.",
        ),
    ] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Formulas as LaTeX (amsmath).")] = False,
) -> Answer:
    """The formula of a quantity, with the numbers of an answer."""
    from costmodel.studies.explain import explain as study
    from costmodel.studies.explain import quantities

    if quantity is None:
        return quantities()
    return study(
        quantity,
        model,
        on,
        size=size,
        layout=layout,
        slices=slices,
        sequence_length=seq,
        batch=batch,
        dtype=dtype,
        recipe=recipe,
        software=software_of(attention, dropout, launch, overlap, expert_kernels, reduce_in),
        multi_token_prediction=mtp,
        group=group,
        axes=axes,
        stride=stride,
        library=library,
        depth=depth,
        rows=_pairs("--row", row, "AXIS=LABEL, such as matmul=ffn_in"),
        only=only or [],
        values=_pairs("--set", set_, "NAME=VALUE, such as step_time=2.2s"),
        form="latex" if latex else "text",
        catalog=catalog,
    )


def _pairs(option: str, texts: list[str] | None, expected: str) -> dict[str, str]:
    """What is on either side of the equals signs; raises InputError for a text without one and for a name given twice."""
    found: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise InputError(f"{option} {text[:40]!r} is not {expected}")
        if name in found:
            raise InputError(f"{option} {name[:40]} is given twice")
        found[name] = value
    return found
