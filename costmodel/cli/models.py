"""`costmodel models`: which models are known, and what one is made of."""

from __future__ import annotations

from typing import Annotated

import typer

from costmodel.cli.answering import Catalog, answering
from costmodel.cli.app import examples, new_app
from costmodel.report import Answer

app = new_app("models", "The models that are known, and what one is made of.")


@app.command("list", epilog=examples("models list", "models list llama", "models list --format csv -o models.csv"))
@answering
def list_all(
    catalog: Catalog,
    named: Annotated[
        str, typer.Argument(metavar="[TEXT]", show_default=False, help="Those with this in their name; default: all.")
    ] = "",
) -> Answer:
    """Every model of the catalog with its parameter counts."""
    from costmodel.studies.models import list_models

    return list_models(catalog, named=named)


@app.command(epilog=examples("models show llama-3.1-405b", "models show 30B", "models show llama-3-70b --format json"))
@answering
def show(
    name: Annotated[
        str, typer.Argument(metavar="MODEL", help="A name, a size such as 7B, or the path of a config.json.")
    ],
    catalog: Catalog,
) -> Answer:
    """One model: its shape and its parameters, item by item."""
    from costmodel.studies.models import show_model

    return show_model(name, catalog)
