"""Random systems of equations that use every node, and a slow second opinion on what their quantities are.

Steps (divisions rounded up, comparisons, rows picked by a key) are fed whole numbers only: these are exact in every
version, so that no rounding error can turn into another branch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st
from sympy.logic.boolalg import And, Not, Or

from costmodel.symbolic import (
    Axis,
    EquationSystem,
    at_best,
    at_worst,
    best,
    both,
    ceil_divide,
    ceil_log2,
    choose,
    count,
    cube_root,
    either,
    equal,
    floor_divide,
    floor_log2,
    largest,
    nearest_whole,
    nodes,
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
from costmodel.symbolic.checks import axes_of

KIND = Axis("kind", ("dense", "sparse", "head"))
PHASE = Axis("phase", ("forward", "backward"))
SIZE = Axis("size")
COLUMNS = ("tp", "pp", "dp")
MODES = ("plain", "eager", "lazy")
LEVELS = (
    {"layouts": ["tp", "pp", "dp"]},
    {"by_tp": ["tp"], "layouts": ["tp", "pp", "dp"]},
    {"by_tp": ["tp"], "by_pp": ["pp"], "by_both": ["tp", "pp"], "layouts": ["tp", "pp", "dp"]},
    {"alone": [], "by_dp": ["dp"], "by_pp": ["pp"], "layouts": ["tp", "pp", "dp"]},
)
WHOLE = {"repeats": (KIND,), "micro": (SIZE,), "ways": ()}
REAL = {"alpha": (), "weight": (KIND,), "share": (PHASE,), "cost": (KIND, PHASE), "stretch": (SIZE,)}
BITS = {"ceil_log2": ceil_log2, "floor_log2": floor_log2, "ones_below": ones_below}
WHOLE_KINDS = ("sum", "product", "up", "down", *BITS, "extremes", "nearest", "along", "rows", "select")
AT = {"at_best": at_best, "at_worst": at_worst}
REAL_KINDS = (
    *("sum", "less", "product", "ratio", "extremes", "root", "power", "log", "halves", "whole", "chance"),
    *("along", "rows", "select", "choose", *AT),
)


@dataclass(frozen=True)
class Drawn:
    """A system and its defined quantities, in order."""

    system: EquationSystem
    names: tuple[str, ...]


class _Maker:
    """Draws expressions over what has been defined so far."""

    def __init__(self, draw, system):
        self.draw, self.system = draw, system
        self.whole = [sp.Symbol(name) for name in (*COLUMNS, *WHOLE)]
        self.real = [sp.Symbol(name) for name in REAL]

    def pick(self, choices):
        return self.draw(st.sampled_from(choices))

    def axes(self, x):
        return axes_of(x, self.system.axes())

    def along(self, x):
        """A reduction of x over an axis that it has, or x itself."""
        held = [axis for axis in (KIND, PHASE) if axis.name in self.axes(x)]
        if not held:
            return self.along(x * sp.Symbol("repeats"))
        axis = self.pick(held)
        how = self.pick(("total", "best", "worst", "row"))
        if how == "row":
            return row(x, axis, self.pick(axis.labels))
        return {"total": total, "best": best, "worst": worst}[how](x, axis)

    def whole_number(self, depth, kind=None):
        """A whole number of at least 1; `kind` is its outermost function."""
        if depth == 0 or (kind is None and self.draw(st.integers(0, 3)) == 0):
            return self.pick([*self.whole, sp.Integer(1), sp.Integer(7)])
        a, b = self.whole_number(depth - 1), self.whole_number(depth - 1)
        kind = kind or self.pick(WHOLE_KINDS)
        if kind == "sum":
            return a + b
        if kind == "product":
            return smallest(a * b, 10**6)
        if kind == "up":
            return ceil_divide(a, b + 1)
        if kind == "down":
            return floor_divide(a, b + 1) + 1
        if kind in BITS:
            return BITS[kind](a + 1) + 1
        if kind == "extremes":
            return self.pick((smallest, largest))(a, b, self.whole_number(0))
        if kind == "nearest":
            return nearest_whole(a / 2) + b
        if kind == "along":
            return smallest(self.along(a), 10**6)
        if kind == "rows":
            return rows(PHASE, {"forward": a, "backward": b})
        return select(self.condition(depth - 1), a, b)

    def condition(self, depth):
        a, b = self.whole_number(depth), self.whole_number(depth)
        simple = self.pick((sp.Gt, sp.Le, sp.Ne))(a, b, evaluate=False)
        kind = self.pick(("simple", "equal", "both", "either", "not"))
        if kind == "simple":
            return simple
        other = equal(b, self.whole_number(0))
        if kind == "equal":
            return other
        if kind == "not":
            return Not(both(simple, other))
        return (both if kind == "both" else either)(simple, other)

    def number(self, depth, kind=None):
        """A positive number; `kind` is its outermost function."""
        if depth == 0 or (kind is None and self.draw(st.integers(0, 4)) == 0):
            return self.pick([*self.real, *self.whole, sp.Rational(3, 7)])
        kind = kind or self.pick(REAL_KINDS)
        if kind == "whole":
            return self.whole_number(depth)
        if kind == "chance":
            return 1 + none_drawn(self.whole_number(depth) + 5, self.whole_number(0), self.pick((0, 1, 2, 3)))
        a, b = self.number(depth - 1), self.number(depth - 1)
        simple = {
            "sum": lambda: a + b,
            "less": lambda: largest(a - b, sp.Rational(1, 8)),
            "product": lambda: smallest(a * b, 10**9),
            "ratio": lambda: a / (b + 1),
            "extremes": lambda: self.pick((smallest, largest))(a, b, self.number(0)),
            "root": lambda: self.pick((cube_root, square_root))(a),
            "power": lambda: smallest(a**2, 10**9) + 1 / (1 + b) ** 3,
            "log": lambda: sp.log(1 + a),
            "along": lambda: self.along(a),
            "rows": lambda: rows(KIND, {"dense": a, "sparse": b, "head": self.number(0)}),
            "select": lambda: select(self.condition(depth - 1), a, b),
            "choose": lambda: choose(sp.Symbol("mode"), {"plain": a, "eager": b, "lazy": self.number(0)}),
            "halves": lambda: (a + b) / 2 + sp.Rational(1, 6),
        }
        return simple[kind]() if kind in simple else self.at_key(a, depth, AT[kind])

    def at_key(self, a, depth, how):
        """The value of a where a key is extreme; coarse keys, so that some rows tie."""
        key = ceil_divide(sp.Symbol("repeats") * self.whole_number(depth), 4)
        value = a * sp.Symbol("cost") if KIND.name not in self.axes(a) else a
        return how(value, key, KIND)


@st.composite
def systems(draw, least=2, most=8):
    """A system over two labelled axes, one open axis, a choice along it and three columns."""
    system = EquationSystem("drawn")
    for name in COLUMNS:
        system.input(name, count, "a column", axes=(Axis(name),))
    for name, axes in {**WHOLE, **REAL}.items():
        system.input(name, count, "an input", axes=axes)
    system.input("mode", count, "a choice", axes=(SIZE,), labels=MODES)
    maker = _Maker(draw, system)
    kinds = [(True, kind) for kind in WHOLE_KINDS] + [(False, kind) for kind in REAL_KINDS]
    for i, (whole, kind) in enumerate(draw(st.permutations(kinds))[: draw(st.integers(least, most))]):
        x = smallest(maker.whole_number(3, kind), 10**6) if whole else maker.number(3, kind)
        symbol = system.define(f"q{i}", count, x, f"quantity {i}")
        (maker.whole if whole else maker.real).append(symbol)
    return Drawn(system, tuple(name for name, e in system.equations.items() if not e.is_input))


@st.composite
def points(draw, sizes=(1, 2, 3)):
    """A value for every input: single numbers, lists along labelled axes, and along `size` as many rows as drawn."""
    whole, real = st.integers(1, 4) | st.integers(1, 40), st.floats(0.1, 10, allow_subnormal=False)
    rows_of_size = draw(st.sampled_from(sizes))

    def nested(axes, number):
        if not axes:
            return draw(number)
        n = len(axes[0].labels) or rows_of_size
        return [nested(axes[1:], number) for _ in range(n)]

    values = {name: nested(axes, whole) for name, axes in WHOLE.items()}
    values |= {name: nested(axes, real) for name, axes in REAL.items()}
    values["mode"] = nested((SIZE,), st.integers(0, 2))
    table = {name: draw(st.lists(st.sampled_from((1, 2, 3, 4, 8, 12)), min_size=6, max_size=6)) for name in COLUMNS}
    length = draw(st.integers(1, 6))
    return values, {name: column[:length] for name, column in table.items()}


def along_size(values, i):
    """The values in one row of the open axis."""
    return {name: value[i] if name in {"micro", "stretch", "mode"} else value for name, value in values.items()}


class SecondOpinion:
    """Values of quantities, straight from their sympy expressions, one node at a time."""

    def __init__(self, system, values):
        self.system, self.values, self.axes = system, values, system.axes()
        self.known = {}

    def of(self, name, **at):
        """The value of a quantity in the rows `at`, by axis."""
        e = self.system[name]
        key = name, *(at.get(axis.name) for axis in (KIND, PHASE) if axis.name in self.axes[name])
        if key not in self.known:
            self.known[key] = self.input(e, at) if e.is_input else self.value(e.stated, at)
        return self.known[key]

    def input(self, e, at):
        value = self.values[e.name]
        for axis in (KIND, PHASE):
            if axis.name in e.axes:
                value = value[at[axis.name]]
        return value

    def over(self, x, axis, at):
        n = len({"kind": KIND, "phase": PHASE}[axis].labels)
        return [self.value(x, {**at, axis: i}) for i in range(n)]

    def value(self, x, at):
        def v(a):
            return self.value(a, at)

        def along(a):
            return self.over(a, x.axis, at)

        if x.is_Symbol:
            return self.of(x.name, **at)
        if x.is_Rational:
            return Fraction(int(x.p), int(x.q)) if x.q != 1 else int(x)
        cases = {
            sp.Add: lambda: sum(map(v, x.args)),
            sp.Mul: lambda: math.prod(map(v, x.args)),
            sp.Pow: lambda: v(x.base) ** (int(x.exp) if x.exp.is_Integer else float(x.exp)),
            sp.log: lambda: math.log(v(x.args[0])),
            sp.Gt: lambda: v(x.lhs) > v(x.rhs),
            sp.Ge: lambda: v(x.lhs) >= v(x.rhs),
            sp.Lt: lambda: v(x.lhs) < v(x.rhs),
            sp.Le: lambda: v(x.lhs) <= v(x.rhs),
            sp.Eq: lambda: v(x.lhs) == v(x.rhs),
            sp.Ne: lambda: v(x.lhs) != v(x.rhs),
            And: lambda: all(map(v, x.args)),
            Or: lambda: any(map(v, x.args)),
            Not: lambda: not v(x.args[0]),
            nodes.smallest: lambda: min(map(v, x.args)),
            nodes.largest: lambda: max(map(v, x.args)),
            nodes.ceil_divide: lambda: math.ceil(Fraction(v(x.args[0])) / Fraction(v(x.args[1]))),
            nodes.floor_divide: lambda: math.floor(Fraction(v(x.args[0])) / Fraction(v(x.args[1]))),
            nodes.ceil_log2: lambda: next(k for k in range(60) if 2**k >= v(x.args[0])),
            nodes.floor_log2: lambda: next(k for k in range(60) if 2 ** (k + 1) > v(x.args[0])),
            nodes.ones_below: lambda: ones(int(v(x.args[0]))),
            nodes.nearest_whole: lambda: round(Fraction(v(x.args[0]))),
            nodes.none_drawn: lambda: _missed(*map(v, x.args)),
            nodes.select: lambda: v(x.args[1]) if v(x.args[0]) else v(x.args[2]),
            nodes.chosen: lambda: v(x.options[self.system.labels(x.args[0])[int(v(x.args[0]))]]),
            nodes.stacked: lambda: v(x.args[1 + at[x.args[0].name]]),
            nodes.at_row: lambda: self.value(x.args[0], {**at, x.args[1].name: int(x.args[2])}),
            nodes.total_over: lambda: sum(along(x.args[0])),
            nodes.smallest_over: lambda: min(along(x.args[0])),
            nodes.largest_over: lambda: max(along(x.args[0])),
            nodes.at_smallest: lambda: along(x.args[0])[_first(min, along(x.args[2]))],
            nodes.at_largest: lambda: along(x.args[0])[_first(max, along(x.args[2]))],
        }
        return cases[x.func]()


def _missed(population, marked, draws):
    clean = max(population - marked, 0)
    return Fraction(math.comb(int(clean), draws), math.comb(int(population), draws))


def _first(extreme, keys):
    return keys.index(extreme(keys))


def ones(n):
    """How many ones the binary forms of 0 .. n-1 hold together: half of the numbers are the doubles of the others."""
    if n < 2:
        return 0
    half, odd = divmod(n, 2)
    return 2 * ones(half) + half + (half.bit_count() if odd else 0)
