"""What can go wrong, as a person would say it.

CostmodelError
+-- InputError          a name, number, layout or file that cannot be used (exit code 2)
|   +-- CatalogError    a YAML or JSON entry, with its file, line and field
+-- EquationError       the equations themselves are not well formed (a developer's mistake)
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class CostmodelError(Exception):
    """Base of every error that costmodel raises on purpose; its text is one clear sentence."""


class InputError(CostmodelError):
    """Something a user gave cannot be used; the message names it, says why and what would do."""

    @classmethod
    def unknown(cls, kind: str, name: str, choices: Iterable[str]) -> InputError:
        """An unknown name: `kind` says what was looked for, `choices` are the valid names.

        The nearest valid names are suggested.
        """
        known = sorted(set(choices))
        near = nearest(name, known)
        if near:
            hint = f"did you mean {' or '.join(near)}?"
        elif len(known) <= 24:
            hint = f"choose from {', '.join(known)}"
        else:
            hint = f"there are {len(known)} to choose from, {known[0]} to {known[-1]}"
        return cls(f"unknown {kind} {name[:60]!r}: {hint}")

    @classmethod
    def unless(cls, value: object, kind: type | tuple[type, ...], what: str) -> None:
        """Raise InputError unless `value` is of that type; `what` says what is expected, such as `a machine is text`."""
        if not isinstance(value, kind):
            raise cls(f"{what}, not {type(value).__name__}")


class CatalogError(InputError):
    """A catalog file that cannot be trusted: says file, line, field and what was expected."""

    def __init__(self, message: str, *, file: str = "", line: int = 0, field: str = "") -> None:
        place = ":".join(str(part) for part in (file, line) if part)
        self.file, self.line, self.field, self.message = file, line, field, message
        super().__init__(": ".join(part for part in (place, field, message) if part))


class EquationError(CostmodelError):
    """A system of equations is not well formed; the message names the equations."""


def nearest(name: str, choices: Iterable[str], limit: int = 3) -> list[str]:
    """Up to `limit` of `choices` that look like `name`, the likeliest first, ignoring case."""
    by_lower = {choice.lower(): choice for choice in choices}
    wanted = name.lower()
    close = get_close_matches(wanted, by_lower, n=limit, cutoff=0.6)
    inside = [choice for choice in sorted(by_lower) if len(wanted) >= 3 and wanted in choice]
    return [by_lower[choice] for choice in dict.fromkeys(close + inside)][:limit]
