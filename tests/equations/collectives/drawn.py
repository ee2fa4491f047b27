"""What the tests of collectives draw: an input of a closed form by its name, and the generated functions."""

from fractions import Fraction
from types import SimpleNamespace

from hypothesis import strategies as st

from costmodel.equations.collectives import ALGORITHMS
from costmodel.generated import collectives_math

BY_NAME = {algorithm.name: algorithm for algorithm in ALGORITHMS}
INFINITE = float("inf")

payloads = st.builds(lambda odd, power: Fraction(odd * 2**power), st.integers(0, 99), st.integers(-3, 20))
latencies = st.fractions(0, 10, max_denominator=12)
bandwidths = st.fractions(Fraction(1, 8), 1000, max_denominator=12)
counts = st.integers(1, 9)


def strategy(name):
    """Payloads, latencies and bandwidths by what their symbols begin with; everything else is a count."""
    if name == "S":
        return payloads
    return latencies if name.startswith("alpha") else bandwidths if name.startswith("W") else counts


def inputs_of(algorithm):
    return [e.name for e in BY_NAME[algorithm].chapter.system.inputs()]


def cases(algorithm, **fixed):
    """Inputs of an algorithm, some of them fixed; a step out of a node takes no less than one inside it."""

    def ordered(inputs):
        if "alpha_in" in inputs:
            return inputs | {"alpha_out": inputs["alpha_in"] + inputs["alpha_out"]}
        return inputs

    drawn = st.fixed_dictionaries(
        {name: st.just(fixed[name]) if name in fixed else strategy(name) for name in inputs_of(algorithm)}
    )
    return drawn.map(ordered)


def evaluate(algorithm, inputs):
    """The generated function on fractions."""
    exact = {name: Fraction(value) for name, value in inputs.items() if name in inputs_of(algorithm)}
    return getattr(collectives_math, BY_NAME[algorithm].function)(**exact)


def simulate(simulation, inputs):
    return simulation(SimpleNamespace(**inputs))


def same(found, expected):
    """Equal; a form that divides whole numbers by each other has become a float."""
    if isinstance(found, float) and found != INFINITE:
        return abs(Fraction(found) - Fraction(expected)) <= Fraction(1, 10**12) * abs(Fraction(expected))
    return found == expected
