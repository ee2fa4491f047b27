"""The math and the numpy version of random systems agree with each other and with sympy's own expressions."""

import ast
import itertools
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from costmodel import runtime
from costmodel.errors import EquationError
from costmodel.runtime import Run, Table
from costmodel.symbolic import (
    Chapter,
    EquationSystem,
    at_best,
    best,
    ceil_divide,
    compile_math,
    count,
    either,
    equation,
    math_module,
    numpy_module,
    row,
    rows,
    seconds,
    select,
    smallest,
    total,
    write_numpy,
)
from costmodel.symbolic import given as given_
from costmodel.symbolic.system import RESERVED
from costmodel.symbolic.write import PythonWriter, load
from tests.symbolic.random_systems import KIND, LEVELS, PHASE, SIZE, SecondOpinion, along_size, points, systems

ORDER = [SIZE, KIND, PHASE]
LABELLED = [KIND, PHASE]
CLOSE = {"rel_tol": 1e-11, "abs_tol": 0}


def evaluate(module, columns, values, wanted):
    """Each wanted quantity of a numpy module on every row of the table, product axes first."""
    run = Run(module, Table(columns), values).coarse()
    last = run.finest if module.SLICED else list(run.spec)[-1]
    blocks = list(run.blocks())
    found = {}
    for name in wanted:
        if name in blocks[0][1]:
            parts = [whole_rows(block[name], rows.stop - rows.start) for rows, block in blocks]
            level, value = last, np.concatenate(parts, axis=-1)
        else:
            level, value = module.LEVEL[name], run.values[name]
        found[name] = value[..., run.index(level, run.finest)] if value.shape[-1] > 1 else value
    return found


def whole_rows(value, rows):
    return np.broadcast_to(value, (*value.shape[:-1], rows))


def pick(value, index):
    """One element of an array, along dimensions in which it varies."""
    return float(value[tuple(i if n > 1 else 0 for i, n in zip(index, value.shape, strict=True))])


def element(value, axes, at):
    """One element of what the math version returns: nested lists along the labelled axes that it has."""
    for axis in LABELLED:
        if axis.name in axes:
            value = value[at[axis.name]]
    return value


def every_row():
    for kind, phase in itertools.product(range(len(KIND.labels)), range(len(PHASE.labels))):
        yield {"kind": kind, "phase": phase}


@given(systems(), points())
def test_the_math_version_is_what_the_expressions_say(drawn, point):
    values, columns = point
    inputs = along_size(values, 0) | {name: column[0] for name, column in columns.items()}
    answer = compile_math(drawn.system, looped=LABELLED)(**inputs)
    opinion = SecondOpinion(drawn.system, inputs)
    axes = drawn.system.axes()
    for name, at in itertools.product(drawn.names, every_row()):
        assert math.isclose(element(answer[name], axes[name], at), opinion.of(name, **at), **CLOSE), name


