"""Every algorithm of the registry for every operation that it implements: the closed form is the simulated time."""

from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.equations.collectives.drawn import INFINITE, REGISTRY, cases, evaluate, inputs_of, same, simulate
from tests.equations.collectives.simulations import ELSEWHERE, SIMULATIONS

SHAPES = [(1, 1), (1, 2), (1, 5), (2, 1), (3, 1), (2, 2), (4, 2), (3, 5), (5, 3), (8, 2), (2, 7), (4, 4)]


def shapes(algorithm):
    """Group sizes: one rank, two, odd numbers, powers of two and others."""
    if "G" in inputs_of(algorithm):
        return [{"G": G, "M": M} for G, M in SHAPES]
    return [{"n": n} for n in range(1, 18)] if "n" in inputs_of(algorithm) else [{"h": h} for h in range(9)]


@pytest.mark.parametrize(("algorithm", "operation"), [pair for pair in REGISTRY if pair in SIMULATIONS])
@settings(max_examples=4)
@given(data=st.data())
def test_closed_form_is_simulated_time(algorithm, operation, data):
    drawn = data.draw(cases(algorithm))
    for shape in shapes(algorithm):
        inputs = drawn | shape
        found = evaluate(algorithm, inputs)
        if found[operation] == INFINITE:
            assert algorithm == "recursive-doubling", "all others take any number of ranks"
            assert inputs["n"] & (inputs["n"] - 1), "it takes powers of two"
        else:
            simulated = simulate(SIMULATIONS[algorithm, operation], inputs)
            assert same(found[operation], simulated), inputs
            assert same(found[f"{operation}_latency"] + found[f"{operation}_bandwidth"], simulated), inputs


@pytest.mark.parametrize(("algorithm", "operation"), REGISTRY)
def test_the_registry_is_simulated(algorithm, operation):
    if (algorithm, operation) not in SIMULATIONS:
        module, test = ELSEWHERE[algorithm, operation]
        assert hasattr(import_module(f"tests.equations.collectives.{module}"), test)


def test_nothing_is_tested_that_is_not_there():
    assert set(ELSEWHERE) <= set(REGISTRY)
    assert not set(ELSEWHERE) & set(SIMULATIONS)
