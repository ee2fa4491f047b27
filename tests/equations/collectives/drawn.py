"""What the tests of collectives draw: inputs of a closed form by their units, and the generated functions."""

from fractions import Fraction
from types import SimpleNamespace

from hypothesis import strategies as st

from costmodel.equations.collectives import ALGORITHMS
from costmodel.generated import collectives_math
from costmodel.symbolic import bytes_, bytes_per_second, seconds

BY_NAME = {algorithm.name: algorithm for algorithm in ALGORITHMS}
REGISTRY = [(algorithm.name, operation) for algorithm in ALGORITHMS for operation in algorithm.operations]
INFINITE = float("inf")

payloads = st.one_of(st.integers(0, 9), st.integers(0, 2**30)).map(Fraction)
latencies = st.integers(0, 120).map(lambda twelfths: Fraction(twelfths, 12))
bandwidths = st.integers(1, 5000).map(lambda sevenths: Fraction(sevenths, 7))
counts = st.integers(1, 9)

BY_UNIT = {bytes_: payloads, seconds: latencies, bytes_per_second: bandwidths}
BY_COUNT = {
    "n": st.integers(1, 17),
    "h": st.integers(1, 9),
    "rounds": st.integers(0, 9),
    **{f"size_{axis}": st.integers(1, 6) for axis in "xyz"},
    **{f"stride_{axis}": st.sampled_from([1, 2, 4]) for axis in "xyz"},
    **{f"ring_{axis}": st.integers(0, 1) for axis in "xyz"},
    **{name: st.just(bits) for name, bits in {"q": 8, "s": 16, "g": 64, "B": 16}.items()},
}
"""Counts that are more than some small number."""


def inputs_of(algorithm):
    return [e.name for e in BY_NAME[algorithm].chapter.system.inputs()]


def inputs_in(algorithm, unit):
    return [e.name for e in BY_NAME[algorithm].chapter.system.inputs() if e.unit == unit]


def cases(algorithm, **fixed):
    """Inputs of an algorithm, some of them fixed; a step out of a node takes no less than one inside it."""

    def ordered(inputs):
        if "alpha_in" in inputs:
            return inputs | {"alpha_out": inputs["alpha_in"] + inputs["alpha_out"]}
        return inputs

    drawn = {}
    for e in BY_NAME[algorithm].chapter.system.inputs():
        drawn[e.name] = st.just(fixed[e.name]) if e.name in fixed else BY_UNIT.get(e.unit, BY_COUNT.get(e.name, counts))
    return st.fixed_dictionaries(drawn).map(ordered)


def evaluate(algorithm, inputs):
    """The generated function on fractions."""
    exact = {name: Fraction(value) for name, value in inputs.items() if name in inputs_of(algorithm)}
    return getattr(collectives_math, BY_NAME[algorithm].function)(**exact)


def simulate(simulation, inputs):
    return simulation(SimpleNamespace(**inputs))


def same(found, expected):
    """Equal; a form that divides whole numbers by each other, or takes a root, has become a float."""
    if isinstance(found, float) or isinstance(expected, float):
        if INFINITE in (found, expected):
            return found == expected
        return abs(Fraction(found) - Fraction(expected)) <= Fraction(1, 10**12) * abs(Fraction(expected))
    return found == expected


def at_most(small, large):
    """Not larger, but for the rounding of floats."""
    return small <= large or same(small, large)