@given(systems(), points(), st.sampled_from(LEVELS), st.sampled_from([1, 7, 40, 500_000]), st.data())
def test_the_numpy_version_agrees_on_every_row_of_any_table_with_any_levels(drawn, point, levels, block, data):
    values, columns = point
    wanted = data.draw(st.lists(st.sampled_from(drawn.names), min_size=1, max_size=3, unique=True))
    apart = data.draw(st.sets(st.sampled_from(list(levels)[:-1] or ["none"])))
    sliced = data.draw(st.sampled_from(("", SIZE.name)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "BLOCK", block)
        patch.setattr(write_numpy, "MANY_AXES", data.draw(st.integers(0, 2)))
        source = numpy_module("drawn", drawn.system, wanted, ORDER, levels, in_parts=apart, sliced=sliced)
        module = load(source, "drawn")
        found = evaluate(module, columns, {name: values[name] for name in module.INPUTS if name in values}, wanted)
    function = compile_math(drawn.system, wanted, looped=LABELLED)
    needed = {e.name for e in drawn.system.inputs(wanted)}
    axes = drawn.system.axes(wanted)
    sizes = len(values["micro"])
    for size, number in itertools.product(range(sizes), range(len(columns["tp"]))):
        inputs = along_size(values, size) | {name: column[number] for name, column in columns.items()}
        answer = function(**{name: inputs[name] for name in needed})
        for name, at in itertools.product(wanted, every_row()):
            mine = pick(found[name], (size, at["kind"], at["phase"], number))
            assert math.isclose(mine, element(answer[name], axes[name], at), **CLOSE), name


class Tiles(Chapter):
    """Work cut into tiles."""

    rows = given_(count, "rows of the product")
    tile = given_(count, "rows of a tile")
    each = given_(seconds, "one tile")

    tiles = equation(count, ceil_divide(rows, tile), "tiles, the last one padded")
    time = equation(seconds, tiles * each, "one after another")


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_exact_multiples_are_never_rounded_up(tile, tiles):
    """a * (1 / b) instead of a / b is wrong by one for one multiple in twenty."""
    assert compile_math(Tiles.system)(rows=tile * tiles, tile=tile, each=1)["tiles"] == tiles
    module = load(numpy_module("tiles", Tiles.system, ["tiles"], [], {"rows": []}), "tiles")
    run = Run(module, Table({"unused": [0]}), {"rows": tile * tiles, "tile": tile})
    ((_, found),) = run.blocks()
    assert found["tiles"] == tiles


@given(st.fractions(1, 1000), st.fractions(1, 1000))
def test_fractions_pass_through_the_math_version_unharmed(a, b):
    class Exact(Chapter):
        """Forms that sympy multiplies out and that are easily written with a decimal."""

        a = given_(count, "a number")
        b = given_(count, "another")
        half = equation(count, (a - 1) / 2, "a lone half")
        third = equation(count, a / 3 + sympy.Rational(1, 6) - b * (a + 1) / 7, "thirds, sixths and sevenths")
        ring = equation(count, 2 * (a - 1) / a * b, "a ring's share")
        least = equation(count, smallest(half, third, a**2 / 4), "the smallest")

    answer = compile_math(Exact.system)(a=a, b=b)
    assert answer["half"] == (a - 1) / 2
    assert answer["third"] == a / 3 + Fraction(1, 6) - b * (a + 1) / 7
    assert answer["ring"] == 2 * (a - 1) / a * b
    assert answer["least"] == min(answer["half"], answer["third"], a**2 / 4)
    assert all(isinstance(value, Fraction) for value in answer.values())


def test_a_sum_is_written_as_its_author_wrote_it():
    n, a, b = sympy.symbols("n a b")
    written = {
        (n - 1) / 2: "(n - 1) / 2",
        2 * (a + b): "2 * (a + b)",
        a + b / 2: "a + b / 2",
        1 - n: "1 - n",
        -a - b: "-a - b",
        a * b / (n * 2): "a * b / (2 * n)",
        a / (b / n): "a * n / b",
        a ** sympy.Rational(1, 3) + b**2: "cbrt(a) + b * b",
        a**-2: "1 / (a * a)",
        a / sympy.sqrt(b): "a / sqrt(b)",
        a**b * sympy.Rational(2, 3): "2 * a ** b / 3",
        sympy.oo * a: "inf * a",
    }
    assert {x: PythonWriter().write(x) for x in written} == written


def test_a_sum_over_an_axis_that_is_not_there_counts_its_rows():
    """Nobody should write it, yet a derivative may: the slope of a sum by a common constant."""
    x = EquationSystem("constant")
    n = x.input("n", count, "a number")
    x.define("times", count, total(n, KIND), "three of them")
    x.define("same", count, best(n, KIND), "the number itself")
    x.define("of_rows", count, total(rows(PHASE, {"forward": 1, "backward": 2}), PHASE), "rows of plain numbers")
    x.define("slope", count, at_best(3, n, KIND), "a constant in the best row")
    answer = compile_math(x, looped=LABELLED)(n=5)
    module = load(numpy_module("x", x, ["times", "same", "of_rows", "slope"], ORDER, {"all": []}), "x")
    found = evaluate(module, {"unused": [0]}, {"n": 5}, ["times", "same", "of_rows", "slope"])
    expected = {"times": 15, "same": 5, "of_rows": 3, "slope": 3}
    assert {name: answer[name] for name in expected} == expected
    assert {name: pick(value, (0, 0, 0, 0)) for name, value in found.items()} == expected


def test_an_axis_without_rows_cannot_be_counted():
    x = EquationSystem("open")
    n = x.input("n", count, "a number", axes=(SIZE,))
    x.define("whole", count, total(n, SIZE), "over an axis without labels")
    with pytest.raises(EquationError, match="axis size is reduced but has no labels"):
        compile_math(x, looped=[SIZE])
    y = EquationSystem("absent")
    y.define("whole", count, total(y.input("n", count, "a number"), SIZE), "over an axis without labels")
    with pytest.raises(EquationError, match="axis size is reduced but has no labels"):
        numpy_module("y", y, ["whole"], [SIZE], {"all": []})


def test_an_axis_that_is_neither_product_axis_nor_column_is_named():
    x = EquationSystem("x")
    x.define("y", count, 2 * x.input("n", count, "a number", axes=(KIND,)), "doubled")
    with pytest.raises(EquationError, match="n varies along kind: neither product axis nor column"):
        numpy_module("x", x, ["y"], [PHASE], {"all": []})


def test_a_row_keeps_its_number_only_inside_its_brackets():
    x = EquationSystem("x")
    n = x.input("n", count, "a number", axes=(KIND,))
    x.define("y", count, row(n + total(n, KIND), KIND, "sparse"), "one row plus all rows")
    assert compile_math(x, looped=[KIND])(n=[1, 10, 100])["y"] == 121


def test_functions_without_a_python_form_are_refused():
    x = EquationSystem("x")
    x.define("y", count, sympy.sin(x.input("n", count, "a number")), "no cost has a sine")
    with pytest.raises(EquationError, match="no Python form for sin"):
        compile_math(x)


@given(systems())
def test_every_name_that_the_generated_modules_use_is_reserved(drawn):
    sources = [
        math_module("m", {"evaluate": (drawn.system, drawn.names)}, LABELLED),
        numpy_module("n", drawn.system, drawn.names, ORDER, LEVELS[2]),
    ]
    for source in sources:
        functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        used = {n.id for f in functions for part in f.body for n in ast.walk(part) if isinstance(n, ast.Name)}
        loops = {"i_kind", "i_phase"}
        assert used <= set(drawn.system.equations) | RESERVED | loops


SHOW = """
from tests.symbolic.test_writers import Tiles, tell
print(tell())
"""


def tell():
    """Sources that would show an order that depends on hashing."""
    x = EquationSystem("x")
    names = [x.input(f"n{i}", count, "a number") for i in range(9)]
    x.define("y", count, select(either(*(n > 3 for n in names)), sum(names), smallest(*names)), "of all")
    x.define("z", count, x["y"].symbol * math.prod(names), "a product")
    return math_module("x", {"evaluate": (x, ["z"])}) + numpy_module("x", x, ["z"], [], {"all": []})


def test_sources_are_the_same_whatever_the_hash_seed():
    told = {
        subprocess.run(
            [sys.executable, "-c", SHOW],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(told) == 1
    assert told.pop() == tell() + "\n"
