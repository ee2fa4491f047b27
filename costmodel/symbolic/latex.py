"""Expressions as LaTeX, the functions of `nodes` included."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from sympy.printing.latex import LatexPrinter

from costmodel.symbolic import nodes
from costmodel.symbolic.nodes import Expression
from costmodel.symbolic.text import plain

_GREEK = re.compile("alpha|beta|gamma|delta|epsilon|eta|theta|kappa|lambda|mu|nu|rho|sigma|tau|phi|chi|psi|omega")
_NUMBER = re.compile(r"(-?[\d.]+)e([-+]?\d+)")


def latex(
    x: Expression, labels: Mapping[str, Sequence[str]] | None = None, show: Callable[[str], str] | None = None
) -> str:
    """An expression as LaTeX for math mode.

    Args:
        x: the expression.
        labels: the row labels of each axis.
        show: how a symbol is written, by name; `symbol` by default.

    """
    return str(_Printer(labels or {}, show or symbol).doprint(x))


def symbol(name: str) -> str:
    """A quantity's name: single and Greek letters as they are, words upright, row labels as an index."""
    stem, _, label = name.partition("[")
    if _GREEK.fullmatch(stem):
        head = rf"\{stem}"
    elif len(stem) == 1:
        head = stem
    else:
        head = words(stem)
    return head + (f"_{{{words(label.rstrip(']'))}}}" if label else "")


def words(text: str) -> str:
    """Words inside a formula."""
    return rf"\mathrm{{{_escaped(text)}}}" if re.fullmatch(r"\w+", text) else rf"\text{{{_escaped(text)}}}"


