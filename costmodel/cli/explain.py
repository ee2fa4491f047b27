"""`costmodel explain`: what a formula says, with numbers where an answer is named."""

from __future__ import annotations

from typing import Annotated

import typer

from costmodel.cli.answering import Catalog, answering
from costmodel.cli.app import MachineCommand, examples, new_app
from costmodel.cli.options import MODEL, Batch, Dtype, On, Recipe, SequenceLength, Slices, count
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
    size: Annotated[str | None, typer.Option("--size", metavar="SIZE", help="Payload of a collective.")] = None,
    group: Annotated[int | None, count("--group", "RANKS", "Of a collective; default: all.")] = None,
    stride: Annotated[int, count("--stride", "RANKS", "From one of the group to the next.")] = 1,
    axes: Annotated[str | None, typer.Option("--axes", metavar="AXES", help="On a torus, those of the group.")] = None,
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
    latex: Annotated[bool, typer.Option("--latex", help="Formulas as LaTeX (amsmath).")] = False,
) -> Answer:
    """The formula of a quantity, with the numbers of an answer."""
    from costmodel.studies.explain import explain as study
    from costmodel.studies.explain import quantities

    if quantity is None:
        return quantities()
    rows = {}
    for text in row or []:
        axis, equals, label = text.partition("=")
        if not equals:
            raise InputError(f"--row {text[:40]!r} is not AXIS=LABEL, such as matmul=ffn_in")
        rows[axis.strip()] = label.strip()
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
        group=group,
        axes=axes,
        stride=stride,
        depth=depth,
        rows=rows,
        only=only or [],
        form="latex" if latex else "text",
        catalog=catalog,
    )
