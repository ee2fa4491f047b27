"""A system as numpy source: one function for each level of table rows, one statement for each equation.

Every array has one dimension for each product axis, of size 1 where it does not vary, and a last one for the rows of its
level. A quantity lives on the first level that holds the columns it depends on; no formula gathers, the driver in
`costmodel.runtime` does so between levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import sympy as sp

from costmodel.errors import EquationError
from costmodel.symbolic import nodes
from costmodel.symbolic.checks import axes_of
from costmodel.symbolic.nodes import Axis, Expression
from costmodel.symbolic.reuse import Reuser, usable
from costmodel.symbolic.system import Equation, EquationSystem
from costmodel.symbolic.write import ATOM, MULTIPLY, NOTICE, Code, PythonWriter

HEADER = f'''"""{NOTICE}

{{meaning}}
"""

from numpy import add, cbrt, ceil, divide, exp, floor, inf, log, maximum, minimum, multiply, sqrt, subtract, where

from costmodel.runtime_arrays import (
    at_largest,
    at_smallest,
    branch_taken,
    ceil_log2s,
    floor_log2s,
    nearest_wholes,
    none_drawns,
    ones_belows,
    onto_first,
    onto_second,
    row,
    stacked,
)
'''


MANY_AXES = 4
IN_PARTS = "_in_parts"
"""Ends the name of the level that holds what a level has of many product axes."""
IN_SLICES = "_in_slices"
"""Ends the name of the function for what the last level has of an axis whose rows are worked out one by one."""


class NumpyWriter(PythonWriter):
    """Writes expressions over arrays of full rank."""

    and_or: ClassVar[tuple[str, str]] = (" & ", " | ")
    functions: ClassVar[dict[type, str]] = {
        nodes.ceil_divide: "ceil",
        nodes.floor_divide: "floor",
        nodes.ceil_log2: "ceil_log2s",
        nodes.floor_log2: "floor_log2s",
        nodes.ones_below: "ones_belows",
        nodes.nearest_whole: "nearest_wholes",
        nodes.none_drawn: "none_drawns",
    }

    def __init__(
        self,
        system: EquationSystem,
        axes: Mapping[str, frozenset[str]],
        order: Sequence[Axis],
        *,
        reuse: bool = False,
        sliced: str = "",
    ) -> None:
        self.system, self.axes, self.sliced = system, axes, sliced
        self.names = [axis.name for axis in order]
        self.sizes = {axis.name: len(axis.labels) for axis in order}
        self.reuser = Reuser(axes, self.sizes, sliced, super().emit) if reuse else None

    def emit(self, x: Expression) -> Code:
        """Arithmetic over large arrays as `reuse` has it; what is rounded stays one true division."""
        if self.reuser is None or not isinstance(x, (sp.Add, sp.Mul, nodes.Extreme)):
            return super().emit(x)
        piece = self.reuser.piece(x)
        return piece.code, piece.binding

    def dimension(self, axis: str) -> int:
        """The negative position of a product axis; the last position is the table's."""
        if axis not in self.names:
            raise EquationError(f"axis {axis} is not a product axis: no formula runs over it")
        return self.names.index(axis) - len(self.names) - 1

    def negation(self, x: Expression) -> str:
        """A condition that does not hold, element by element."""
        return f"~({self.write(x)})"

    def node(self, x: Expression) -> Code:
        """Choices are `where`, reductions keep their dimension."""
        if isinstance(x, nodes.Extreme):
            function = "maximum" if isinstance(x, nodes.largest) else "minimum"
            code = self.write(x.args[0])
            for argument in x.args[1:]:
                code = f"{function}({code}, {self.write(argument)})"
            return code, ATOM
        if isinstance(x, nodes.select):
            if axes_of(x.args[0], self.axes) == {self.sliced}:
                condition, value, otherwise = map(self.write, x.args)
                return f"branch_taken({condition}, lambda: {value}, lambda: {otherwise})", ATOM
            return self.call("where", *x.args)
        if isinstance(x, nodes.chosen):
            labels = self.system.labels(x.args[0])
            picked = self.write(x.args[0])
            *first, last = x.branches
            code = ""
            for formula in first:
                tests = [f"{picked} == {labels.index(label)}" for label in x.branches[formula]]
                condition = tests[0] if len(tests) == 1 else " | ".join(f"({test})" for test in tests)
                code += f"where({condition}, {self.write(formula)}, "
            return code + self.write(last) + ")" * len(first), ATOM
        if isinstance(x, nodes.at_row):
            return f"row({self.write(x.args[0])}, {self.dimension(x.axis)}, {int(x.args[2])})", ATOM
        if isinstance(x, nodes.stacked):
            return f"stacked({self.dimension(x.axis)}, {', '.join(map(self.write, x.args[1:]))})", ATOM
        if isinstance(x, nodes.Reduction):
            return self.reduction(x)
        return super().node(x)

    def reduction(self, x: Expression) -> Code:
        """A reduction over an axis; over one that the argument lacks, as many times the value or the value itself."""
        if x.axis not in axes_of(x.args[0], self.axes):
            if isinstance(x, nodes.total_over):
                self.dimension(x.axis)
                if not self.sizes[x.axis]:
                    raise EquationError(f"axis {x.axis} is reduced but has no labels to count")
                return f"{self.sizes[x.axis]} * {self.at(x.args[0], MULTIPLY)}", MULTIPLY
            return self.emit(x.args[0])
        if isinstance(x, nodes.Pick):
            function = "at_smallest" if isinstance(x, nodes.at_smallest) else "at_largest"
            return f"{function}({self.write(x.args[0])}, {self.write(x.args[2])}, {self.dimension(x.axis)})", ATOM
        function = {nodes.total_over: "add", nodes.smallest_over: "minimum", nodes.largest_over: "maximum"}[type(x)]
        return f"{function}.reduce({self.write(x.args[0])}, axis={self.dimension(x.axis)}, keepdims=True)", ATOM


