"""Algorithms on one kind of link: the closed form is the time of a simulation that moves every block."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.equations.collectives.switch import RecursiveDoubling
from costmodel.symbolic.write_math import compile_math
from tests.equations.collectives.simulations import SIMULATIONS, Case

sizes = st.builds(lambda odd, power: Fraction(odd * 2**power), st.integers(0, 99), st.integers(-3, 20))
latencies = st.fractions(0, 10, max_denominator=12)
bandwidths = st.fractions(Fraction(1, 8), 1000, max_denominator=12)

FORMS = {chapter: compile_math(chapter.system) for chapter in {chapter for chapter, _ in SIMULATIONS}}


def same(found, simulated):
    """Equal; a form that divides whole numbers by each other has become a float."""
    if isinstance(found, float):
        return abs(Fraction(found) - simulated) <= Fraction(1, 10**12) * simulated
    return found == simulated


@pytest.mark.parametrize(("chapter", "operation"), list(SIMULATIONS), ids=lambda x: getattr(x, "__name__", x))
@settings(max_examples=5)
@given(sizes, latencies, bandwidths)
def test_closed_form_is_simulated_time(chapter, operation, S, alpha, W):
    inputs = {e.name for e in chapter.system.inputs()}
    for n in range(1, 18):
        values = {"n": Fraction(n), "S": S, "alpha": alpha, "W": W}
        found = FORMS[chapter](**{name: values[name] for name in inputs})
        if found[operation] == float("inf"):
            assert chapter is RecursiveDoubling, "all others take any number of ranks"
            assert n & (n - 1), "a power of two"
        else:
            simulated = SIMULATIONS[chapter, operation](Case(n, S, alpha, W))
            assert same(found[operation], simulated)
            assert same(found[f"{operation}_latency"] + found[f"{operation}_bandwidth"], simulated)