def number(text: str) -> str:
    """A number as text, powers of ten written out: 4.5e10 becomes 4.5 x 10^10."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return {"inf": r"\infty", "-inf": r"-\infty"}.get(text, text)
    return rf"{found[1]} \cdot 10^{{{int(found[2])}}}"


def _escaped(text: str) -> str:
    return re.sub(r"([_%&#$])", r"\\\1", text)


def _raised(text: str, exponent: str | None) -> str:
    return text if exponent is None else rf"\left({text}\right)^{{{exponent}}}"


_CASES = (nodes.select, nodes.chosen, nodes.stacked)


class _Printer(LatexPrinter):  # type: ignore[misc]
    """sympy's printer, taught the functions of `nodes`; `exp` is the power that a function is raised to."""

    def __init__(self, labels: Mapping[str, Sequence[str]], show: Callable[[str], str]) -> None:
        super().__init__({"mul_symbol": "dot", "fold_short_frac": False})
        self.labels, self.show = labels, show

    def _print_Symbol(self, x: Expression, style: str = "plain") -> str:  # noqa: ARG002, N802  sympy's own
        text = self.show(x.name)
        return rf"\left({text}\right)" if text.startswith("-") else text

    def _print_Float(self, x: Expression) -> str:  # noqa: N802  sympy's own
        return number(plain(float(x), digits=6))

    def _needs_mul_brackets(self, x: Expression, first: bool = False, last: bool = False) -> bool:
        goes_on = isinstance(x, nodes.Reduction) and not last
        return goes_on or isinstance(x, _CASES) or bool(super()._needs_mul_brackets(x, first, last))

    def _needs_add_brackets(self, x: Expression) -> bool:
        return isinstance(x, _CASES) or bool(super()._needs_add_brackets(x))

    def _listed(self, x: Expression) -> str:
        return ", ".join(map(self._print, x.args))

    def _print_smallest(self, x: Expression, exp: str | None = None) -> str:
        return _raised(rf"\min\left({self._listed(x)}\right)", exp)

    def _print_largest(self, x: Expression, exp: str | None = None) -> str:
        return _raised(rf"\max\left({self._listed(x)}\right)", exp)

    def _print_ceil_divide(self, x: Expression, exp: str | None = None) -> str:
        return _raised(rf"\left\lceil \frac{{{self._print(x.args[0])}}}{{{self._print(x.args[1])}}} \right\rceil", exp)

    def _print_floor_divide(self, x: Expression, exp: str | None = None) -> str:
        return _raised(
            rf"\left\lfloor \frac{{{self._print(x.args[0])}}}{{{self._print(x.args[1])}}} \right\rfloor", exp
        )

    def _print_ceil_log2(self, x: Expression, exp: str | None = None) -> str:
        return _raised(rf"\left\lceil \log_2 {self._bracketed(x.args[0])} \right\rceil", exp)

    def _print_floor_log2(self, x: Expression, exp: str | None = None) -> str:
        return _raised(rf"\left\lfloor \log_2 {self._bracketed(x.args[0])} \right\rfloor", exp)

    def _print_nearest_whole(self, x: Expression, exp: str | None = None) -> str:
        return _raised(rf"\left\lfloor {self._print(x.args[0])} \right\rceil", exp)

    def _print_ones_below(self, x: Expression, exp: str | None = None) -> str:
        return _raised(rf"\text{{ones below }} {self._bracketed(x.args[0])}", exp)

    def _print_none_drawn(self, x: Expression, exp: str | None = None) -> str:
        population, marked, draws = x.args
        ways = [rf"\binom{{{self._print(of)}}}{{{self._print(draws)}}}" for of in (population - marked, population)]
        return _raised(rf"\frac{{{ways[0]}}}{{{ways[1]}}}", exp)

    def _print_select(self, x: Expression, exp: str | None = None) -> str:
        condition, value, otherwise = map(self._print, x.args)
        return _raised(self._cases([(value, condition), (otherwise, r"\text{otherwise}")]), exp)

    def _print_chosen(self, x: Expression, exp: str | None = None) -> str:
        choice = self._print(x.args[0])
        lines = [
            (self._print(formula), f"{choice} = {r', '.join(map(words, labels))}")
            for formula, labels in x.branches.items()
        ]
        return _raised(self._cases(lines), exp)

    def _print_stacked(self, x: Expression, exp: str | None = None) -> str:
        lines = [
            (self._print(formula), f"{words(x.axis)} = {self._label(x.axis, i)}")
            for i, formula in enumerate(x.args[1:])
        ]
        return _raised(self._cases(lines), exp)

    def _print_at_row(self, x: Expression, exp: str | None = None) -> str:
        label = self._label(x.axis, int(x.args[2]))
        return _raised(rf"\left. {self._print(x.args[0])} \right|_{{{label}}}", exp)

    def _print_total_over(self, x: Expression, exp: str | None = None) -> str:
        return self._over(r"\sum", x, exp)

    def _print_smallest_over(self, x: Expression, exp: str | None = None) -> str:
        return self._over(r"\min", x, exp)

    def _print_largest_over(self, x: Expression, exp: str | None = None) -> str:
        return self._over(r"\max", x, exp)

    def _print_at_smallest(self, x: Expression, exp: str | None = None) -> str:
        return self._at(r"\arg\min", x, exp)

    def _print_at_largest(self, x: Expression, exp: str | None = None) -> str:
        return self._at(r"\arg\max", x, exp)

    def _over(self, sign: str, x: Expression, exp: str | None) -> str:
        return _raised(rf"{sign}_{{{words(x.axis)}}} {self._bracketed(x.args[0])}", exp)

    def _at(self, sign: str, x: Expression, exp: str | None) -> str:
        row = rf"{words(x.axis)} = {sign} {self._bracketed(x.args[2])}"
        return _raised(rf"\left. {self._print(x.args[0])} \right|_{{{row}}}", exp)

    def _bracketed(self, x: Expression) -> str:
        """Brackets around all that could be read as going on beyond the function."""
        text = self._print(x)
        plain = (
            x.is_Symbol or (x.is_Number and not x.is_negative) or isinstance(x, (nodes.Extreme, nodes.RoundedDivision))
        )
        return text if plain else rf"\left({text}\right)"

    def _label(self, axis: str, row: int) -> str:
        return words(self.labels[axis][row]) if axis in self.labels else str(row)

    @staticmethod
    def _cases(lines: Sequence[tuple[str, str]]) -> str:
        body = r" \\ ".join(rf"{value} & {when}" for value, when in lines)
        return rf"\begin{{cases}} {body} \end{{cases}}"
