"""`costmodel validate`: how far predictions are from what people measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costmodel.cli.answering import Catalog, answering
from costmodel.cli.app import examples, new_app
from costmodel.cli.progress import Progress
from costmodel.report import Answer

app = new_app()


@app.command(
    epilog=examples(
        "validate",
        "validate training --by chip",
        "validate memory --rows --format csv -o memory.csv",
        "validate kernels --whole --by strategy",
        "validate --table my_runs.csv --models my_models.csv --rows --format json",
    ),
)
@answering
def validate(
    catalog: Catalog,
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="training, memory, collectives or kernels; default: all that there are, or what a table holds.",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table",
            metavar="FILE.csv",
            help="Your own measurements, in the columns of tables/published or of the collections that it was made from; "
            "the kind is known by the columns.",
        ),
    ] = None,
    models: Annotated[
        Path | None,
        typer.Option(
            "--models", metavar="FILE.csv", help="Shapes of models that neither the catalog nor tables/published has."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="NAME", help="Group by source, chip, strategy or class (of model and precision)."),
    ] = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="Every row and quantity: measured, predicted, or why it is skipped.")
    ] = False,
    all_rows: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Statistics over all predicted rows; default: headline rows, those whose source states layout, batch and how it "
            "counts FLOPs, of models inside what the equations cover.",
        ),
    ] = False,
    whole: Annotated[
        bool,
        typer.Option(
            "--whole",
            help="Of collectives and kernels the whole measured tables of the package aiconfigurator-core in place of the shipped "
            "samples, a million rows in some minutes; needs pip install 'roofline-costmodel[deep]'.",
        ),
    ] = False,
) -> Answer:
    """Predict what people have published. Print the error.

    Median, 90th percentile, bias, and the worst rows. A row that is not specified enough is skipped with the reason; what is assumed of unstated fields is the same for all rows
    (docs/explanation/accuracy.md).
    """
    from costmodel.studies.validate import validate as study

    progress = Progress()
    answer = study(
        kind,
        table=table,
        models=models,
        by=by,
        each_row=rows,
        all_rows=all_rows,
        whole=whole,
        catalog=catalog,
        progress=progress.rows,
    )
    progress.end()
    return answer
