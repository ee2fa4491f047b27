"""A chapter of equations as a class body: each assignment names the symbol on its left, so no name is written twice.

    class Ring(Chapter):
        '''Ranks in a cycle.'''

        n = given(count, "ranks in the group")
        S = given(bytes_, "the whole gathered array")
        W = given(bytes_per_second, "one link, one way")

        shard = equation(bytes_, S / n, "what one rank starts with")

`Ring.system` is then the EquationSystem that the body defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from costmodel.symbolic.nodes import Axis, Expression
from costmodel.symbolic.system import EquationSystem
from costmodel.symbolic.units import Unit, count


@dataclass(frozen=True)
class _Draft:
    """What given, choice, equation and part return; the class body puts the symbol in its place before its next line."""

    method: str
    arguments: dict[str, Any] = field(default_factory=dict)


def given(unit: Unit, meaning: str, *axes: Axis, owner: str = "") -> Expression:
    """An input; `axes` are those that it varies over, `owner` says where its value comes from."""
    return _Draft("input", {"unit": unit, "meaning": meaning, "axes": axes, "owner": owner})


def column(unit: Unit, meaning: str, owner: str = "layout") -> Expression:
    """An input that is a column of the table of layouts: it varies over an axis of its own name."""
    return _Draft("column", {"unit": unit, "meaning": meaning, "owner": owner})


def choice(labels: Sequence[str], meaning: str, *axes: Axis, owner: str = "layout") -> Expression:
    """An input that holds one of `labels`, for `choose`."""
    return _Draft("input", {"unit": count, "meaning": meaning, "axes": axes, "owner": owner, "labels": labels})


def equation(
    unit: Unit, expression: Expression, meaning: str, *, source: str = "", valid: str = "", approximate: str = ""
) -> Expression:
    """A definition; `approximate` says why, where the form is not exact."""
    words = {"source": source, "valid": valid, "approximate": approximate}
    return _Draft("define", {"unit": unit, "expression": expression, "meaning": meaning, **words})


def part(chapter: type[Chapter], *, shared: bool = False, **bind: Expression) -> Any:
    """The equations of another chapter, here: prefixed with the name on the left unless `shared`, inputs bound as given."""
    return _Draft("include", {"chapter": chapter, "shared": shared, "bind": bind})


class _Body(dict[str, Any]):
    """The namespace of a chapter's class body."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.system = EquationSystem(name)

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(value, _Draft):
            arguments = dict(value.arguments)
            if value.method == "include":
                prefix = "" if arguments["shared"] else f"{name}_"
                value = self.system.include(arguments["chapter"].system, prefix, arguments["bind"])
            elif value.method == "column":
                value = self.system.input(name, axes=(Axis(name),), **arguments)
            else:
                value = getattr(self.system, value.method)(name, **arguments)
        super().__setitem__(name, value)


class _ChapterType(type):
    system: EquationSystem

    @classmethod
    def __prepare__(cls, name: str, bases: tuple[type, ...], /, **_: Any) -> _Body:
        return _Body(name)

    def __new__(cls, name: str, bases: tuple[type, ...], body: _Body) -> _ChapterType:
        made = super().__new__(cls, name, bases, dict(body))
        made.system = body.system
        return made


class Chapter(metaclass=_ChapterType):
    """Subclass it to write equations; `.system` is the EquationSystem that the body defined."""

    system: ClassVar[EquationSystem]
