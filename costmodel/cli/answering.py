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
from costmodel.report.write import ENDINGS

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
    catalog. It writes the answer and exits with the answer's code. A study that has a parameter `output` of its own makes
    something else than the answer: it gets every name that does not end as a format does, and the answer is printed.
    """
    signature = inspect.signature(study, eval_str=True)
    wants_catalog = "catalog" in signature.parameters
    makes_output = "output" in signature.parameters

    @functools.wraps(study)
    def command(
        *, format: Format | None, output: Path | None, long: bool, catalog: Path | None, **options: object
    ) -> None:
        from costmodel.catalog.catalog import Catalog

        opened = Catalog.open(catalog)
        if wants_catalog:
            options["catalog"] = opened
        if makes_output:
            options["output"] = None if output is None or output.suffix.lower() in ENDINGS else output
            output = None if options["output"] else output
        answer = study(**options)
        write(answer, format, output, long=long, catalog_hash=opened.hash)
        raise typer.Exit(answer.exit_code)

    own = [parameter for name, parameter in signature.parameters.items() if name != "catalog"]
    typed: Any = command
    shared = [parameter for parameter in _shared() if parameter.name not in {one.name for one in own}]
    typed.__signature__ = signature.replace(parameters=[*own, *shared], return_annotation=None)
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
