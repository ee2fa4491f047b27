"""Expressions as text and as LaTeX."""

import re

import pytest
import sympy as sp
from hypothesis import given

from costmodel.symbolic import (
    Axis,
    at_best,
    at_worst,
    best,
    both,
    ceil_divide,
    ceil_log2,
    choose,
    cube_root,
    either,
    equal,
    floor_divide,
    floor_log2,
    infinite,
    largest,
    nearest_whole,
    none_drawn,
    ones_below,
    row,
    rows,
    select,
    smallest,
    square_root,
    total,
    worst,
)
from costmodel.symbolic.latex import latex, number, symbol
from costmodel.symbolic.text import TextWriter
from tests.symbolic.random_systems import KIND as DRAWN_KIND
from tests.symbolic.random_systems import PHASE, systems

KIND = Axis("kind", ("dense", "big one"))
LABELS = {KIND.name: KIND.labels}
a, b, tp, mode = sp.symbols("a b along_tp mode")

FORMS = [
    (smallest(a, b) * 2, "2 * smallest(a, b)", r"2 \cdot \min\left(a, b\right)"),
    (largest(a, b) ** 2, "largest(a, b)**2", r"\left(\max\left(a, b\right)\right)^{2}"),
    (ceil_divide(a + b, tp), "ceil((a + b) / along_tp)", r"\left\lceil \frac{a + b}{\mathrm{along\_tp}} \right\rceil"),
    (floor_divide(a, b), "floor(a / b)", r"\left\lfloor \frac{a}{b} \right\rfloor"),
    (ceil_log2(a + 1), "ceil_log2(a + 1)", r"\left\lceil \log_2 \left(a + 1\right) \right\rceil"),
    (floor_log2(a), "floor_log2(a)", r"\left\lfloor \log_2 a \right\rfloor"),
    (ones_below(a), "ones_below(a)", r"\text{ones below } a"),
    (nearest_whole(a / 2), "nearest_whole(a / 2)", r"\left\lfloor \frac{a}{2} \right\rceil"),
    (none_drawn(a, b, 2), "none_drawn(a, b, 2)", r"\frac{\binom{a - b}{2}}{\binom{a}{2}}"),
    (
        select(a > 1, b, 0) + a,
        "a + (b if a > 1 else 0)",
        r"a + \left(\begin{cases} b & a > 1 \\ 0 & \text{otherwise} \end{cases}\right)",
    ),
    (
        select(both(a > 1, equal(b, 2)), 1, infinite),
        "1 if (b == 2) and (a > 1) else inf",
        r"\begin{cases} 1 & b = 2 \wedge a > 1 \\ \infty & \text{otherwise} \end{cases}",
    ),
    (
        select(either(a > 1, b > 2), 1, 0),
        "1 if (a > 1) or (b > 2) else 0",
        r"\begin{cases} 1 & a > 1 \vee b > 2 \\ 0 & \text{otherwise} \end{cases}",
    ),
    (
        choose(mode, {"1f1b": a, "zb-h1": 2 * b}),
        "choose(mode, 1f1b: a, zb-h1: 2 * b)",
        r"\begin{cases} a & \mathrm{mode} = \mathrm{1f1b} \\ 2 \cdot b & \mathrm{mode} = \text{zb-h1} \end{cases}",
    ),
    (
        rows(KIND, {"dense": a, "big one": b}),
        "rows(kind, dense: a, big one: b)",
        r"\begin{cases} a & \mathrm{kind} = \mathrm{dense} \\ b & \mathrm{kind} = \text{big one} \end{cases}",
    ),
    (row(a + b, KIND, "big one"), "(a + b)[big one]", r"\left. a + b \right|_{\text{big one}}"),
    (
        total(a + b, KIND) * tp * 2,
        "2 * along_tp * total(a + b over kind)",
        r"2 \cdot \mathrm{along\_tp} \cdot \sum_{\mathrm{kind}} \left(a + b\right)",
    ),
    (total(a, KIND) * sp.Symbol("z"), "z * total(a over kind)", r"z \cdot \sum_{\mathrm{kind}} a"),
    (best(a * b, KIND), "best(a * b over kind)", r"\min_{\mathrm{kind}} \left(a \cdot b\right)"),
    (worst(a, KIND), "worst(a over kind)", r"\max_{\mathrm{kind}} a"),
    (at_best(a, b, KIND), "at_best(a, b over kind)", r"\left. a \right|_{\mathrm{kind} = \arg\min b}"),
    (
        at_worst(a, 2 * b, KIND),
        "at_worst(a, 2 * b over kind)",
        r"\left. a \right|_{\mathrm{kind} = \arg\max \left(2 \cdot b\right)}",
    ),
    (cube_root(a) + square_root(b), "cbrt(a) + sqrt(b)", r"\sqrt[3]{a} + \sqrt{b}"),
    (sp.log(a), "log(a)", r"\log{\left(a \right)}"),
    (a**2 / b**3, "a**2 / b**3", r"\frac{a^{2}}{b^{3}}"),
]


@pytest.mark.parametrize(("x", "text", "tex"), FORMS, ids=[text for _, text, _ in FORMS])
def test_every_function_in_both_forms(x, text, tex):
    assert TextWriter(LABELS).write(x) == text
    assert latex(x, LABELS) == tex


def test_rows_without_known_labels_are_numbered():
    assert TextWriter().write(row(a, KIND, "big one")) == "a[1]"
    assert latex(row(a, KIND, "big one")) == r"\left. a \right|_{1}"


def test_symbols_in_latex():
    names = {
        "S": "S",
        "alpha": r"\alpha",
        "step_time": r"\mathrm{step\_time}",
        "w[qkv, big one]": r"w_{\text{qkv, big one}}",
    }
    assert {name: symbol(name) for name in names} == names


def test_numbers_in_latex():
    numbers = {"4.5e10": r"4.5 \cdot 10^{10}", "1e-7": r"1 \cdot 10^{-7}", "8": "8", "-2.5": "-2.5", "inf": r"\infty"}
    assert {text: number(text) for text in numbers} == numbers


def test_numbers_in_place_of_symbols_keep_their_brackets():
    values = {"a": "-3", "b": "4.5e10"}
    assert TextWriter({}, values.__getitem__).write(a * b + a**2) == "(-3)**2 + (-3) * 4.5e10"
    assert latex(a**2 * b, {}, lambda name: number(values[name])) == r"\left(-3\right)^{2} \cdot 4.5 \cdot 10^{10}"


def test_symbols_are_noted_in_the_order_in_which_they_are_read():
    writer = TextWriter()
    assert writer.write(tp / b - a + b) == "along_tp / b + b - a"
    assert list(writer.read) == ["along_tp", "b", "a"]


@given(systems())
def test_random_expressions_print_with_balanced_brackets(drawn):
    labels = {DRAWN_KIND.name: DRAWN_KIND.labels, PHASE.name: PHASE.labels}
    for name in drawn.names:
        x = drawn.system[name].expression
        text, tex = TextWriter(labels).write(x), latex(x, labels)
        assert text.count("(") == text.count(")")
        assert tex.count("{") == tex.count("}")
        assert len(re.findall(r"\\left\b", tex)) == len(re.findall(r"\\right\b", tex))
        assert tex.count(r"\begin{cases}") == tex.count(r"\end{cases}")
        written = set(re.findall(r"[a-z]\w*", text))
        assert {s.name for s in x.free_symbols} <= written
