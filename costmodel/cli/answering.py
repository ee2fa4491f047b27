"""What every command shares: the options of output and catalog, and the way from answer to exit code."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costmodel.cli.options import folder
from costmodel.report import Answer, Format, write

if TYPE_CHECKING:
    from costmodel.catalog.catalog import Catalog
else:
    Catalog = object  # Typer evaluates annotations, and loading the real one takes YAML: help does without

__all__ = ["Catalog", "answering"]

FormatOption = Annotated[
    Format | None, typer.Option("--format", help="How to print; default: the ending of -o, else table.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to this file; .csv, .json, .md or .txt sets the format."),
]
LongOption = Annotated[bool, typer.Option("--long", help="CSV with one row an item instead of one an answer.")]
CatalogOption = Annotated[
    Path | None,
    typer.Option(
        "--catalog",
        parser=folder,
        metavar="FOLDER",
        envvar="COSTMODEL_CATALOG",
        help="Your own entries, added to the catalog or over it.",
    ),
]


def answering(study: Callable[..., Answer]) -> Callable[..., None]:
    """Make a command of `study`, a function of its options that returns an Answer.

    The command gets --format, --output, --long and --catalog besides; a parameter `catalog` of `study` receives the
    catalog. It writes the answer and exits with the answer's code.
    """
    signature = inspect.signature(study, eval_str=True)
    wants_catalog = "catalog" in signature.parameters

    @functools.wraps(study)
    def command(
        *, format: Format | None, output: Path | None, long: bool, catalog: Path | None, **options: object
    ) -> None:
        from costmodel.catalog.catalog import Catalog

        opened = Catalog.open(catalog)
        if wants_catalog:
            options["catalog"] = opened
        answer = study(**options)
        write(answer, format, output, long=long, catalog_hash=opened.hash)
        raise typer.Exit(answer.exit_code)

    own = [parameter for name, parameter in signature.parameters.items() if name != "catalog"]
    typed: Any = command
    typed.__signature__ = signature.replace(parameters=[*own, *_shared()], return_annotation=None)
    return command


def _shared() -> list[inspect.Parameter]:
    defaults: dict[str, tuple[object, object]] = {
        "format": (FormatOption, None),
        "output": (OutputOption, None),
        "long": (LongOption, False),
        "catalog": (CatalogOption, None),
    }
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in defaults.items()
    ]
