"""One answer as plain Python with `math`: every axis that remains is a list, everything on the layout is a number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from costmodel.errors import EquationError
from costmodel.symbolic import nodes
from costmodel.symbolic.nodes import Axis, Expression
from costmodel.symbolic.system import EquationSystem
from costmodel.symbolic.write import ADD, ATOM, COMPARE, NOTICE, Code, PythonWriter, load

HEADER = f'''"""{NOTICE}

{{meaning}}
"""

from math import cbrt, ceil, exp, floor, inf, log, sqrt
from typing import Any

from costmodel.runtime import ceil_log2, floor_log2, nearest_whole, none_drawn, ones_below
'''


class MathWriter(PythonWriter):
    """Writes expressions over numbers, and over lists along the axes that are looped."""

    functions: ClassVar[dict[type, str]] = {
        nodes.smallest: "min",
        nodes.largest: "max",
        nodes.ceil_divide: "ceil",
        nodes.floor_divide: "floor",
        nodes.ceil_log2: "ceil_log2",
        nodes.floor_log2: "floor_log2",
        nodes.ones_below: "ones_below",
        nodes.nearest_whole: "nearest_whole",
        nodes.none_drawn: "none_drawn",
    }

    def __init__(self, system: EquationSystem, axes: Mapping[str, frozenset[str]], looped: Sequence[Axis]) -> None:
        self.system, self.axes, self.looped = system, axes, looped
        self.fixed: dict[str, int] = {}

    def symbol(self, x: Expression) -> str:
        """A quantity, indexed by the axes that it varies over."""
        subscripts = (f"[{self.fixed.get(a.name, f'i_{a.name}')}]" for a in self.looped if a.name in self.axes[x.name])
        return str(x.name) + "".join(subscripts)

    def node(self, x: Expression) -> Code:
        """Choices are conditional expressions, reductions generator expressions."""
        if isinstance(x, nodes.select):
            condition, value, otherwise = x.args
            return f"{self.at(value, ADD)} if {self.write(condition)} else {self.at(otherwise, ADD)}", COMPARE - 1
        if isinstance(x, nodes.chosen):
            labels = self.system.labels(x.args[0])
            picked = self.write(x.args[0])
            *first, last = x.branches
            cases = ""
            for formula in first:
                numbers = [labels.index(label) for label in x.branches[formula]]
                test = f"== {numbers[0]}" if len(numbers) == 1 else f"in {{{', '.join(map(str, numbers))}}}"
                cases += f"{self.at(formula, ADD)} if {picked} {test} else "
            return cases + self.at(last, ADD), COMPARE - 1
        if isinstance(x, nodes.Extreme) and len(x.args) == 1:
            return self.emit(x.args[0])
        if isinstance(x, nodes.stacked):
            if x.axis in self.fixed:
                return self.emit(x.args[1 + self.fixed[x.axis]])
            return f"({', '.join(map(self.write, x.args[1:]))},)[i_{x.axis}]", ATOM
        if isinstance(x, (nodes.at_row, nodes.Reduction)):
            before = self.fixed
            self.fixed = {name: i for name, i in before.items() if name != x.axis}
            if isinstance(x, nodes.at_row):
                self.fixed[x.axis] = int(x.args[2])
            code = self.emit(x.args[0]) if isinstance(x, nodes.at_row) else self.reduction(x)
            self.fixed = before
            return code
        return super().node(x)

    def reduction(self, x: Expression) -> Code:
        """A reduction as a generator expression over the rows of its axis."""
        if isinstance(x, nodes.Pick):
            # The row's number decides between equal keys, so that every value asked for comes from one row.
            function, sign = ("min", "") if isinstance(x, nodes.at_smallest) else ("max", "-")
            triple = f"({self.write(x.args[2])}, {sign}i_{x.axis}, {self.write(x.args[0])})"
            return f"{function}({triple} for {self.loop(x.axis)})[2]", ATOM
        function = {nodes.total_over: "sum", nodes.smallest_over: "min", nodes.largest_over: "max"}[type(x)]
        return f"{function}({self.write(x.args[0])} for {self.loop(x.axis)})", ATOM

    def loop(self, axis: str) -> str:
        """The clause that runs over the rows of an axis."""
        size = next((len(a.labels) for a in self.looped if a.name == axis), 0)
        if not size:
            raise EquationError(f"axis {axis} is reduced but has no labels to run over")
        return f"i_{axis} in range({size})"


def math_function(name: str, system: EquationSystem, wanted: Iterable[str], looped: Sequence[Axis] = ()) -> str:
    """Source of a function of the inputs that `wanted` needs; it returns every named quantity, inputs included."""
    equations = system.order(wanted)
    axes = system.axes([e.name for e in equations])
    writer = MathWriter(system, axes, looped)
    lines = []
    for e in equations:
        if e.is_input:
            continue
        code = writer.write(e.expression)
        for axis in reversed([a for a in looped if a.name in axes[e.name]]):
            code = f"[{code} for {writer.loop(axis.name)}]"
        lines.append(f"    {e.name} = {code}  # {e.meaning}")
    inputs = [f"{e.name}: Any" for e in equations if e.is_input]
    signature = f"*, {', '.join(inputs)}" if inputs else ""
    title = f'    """{system.name}: every quantity by name."""'
    return "\n".join([f"def {name}({signature}) -> dict[str, Any]:", title, *lines, "    return locals()"])


def math_module(
    meaning: str, functions: Mapping[str, tuple[EquationSystem, Iterable[str]]], looped: Sequence[Axis] = ()
) -> str:
    """Source of a module with one function for each system."""
    bodies = [math_function(name, system, wanted, looped) for name, (system, wanted) in functions.items()]
    meanings = {name: system[name].meaning for system, wanted in functions.values() for name in wanted}
    return HEADER.format(meaning=meaning) + f"\nMEANING = {meanings!r}\n" + "\n\n" + "\n\n\n".join(bodies) + "\n"


def compile_math(system: EquationSystem, wanted: Iterable[str] | None = None, looped: Sequence[Axis] = ()) -> Any:
    """The function that `math_function` writes, ready to call: for tests, and for systems made while running."""
    names = list(wanted) if wanted is not None else list(system.equations)
    source = math_module(system.name, {"evaluate": (system, names)}, looped)
    return load(source, system.name).evaluate
