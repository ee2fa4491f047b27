"""`costmodel calibrate`: constants of a chip and its links fitted to your own measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costmodel.cli.answering import Catalog, answering
from costmodel.cli.app import MachineCommand, examples, new_app
from costmodel.cli.progress import Progress
from costmodel.report import Answer

app = new_app()


@app.command(
    cls=MachineCommand,
    epilog=examples(
        "calibrate all_gather_perf.txt --on dgx-h100:8 -o mine",
        "calibrate all_gather_perf.txt alltoall_perf.txt products.csv --on dgx-h100:8 -o mine --force",
        "calibrate products.csv --chip h100",
        "calibrate my_steps.csv --on dgx-h100:64 --format json",
    ),
)
@answering
def calibrate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Output of nccl-tests or rccl-tests, CSVs of matrix products (m, n, k, dtype, time_us), CSVs of step times "
            "(the columns of tables/published/training.csv); each is known by what it holds.",
        ),
    ],
    catalog: Catalog,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="CLUSTER:SIZE",
            help="What was measured. A log that lists its ranks is of so many chips of that cluster.",
        ),
    ] = None,
    chip: Annotated[
        str | None, typer.Option("--chip", metavar="NAME", help="The chip, where only matrix products were measured.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Write the overlay into this folder, for --catalog; a name that ends in .csv, .json, .md or .txt gets the "
            "answer instead.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over entries that are in the folder.")] = False,
    operation: Annotated[
        str | None,
        typer.Option("--operation", metavar="OP", help="What ran in logs that do not say it: all-gather, all-to-all."),
    ] = None,
    models: Annotated[
        Path | None,
        typer.Option("--models", metavar="FILE.csv", help="Shapes of models that the catalog does not have."),
    ] = None,
) -> Answer:
    """Fit a chip and its links to your measurements.

    What is fitted is written as an overlay of the catalog.

    Few constants are fitted, never one a measurement, and each is held to the catalog; what the measurements do not tell
    stays. The error is told before and after, each measurement predicted by the others.
    """
    from costmodel.studies.calibrate import calibrate as study

    progress = Progress()
    answer = study(
        files,
        on=on,
        chip=chip,
        output=output,
        force=force,
        operation=operation,
        models=models,
        catalog=catalog,
        progress=progress.parts,
    )
    progress.end()
    return answer
