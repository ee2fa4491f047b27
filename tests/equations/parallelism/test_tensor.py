"""Tensor parallelism: what a layer exchanges with and without sequence parallelism."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.parallelism.tensor import TensorParallel
from costmodel.symbolic import compile_math

evaluate = compile_math(TensorParallel.system)
seconds = st.fractions(0, 10, max_denominator=8)
shares = st.fractions(0, 1, max_denominator=8)
OFF, ON = 0, 1


def exchange(sequence_parallel, gather, scatter, *, tp=8, compute=Fraction(0), hidden=Fraction(0)):
    """Collectives of a ring, whose all-reduce is a reduce-scatter and an all-gather."""
    return evaluate(
        tp=tp,
        blocks=2,
        sequence_parallel=sequence_parallel,
        all_gather=gather,
        reduce_scatter=scatter,
        all_reduce=gather + scatter,
        forward_compute=compute,
        backward_compute=2 * compute,
        hidden_share=hidden,
    )


@given(seconds, seconds)
def test_sequence_parallelism_moves_the_same_forward_and_two_gathers_more_backward(gather, scatter):
    off, on = exchange(OFF, gather, scatter), exchange(ON, gather, scatter)
    assert on["forward"] == off["forward"] == 2 * (gather + scatter)
    assert on["backward"] == off["backward"] + 2 * gather


@given(st.sampled_from((OFF, ON)), seconds, seconds)
def test_one_rank_exchanges_nothing(mode, gather, scatter):
    found = exchange(mode, gather, scatter, tp=1)
    assert [found[name] for name in ("forward", "backward", "exposed_forward", "exposed_backward")] == [0] * 4


@given(st.sampled_from((OFF, ON)), seconds, seconds, seconds, shares)
def test_what_shows_lies_between_nothing_hidden_and_all_that_fits(mode, gather, scatter, compute, hidden):
    found = exchange(mode, gather, scatter, compute=compute, hidden=hidden)
    for way, behind in (("forward", compute), ("backward", 2 * compute)):
        assert found[way] - found[f"exposed_{way}"] == hidden * min(found[way], behind)
        assert found[f"exposed_{way}"] >= max(0, found[way] - behind)
