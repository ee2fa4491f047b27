"""Markdown tables, for an issue, a pull request or a wiki."""

from __future__ import annotations

from tabulate import tabulate

from costmodel.report.answer import Answer, Table
from costmodel.report.tables import alignments, cell

_ESCAPES = str.maketrans({"\\": r"\\", "|": r"\|", "<": "&lt;", "\n": "<br>", "\r": " "})


def render(answer: Answer) -> str:
    """All tables of `answer`, each under its title, notes as a list or as a code block."""
    return "\n\n".join(_table(table) for table in answer.tables()) + "\n"


def escaped(text: str) -> str:
    """`text` as it can stand in a cell: bars, backslashes, tags and line breaks made harmless."""
    return text.translate(_ESCAPES)


def _table(table: Table) -> str:
    parts = [f"### {escaped(table.title)}"] if table.title else []
    rows = [[cell(value) for value in row] for row in table.rows]
    if table.headers or rows:
        sides = alignments(rows) or None
        parts.append(
            tabulate(
                [[escaped(text) for text in row] for row in rows],
                headers=[escaped(text.replace("\n", " ")) for text in table.headers],
                tablefmt="pipe",
                disable_numparse=True,
                colalign=sides,
            )
        )
    loose = [f"- {escaped(note)}" for note in table.notes if "\n" not in note]
    if loose:
        parts.append("\n".join(loose))
    parts += [f"```text\n{note}\n```" for note in table.notes if "\n" in note]
    return "\n\n".join(parts)