def numpy_module(
    meaning: str,
    system: EquationSystem,
    wanted: Iterable[str],
    order: Sequence[Axis],
    levels: Mapping[str, Sequence[str]],
    in_blocks: Sequence[str] = (),
    in_parts: Sequence[str] = (),
    sliced: str = "",
) -> str:
    """Source of the module that evaluates `wanted` on tables.

    Args:
        meaning: what the module is, for its docstring.
        system: the equations.
        wanted: the quantities to return; only what they need is written.
        order: the product axes, outermost first.
        levels: the columns of each level of rows, coarse to fine; the last holds every column in use.
        in_blocks: levels with nearly as many rows as the last: what runs over many product axes there waits for the last, whose
            rows are taken in blocks, so that it is never held for all rows at once.
        in_parts: levels on which what runs over many product axes is kept apart, on a level of its own after all others: a search
            works it out for parts of the grid, the rest once for all of them.
        sliced: a product axis whose rows are worked out one by one on the last level, so that intermediate arrays stay in the
            caches and only one branch of a choice that varies along it alone is computed.

    """
    names = list(wanted)
    equations = system.order(names)
    axes = system.axes([e.name for e in equations])
    columns = frozenset(c for level in levels.values() for c in level)
    for e in equations:
        if strange := axes[e.name] - columns - {axis.name for axis in order}:
            raise EquationError(f"{e.name} varies along {', '.join(sorted(strange))}: neither product axis nor column")
    level_of = _level_of(equations, axes, levels, {a.name for a in order} - _counted(equations), in_blocks, in_parts)
    levels = _ordered(levels, level_of)
    last = list(levels)[-1]
    if sliced:
        level_of |= _level_of_slices(
            [e for e in equations if level_of[e.name] == last and not e.is_input], axes, last, sliced
        )
    spec: dict[str, tuple[list[str], list[str]]] = {}
    functions = []
    for level in [*levels, last + IN_SLICES]:
        at_once = sliced if level == last + IN_SLICES else ""
        large = bool(sliced) and (level.startswith(last) or level.endswith(IN_PARTS))
        writer = NumpyWriter(system, axes, order, reuse=large, sliced=at_once)
        own = [e for e in equations if not e.is_input and level_of[e.name] == level]
        used_later = {s for e in equations if not e.is_input and level_of[e.name] != level for s in e.uses}
        keep = [e.name for e in own if e.name in names or e.name in used_later]
        if not own:
            continue
        arguments, lines = _statements(own, writer, keep)
        spec[level] = (arguments, keep)
        returned = ", ".join(keep) + ("," if len(keep) == 1 else "")
        functions.append("\n".join([f"def {level}({', '.join(arguments)}):", *lines, f"    return {returned}"]))
    constants = {
        "ORDER": [axis.name for axis in order],
        "LEVELS": {level: list(held) for level, held in levels.items()},
        "SPEC": spec,
        "BLOCKS": [level for level in spec if level in {last, last + IN_SLICES}] or list(spec)[-1:],
        "SLICED": sliced if last + IN_SLICES in spec else "",
        "PARTS": [level for level in spec if level.endswith(IN_PARTS)],
        "LEVEL": level_of,
        "MEANING": {name: system[name].meaning for name in names},
        "INPUTS": {e.name: sorted(axes[e.name]) for e in equations if e.is_input},
        "WIDEST": {level: _widest(level_of, level, equations, axes, [a.name for a in order]) for level in spec},
        "ROWS": {axis.name: len(axis.labels) for axis in order if axis.name in _counted(equations)},
    }
    head = "\n".join(f"{name} = {value!r}" for name, value in constants.items())
    return HEADER.format(meaning=meaning) + "\n" + head + "\n\n\n" + "\n\n\n".join(functions) + "\n"


