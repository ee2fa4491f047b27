"""`costmodel hardware`: what can be put after --on, and where its numbers come from."""

from __future__ import annotations

from typing import Annotated

import typer

from costmodel.cli.answering import Catalog, answering
from costmodel.cli.app import examples, new_app
from costmodel.report import Answer

app = new_app("hardware", "What can be put after --on, and where its numbers come from.")


@app.command("list", epilog=examples("hardware list", "hardware list chips", "hardware list links --format csv"))
@answering
def list_all(
    catalog: Catalog,
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="clusters, chips or links; default: all three.")
    ] = None,
) -> Answer:
    """Every cluster, chip and link with its headline numbers."""
    from costmodel.studies.hardware import list_hardware

    return list_hardware(kind, catalog)


@app.command(epilog=examples("hardware show dgx-h100", "hardware show tpu-v5p --format json"))
@answering
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A cluster, chip or link, by name or alias.")],
    catalog: Catalog,
) -> Answer:
    """One entry: every number with unit, source and confidence."""
    from costmodel.studies.hardware import show_hardware

    return show_hardware(name, catalog)
