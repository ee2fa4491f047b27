"""What an expression comes to, apart from the system that it came from."""

import sympy as sp

from costmodel.symbolic import EquationSystem, compile_math, count


def worth(expression, values):
    """The value of an expression whose symbols have these values, whatever they are called."""
    system, inputs, renamed = EquationSystem("worth"), {}, {}
    for i, (name, value) in enumerate(values.items()):
        renamed[sp.Symbol(name)] = system.input(f"v{i}", count, name)
        inputs[f"v{i}"] = value
    system.define("whole", count, expression.xreplace(renamed), "the whole")
    return compile_math(system, ["whole"])(**{e.name: inputs[e.name] for e in system.inputs(["whole"])})["whole"]
