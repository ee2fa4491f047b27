"""Chapters as a page of reference: every quantity with its unit, definition, meaning, validity and source."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType

from costmodel.symbolic.chapters import Chapter
from costmodel.symbolic.system import Equation
from costmodel.symbolic.text import TextWriter


def chapters(module: ModuleType) -> list[type[Chapter]]:
    """The chapters that a module defines, in its order."""
    found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Chapter)]
    return [chapter for chapter in found if chapter.__module__ == module.__name__]


def own(chapter: type[Chapter]) -> list[Equation]:
    """The quantities that the body of a chapter names itself, those of its parts left out."""
    equations = chapter.system.equations
    return [
        equations[name]
        for name, value in vars(chapter).items()
        if name in equations and value == equations[name].symbol
    ]


def section(module: ModuleType, labels: Mapping[str, Sequence[str]] | None = None) -> str:
    """Markdown of one module: its chapters, their inputs and equations, and the sources numbered below."""
    summary, _, more = inspect.cleandoc(module.__doc__ or "").partition("\n\n")
    name = module.__name__.partition(".")[2].replace(".", "/")
    sources: dict[str, int] = {}
    parts = [f"## {name}.py", summary, more]
    for chapter in chapters(module):
        parts += [f"### {chapter.__name__}", inspect.getdoc(chapter) or ""]
        equations = own(chapter)
        inputs = [_input(e) for e in equations if e.is_input]
        parts += ["Given:", "\n".join(inputs), "Defined:"] if inputs else []
        writer = TextWriter(labels)
        parts.append("\n".join(_line(e, writer, sources) for e in equations if not e.is_input))
    parts.append("\n".join(f"{number}. {source}" for source, number in sources.items()))
    return "\n\n".join(part for part in parts if part)


def _input(e: Equation) -> str:
    labels = f" ({', '.join(e.labels)})" if e.labels else ""
    return f"- `{e.name}`{_unit(e)}: {e.meaning}{labels}"


def _line(e: Equation, writer: TextWriter, sources: dict[str, int]) -> str:
    return f"- `{e.name}`{_unit(e)} = `{writer.write(e.expression)}`: {'; '.join(_said(e, sources))}"


def _said(e: Equation, sources: dict[str, int]) -> Iterator[str]:
    yield e.meaning
    if e.valid:
        yield f"valid: {e.valid}"
    if e.approximate:
        yield f"not exact: {e.approximate}"
    if e.source:
        yield f"source {sources.setdefault(e.source, len(sources) + 1)}"


def _unit(e: Equation) -> str:
    return f" [{e.unit.label}]" if e.unit.label else ""
