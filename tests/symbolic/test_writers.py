"""The math and the numpy version of random systems agree with each other and with sympy's own expressions."""

import ast
import itertools
import math
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel import runtime
from costmodel.runtime import Run, Table
from costmodel.symbolic import compile_math, numpy_module
from costmodel.symbolic.system import RESERVED
from tests.symbolic.random_systems import KIND, LEVELS, PHASE, SIZE, SecondOpinion, along_size, points, systems

ORDER = [SIZE, KIND, PHASE]
LABELLED = [KIND, PHASE]
CLOSE = {"rel_tol": 1e-11, "abs_tol": 0}


def load(source):
    module = ModuleType("generated")
    exec(compile(source, "<generated>", "exec"), module.__dict__)
    return module


def evaluate(module, columns, values, wanted):
    """Each wanted quantity of a numpy module on every row of the table, product axes first."""
    table = Table(columns)
    run = Run(module, table, values).coarse()
    last = list(run.spec)[-1]
    blocks = [block for _, block in run.blocks()]
    found = {}
    for name in wanted:
        level = module.LEVEL[name]
        if level == last and name in blocks[0]:
            whole = [block[name] for block in blocks]
            value = np.concatenate(whole, axis=-1) if whole[0].shape[-1] > 1 or len(blocks) > 1 else whole[0]
            value = value if value.shape[-1] in {1, table.size} or last != run.finest else value[..., :1]
        else:
            value = run.values[name]
        if value.shape[-1] > 1 or len(run.index(level, run.finest)) == 1:
            value = value[..., run.index(level, run.finest)] if value.shape[-1] > 1 else value
        found[name] = value
    return found


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
    module = load(numpy_module("drawn", drawn.system, wanted, ORDER, levels))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "BLOCK", block)
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
