"""The Typer application: which commands there are, in the order in which help lists them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from costmodel.cli import elsewhere
from costmodel.errors import InputError
from costmodel.version import __version__

COMMANDS: tuple[str, ...] = (
    *("plan", "train", "collective", "kernel", "explain"),
    *("validate", "calibrate", "hardware", "models", "catalog"),
)
"""Modules of this package, one a command, each with its Typer app `app`."""

SUMMARY = """What a training run, a collective or a kernel costs on a TPU or GPU cluster, before you rent it.

Exit codes: 0 answered, 1 it does not fit or a check failed, 2 bad input, 3 internal error."""


class Group(TyperGroup):
    """A group of commands that answers an unknown name with the nearest one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that `args` starts with; raises InputError for a name that is none."""
        if not ctx.resilient_parsing and not args[0].startswith("-") and args[0] not in self.commands:
            meant = elsewhere.command(args[0], self.commands)
            if meant:
                raise InputError(f"unknown command {args[0]!r}: did you mean {meant}?")
            raise InputError.unknown("command", args[0], self.commands)
        return super().resolve_command(ctx, args)


class MachineCommand(TyperCommand):
    """A command with --on, whose help ends in the clusters there are."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples, then the names."""
        from costmodel.catalog.catalog import Catalog

        super().format_epilog(ctx, formatter)
        with formatter.section("Clusters"):
            names = ", ".join(Catalog.open().names("clusters"))
            formatter.write(
                textwrap.indent(textwrap.fill(names, formatter.width - 2, break_on_hyphens=False), "  ") + "\n"
            )


def new_app(name: str | None = None, summary: str | None = None) -> typer.Typer:
    """An empty app in the house's style: plain help, no rich, no tracebacks; a `name` makes it a group."""
    return typer.Typer(
        cls=Group,
        name=name,
        help=summary,
        add_completion=name is None,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def examples(*lines: str) -> str:
    """The end of a command's help: command lines that can be copied."""
    return "\b\nExamples:\n" + "\n".join(f"  costmodel {line}" for line in lines)


def build(arguments: Sequence[str] = ()) -> typer.Typer:
    """The whole app, or only the command that `arguments` start with: loading the others takes time."""
    app = new_app(summary=SUMMARY)
    app.callback()(_global_options)
    for command in arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS:
        app.add_typer(import_module(f"costmodel.cli.{command}").app)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"costmodel {__version__}")
        raise typer.Exit


def _global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of every command; what they do happens in their callbacks."""