def _level_of(
    equations: Sequence[Equation],
    axes: Mapping[str, frozenset[str]],
    levels: Mapping[str, Sequence[str]],
    product: set[str],
    in_blocks: Sequence[str],
    in_parts: Sequence[str],
) -> dict[str, str]:
    """The level of each quantity: the first that holds its columns, or a later one if it waits for the last or for parts."""
    columns = frozenset(c for level in levels.values() for c in level)
    last = list(levels)[-1]
    found: dict[str, str] = {}
    for e in equations:
        level = next(name for name, held in levels.items() if axes[e.name] & columns <= set(held))
        many = len(axes[e.name] & product) >= MANY_AXES
        used = {found[name] for name in e.uses}
        if last in used or (many and level in in_blocks):
            level = last
        elif level != last and ((many and level in in_parts) or any(name.endswith(IN_PARTS) for name in used)):
            level += IN_PARTS
        found[e.name] = level
    return found


def _level_of_slices(
    equations: Sequence[Equation], axes: Mapping[str, frozenset[str]], last: str, sliced: str
) -> dict[str, str]:
    """The last level's quantities that run over an axis whose rows are worked out one by one, or use such a one."""
    found: dict[str, str] = {}
    for e in equations:
        if sliced in _counted([e]):
            raise EquationError(f"{e.name} needs all rows of {sliced} at once: it cannot be taken row by row")
        if any(sliced in axes[name] for name in (e.name, *e.uses)) or not found.keys().isdisjoint(e.uses):
            found[e.name] = last + IN_SLICES
    return found


def _ordered(levels: Mapping[str, Sequence[str]], level_of: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """The levels, those of parts after all others but the last."""
    *before, last = levels
    parts = {level + IN_PARTS: levels[level] for level in before if level + IN_PARTS in level_of.values()}
    return {**{level: levels[level] for level in before}, **parts, last: levels[last]}


def _widest(
    level_of: Mapping[str, str],
    level: str,
    equations: Sequence[Equation],
    axes: Mapping[str, frozenset[str]],
    names: Sequence[str],
) -> list[list[str]]:
    """The product axes that single statements of a level run over, those that others do not hold too."""
    found = {
        frozenset().union(axes[e.name], *(axes[used] for used in e.uses)) & frozenset(names)
        for e in equations
        if not e.is_input and level_of[e.name] == level
    }
    widest = [held for held in found if not any(held < other for other in found)]
    return sorted([name for name in names if name in held] for held in widest)


def _counted(equations: Sequence[Equation]) -> set[str]:
    """The axes whose number of rows matters: those that some formula reduces, stacks or picks a row of."""
    kinds = (nodes.Reduction, nodes.at_row, nodes.stacked)
    return {node.axis for e in equations if not e.is_input for node in e.expression.atoms(*kinds)}


def _statements(own: Sequence[Equation], writer: NumpyWriter, keep: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments and the statements of one level; what is not used again is deleted at once."""
    last = {used: i for i, e in enumerate(own) for used in e.uses}
    defined = {e.name for e in own}
    lines = []
    for i, e in enumerate(own):
        dead = sorted(name for name, at in last.items() if at == i and name in defined and name not in keep)
        if writer.reuser is not None:
            writer.reuser.over = usable(own, e, dead)
        lines.append(f"    {e.name} = {writer.write(e.expression)}  # {e.meaning}")
        if dead:
            lines.append("    del " + ", ".join(dead))
    return sorted(name for name in last if name not in defined), lines
