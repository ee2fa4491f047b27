"""Algorithms in chunks, and those whose links are held for the bytes alone: the closed form brackets the simulation."""

from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.equations.collectives.drawn import bandwidths, evaluate, latencies, payloads
from tests.simulators import jobs, ring, tree
from tests.simulators.jobs import HALVES, carry_out
from tests.simulators.network import eager, free_running, longest

ranks = st.integers(1, 17)


@pytest.mark.parametrize(
    ("best", "chunked", "operation"),
    [
        ("pipelined-path", "chunked-path", "all_reduce"),
        ("pipelined-chain", "chain", "broadcast"),
        ("pipelined-chain", "chain", "reduce"),
    ],
)
@settings(max_examples=50)
@given(ranks, payloads, st.fractions(Fraction(1, 10), 10, max_denominator=12), bandwidths)
def test_the_number_of_chunks_is_the_best_one(best, chunked, operation, n, S, alpha, W):
    inputs = {"n": n, "S": S, "alpha": alpha, "W": W}
    found = evaluate(best, inputs)
    assert found[operation] == evaluate(chunked, inputs | {"k": found["chunks"]})[operation]
    for other in (found["chunks"] - 1, found["chunks"] + 1):
        if other >= 1:
            neighbour = evaluate(chunked, inputs | {"k": other})[operation]
            assert found[operation] <= neighbour * (1 + Fraction(1, 10**12))


@settings(max_examples=20)
@given(ranks, payloads, latencies, bandwidths)
@example(n=2, S=Fraction(8), alpha=Fraction(1), W=Fraction(1))
def test_all_to_all_on_a_path(n, S, alpha, W):
    """The middle cable is never idle; what latency adds is bounded by that of the farthest block."""
    found = evaluate("path", {"n": n, "S": S, "alpha": alpha, "W": W})
    job, network, schedule = jobs.all_to_all(range(n), S), ring.path(n, alpha, W), ring.exchange_on_path(n)
    run = carry_out(network, schedule, job, free_running, pipelined=True)
    assert found["all_to_all_bandwidth"] == longest(network, schedule, job.sizes)
    assert found["all_to_all_bandwidth"] <= run <= found["all_to_all"]
    assert carry_out(ring.path(n, Fraction(0), W), schedule, job, free_running) == found["all_to_all_bandwidth"]


@settings(max_examples=20)
@given(ranks, payloads, latencies, bandwidths)
def test_all_to_all_block_by_block_on_a_ring_is_no_slower(n, S, alpha, W):
    found = evaluate("two-way-ring", {"n": n, "S": S, "alpha": alpha, "W": W})
    job = jobs.all_to_all(range(n), S, HALVES)
    run = carry_out(ring.ring(n, alpha, W), ring.exchange_shortest_way(n), job, free_running, pipelined=True)
    assert found["all_to_all_bandwidth"] <= run <= found["all_to_all"]


@pytest.mark.parametrize("n", range(1, 18))
def test_two_trees_in_chunks_start_up_within_a_few_steps(n):
    """Without latencies, chunks take the load of the busiest way out, and as many more steps as the trees are deep."""
    chunks, S = 8, Fraction(16)
    job = jobs.reduction_to_all(range(n), S, jobs.even(2 * chunks))
    run = carry_out(tree.ways_out(n, Fraction(0), Fraction(1)), tree.double_binary_tree(n, chunks), job, eager)
    found = evaluate("double-binary-tree", {"n": n, "S": S, "alpha": 1, "W": 1})
    assert found["all_reduce_bandwidth"] <= run <= found["all_reduce"]


@given(st.integers(3, 17), latencies, bandwidths)
def test_two_shots_beat_one_from_the_crossover_on(n, alpha, W):
    machine = {"n": n, "alpha": alpha, "W": W}
    payload = evaluate("two-shot", machine | {"S": 1})["crossover"]
    one, two = (evaluate(name, machine | {"S": payload})["all_reduce"] for name in ("one-shot", "two-shot"))
    assert one == two


@given(st.integers(1, 17), payloads, latencies, bandwidths)
def test_fewer_bits_are_a_smaller_payload(n, S, alpha, W):
    """8 bits and a 16-bit scale for 64 elements in place of 16: 33/64 of the bytes, and memory traffic besides."""
    bits = {"q": 8, "s": 16, "g": 64, "B": 16, "memory_bandwidth": 10}
    found = evaluate("quantised-two-shot", {"n": n, "S": S, "alpha": alpha, "W": W} | bits)
    plain = evaluate("two-shot", {"n": n, "S": S * Fraction(33, 64), "alpha": alpha, "W": W})
    packing = Fraction(65, 16) * S / 10 if n > 1 else 0
    assert found["all_reduce"] == plain["all_reduce"] + packing
