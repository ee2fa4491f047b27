"""Algorithms in chunks, and those whose links are held for the bytes alone: the closed form brackets the simulation."""

from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from costmodel.equations.collectives.ring import ChunkedPath, Path, PipelinedPath, TwoWayRing
from costmodel.equations.collectives.switch import OneShot, TwoShot
from costmodel.equations.collectives.tree import DoubleBinaryTree
from costmodel.symbolic.write_math import compile_math
from tests.simulators import jobs, ring, tree
from tests.simulators.jobs import HALVES, carry_out
from tests.simulators.network import crossbar, eager, free_running, longest

sizes = st.builds(lambda odd, power: Fraction(odd * 2**power), st.integers(1, 99), st.integers(-3, 20))
latencies = st.fractions(0, 10, max_denominator=12)
bandwidths = st.fractions(Fraction(1, 8), 100, max_denominator=12)
ranks = st.integers(1, 17)


CHAPTERS = (ChunkedPath, Path, PipelinedPath, TwoWayRing, OneShot, TwoShot, DoubleBinaryTree)
FORMS = {chapter: compile_math(chapter.system) for chapter in CHAPTERS}


def form(chapter, **values):
    inputs = {e.name for e in chapter.system.inputs()}
    return FORMS[chapter](**{name: Fraction(value) for name, value in values.items() if name in inputs})


@settings(max_examples=30)
@given(ranks, st.integers(1, 9), sizes, latencies, bandwidths)
@example(n=1, k=3, S=Fraction(8), alpha=Fraction(1), W=Fraction(1))
@example(n=2, k=1, S=Fraction(8), alpha=Fraction(1), W=Fraction(1))
def test_chunks_along_a_path_and_back(n, k, S, alpha, W):
    job = jobs.reduction_to_all(range(n), S, jobs.even(k))
    run = carry_out(ring.path(n, alpha, W), ring.reduce_along_path_and_return(n, k), job)
    assert form(ChunkedPath, n=n, k=k, S=S, alpha=alpha, W=W)["all_reduce"] == run


@settings(max_examples=50)
@given(ranks, sizes, st.fractions(Fraction(1, 10), 10, max_denominator=12), bandwidths)
def test_the_number_of_chunks_is_the_best_one(n, S, alpha, W):
    found = form(PipelinedPath, n=n, S=S, alpha=alpha, W=W)
    chunks = found["chunks"]
    assert found["all_reduce"] == form(ChunkedPath, n=n, k=chunks, S=S, alpha=alpha, W=W)["all_reduce"]
    for other in (chunks - 1, chunks + 1):
        if other >= 1:
            worse = form(ChunkedPath, n=n, k=other, S=S, alpha=alpha, W=W)["all_reduce"]
            assert found["all_reduce"] <= worse * (1 + Fraction(1, 10**12))


@settings(max_examples=20)
@given(ranks, sizes, latencies, bandwidths)
@example(n=2, S=Fraction(8), alpha=Fraction(1), W=Fraction(1))
def test_all_to_all_on_a_path(n, S, alpha, W):
    """The middle cable is busy all the time; the latency of the farthest block is an upper bound of what comes on top."""
    found = form(Path, n=n, S=S, alpha=alpha, W=W)
    job, network = jobs.all_to_all(range(n), S), ring.path(n, alpha, W)
    schedule = ring.exchange_on_path(n)
    run = carry_out(network, schedule, job, free_running, pipelined=True)
    assert found["all_to_all_bandwidth"] == longest(network, schedule, job.sizes)
    assert found["all_to_all_bandwidth"] <= run <= found["all_to_all"]
    assert carry_out(ring.path(n, Fraction(0), W), schedule, job, free_running) == found["all_to_all_bandwidth"]


@settings(max_examples=20)
@given(ranks, sizes, latencies, bandwidths)
def test_all_to_all_block_by_block_on_a_ring_is_no_slower(n, S, alpha, W):
    found = form(TwoWayRing, n=n, S=S, alpha=alpha, W=W)
    job = jobs.all_to_all(range(n), S, HALVES)
    run = carry_out(ring.ring(n, alpha, W), ring.exchange_shortest_way(n), job, free_running, pipelined=True)
    assert found["all_to_all_bandwidth"] <= run <= found["all_to_all"]


@settings(max_examples=30)
@given(ranks, sizes, latencies, bandwidths)
@example(n=2, S=Fraction(8), alpha=Fraction(1), W=Fraction(1))
@example(n=3, S=Fraction(8), alpha=Fraction(1), W=Fraction(1))
@example(n=4, S=Fraction(8), alpha=Fraction(1), W=Fraction(1))
def test_two_trees_load_the_busiest_port(n, S, alpha, W):
    found = form(DoubleBinaryTree, n=n, S=S, alpha=alpha, W=W)
    job, network = jobs.reduction_to_all(range(n), S, HALVES), crossbar(range(n), alpha, W)
    schedule = tree.double_binary_tree(n, 1)
    carry_out(network, schedule, job)
    assert found["all_reduce_bandwidth"] == longest(network, schedule, job.sizes)


@pytest.mark.parametrize("n", range(1, 18))
def test_two_trees_in_chunks_start_up_within_a_few_steps(n):
    """Without latencies, chunks take the load of the busiest way out, and as many more steps as the trees are deep."""
    chunks, S = 8, Fraction(16)
    job = jobs.reduction_to_all(range(n), S, jobs.even(2 * chunks))
    run = carry_out(tree.ways_out(n, Fraction(0), Fraction(1)), tree.double_binary_tree(n, chunks), job, eager)
    found = form(DoubleBinaryTree, n=n, S=S, alpha=1, W=1)
    assert found["all_reduce_bandwidth"] <= run <= found["all_reduce"]


@given(st.integers(3, 17), latencies, bandwidths)
def test_two_shots_beat_one_from_the_crossover_on(n, alpha, W):
    payload = form(TwoShot, n=n, S=1, alpha=alpha, W=W)["crossover"]
    times = [form(chapter, n=n, S=payload, alpha=alpha, W=W)["all_reduce"] for chapter in (OneShot, TwoShot)]
    assert times[0] == times[1]
