"""A tree of definitions as text for a terminal, as Markdown, as LaTeX and as flat records."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

from costmodel.symbolic.explain import Quantity
from costmodel.symbolic.latex import number, symbol, words
from costmodel.symbolic.point import Decision
from costmodel.symbolic.text import plain

Show = Callable[[float, str], str]
"""How a value is written, given its SI number and the label of its unit."""

_LONG = 60


def as_text(tree: Quantity, width: int = 88, show: Show = plain) -> str:
    """A tree as indented lines of at most `width` characters where spaces allow; sources are numbered below it."""
    sources: dict[str, int] = {}
    lines: list[str] = []
    for depth, q, again in tree.walk():
        what = "as above" if again else f"{q.equation.meaning}{_notes(q, sources)}"
        lines += _filled(f"{q.shown}{_valued(q, show)}   {what}", 2 * depth, width)
        if not again:
            for line in _formulas(q):
                lines += _filled(line, 2 * depth + 4, width)
    if sources:
        lines += ["", *(line for source, i in sources.items() for line in _filled(f"[{i}] {source}", 0, width))]
    return "\n".join(lines)


def as_markdown(tree: Quantity, show: Show = plain) -> str:
    """A tree as a nested list, its formulas between dollar signs."""
    sources: dict[str, int] = {}
    lines: list[str] = []
    for depth, q, again in tree.walk():
        indent = "  " * depth
        meaning = "as above" if again else f"{q.equation.meaning}{_notes(q, sources)}"
        lines.append(f"{indent}- `{q.shown}`{_valued(q, show)}: {meaning}")
        if not again and q.latex:
            sides = [symbol(q.shown), q.latex, q.numbers_latex, _number_latex(q)]
            lines.append(f"{indent}  ${' = '.join(side for side in dict.fromkeys(sides) if side)}$")
            lines += [f"{indent}  {said(decision)}" for decision in q.decisions]
    lines += [f"\n[{i}] {source}" for source, i in sources.items()]
    return "\n".join(lines)


def as_latex(tree: Quantity) -> str:
    """The definitions of a tree as one align environment (amsmath), inputs with their values."""
    lines = []
    for _, q, again in tree.walk():
        if again:
            continue
        sides = [q.latex, q.numbers_latex, _number_latex(q)]
        sides = [side for side in dict.fromkeys(sides) if side] or [r"\text{input}"]
        first, *rest = sides
        meaning = rf" && {words(q.equation.meaning)}"
        lines.append(rf"{symbol(q.shown)} &= {first}{meaning}")
        lines += [f"  &= {side}" for side in rest]
    body = " \\\\\n".join(lines)
    return f"\\begin{{align*}}\n{body}\n\\end{{align*}}"


def as_records(tree: Quantity) -> list[dict[str, Any]]:
    """One flat record a quantity, in reading order; `depth` tells the tree."""
    return [
        {
            "depth": depth,
            **_told(q),
            "rows": ", ".join(f"{axis}={label}" for axis, label in q.rows),
            "taken": "; ".join(map(said, q.decisions)),
        }
        for depth, q, again in tree.walk()
        if not again
    ]


def as_nested(tree: Quantity) -> dict[str, Any]:
    """A tree as nested objects, for JSON. What was told before comes again without its parts."""
    path: list[dict[str, Any]] = []
    for depth, q, _ in tree.walk():
        told = {
            **_told(q),
            "rows": dict(q.rows),
            "taken": [said(decision) for decision in q.decisions],
            "latex": q.latex,
            "parts": [],
        }
        path[depth:] = [told]
        if depth:
            path[depth - 1]["parts"].append(told)
    return path[0]


def _told(q: Quantity) -> dict[str, Any]:
    """What records and objects say of a quantity alike."""
    e = q.equation
    return {
        "quantity": q.name,
        "rows": "",
        "value": q.held or q.value,
        "unit": q.unit,
        "meaning": e.meaning,
        "expression": q.text,
        "numbers": q.numbers,
        "taken": "",
        "owner": e.owner,
        "source": e.source,
        "valid": e.valid,
        "approximate": e.approximate,
    }


def said(decision: Decision) -> str:
    """A decision in words."""
    taken = _short(decision.taken)
    if decision.kind == "if":
        return f"since {taken}"
    if decision.kind == "choose":
        return f"{decision.over} is {taken}"
    over = f" over {decision.over}" if decision.over else ""
    if decision.kind == "total":
        whole = sum(value for _, value in decision.options)
        share = f" ({dict(decision.options)[decision.taken] / whole:.0%})" if whole else ""
        return f"largest part{over}: {taken}{share}"
    if decision.tied:
        names = [taken, *map(_short, decision.tied)]
        return f"{decision.kind}{over}: bound by {'both ' if len(names) == 2 else ''}{' and '.join(names)}"
    following = decision.runner_up
    after = f", then {_short(following[0])} ({plain(following[1])})" if following else ""
    return f"{decision.kind}{over}: {taken}{after}"


def _valued(q: Quantity, show: Show) -> str:
    if q.value is None:
        return f" [{q.unit}]" if q.unit else ""
    return f" = {q.held or show(q.value, q.unit)}"


def _notes(q: Quantity, sources: dict[str, int]) -> str:
    """Owner, validity and the number of the source, behind the meaning."""
    e = q.equation
    words_ = [e.owner, f"valid: {e.valid}" if e.valid else "", f"approximate: {e.approximate}" if e.approximate else ""]
    known = "; ".join(word for word in words_ if word)
    mark = f" [{sources.setdefault(e.source, len(sources) + 1)}]" if e.source else ""
    return (f" ({known})" if known else "") + mark


def _formulas(q: Quantity) -> list[str]:
    """The definition, the same with numbers where that says more than the value, and what was decided."""
    if not q.text:
        return []
    lines = [f"= {q.text}"]
    if q.numbers:
        lines.append(f"= {q.numbers}")
    return lines + [said(decision) for decision in q.decisions]


def _number_latex(q: Quantity) -> str:
    if q.value is None:
        return ""
    return words(q.held) if q.held else f"{number(plain(q.value))}" + (rf"\ \text{{{q.unit}}}" if q.unit else "")


def _short(text: str) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 3].rstrip() + "..."


def _filled(line: str, indent: int, width: int) -> list[str]:
    """A line, broken where it is too long; what follows is indented further."""
    first, later = " " * indent, " " * (indent + 4)
    return textwrap.wrap(
        line,
        max(width, indent + 40),
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
