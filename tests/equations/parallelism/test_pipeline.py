"""Schedules in closed form against the simulator that runs them op by op."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from costmodel.equations.axes import STAGE
from costmodel.equations.parallelism.layout import SCHEDULES
from costmodel.equations.parallelism.pipeline import InFlight, Pipeline
from costmodel.symbolic.write_math import compile_math
from tests.simulators import pipeline

total = compile_math(Pipeline.system, ["total"])
in_flight = compile_math(InFlight.system, ["in_flight"], [STAGE])

devices = st.integers(1, 9)
durations = st.fractions(Fraction(1, 4), 4, max_denominator=8)
parts = st.fractions(0, 1, max_denominator=6)


def both(schedule, *, p, m, v=1, forward, backward, message=Fraction(0)):
    """The makespan in closed form and as run."""
    if schedule == "1f1b":
        run = pipeline.run_blocking(m, forward, backward, message)
    else:
        run = pipeline.run(pipeline.interleaved(p, m, v), forward, backward, message).makespan
    shares = [sum(forward[d::p]) + sum(backward[d::p]) for d in range(p)]
    form = total(
        pp=Fraction(p),
        schedule=SCHEDULES.index(schedule),
        virtual_stages=Fraction(v),
        micro_batches=Fraction(m),
        slowest=max(shares),
        all_stages=sum(shares),
        pass_forward=sum(forward) / p,
        pass_backward=sum(backward) / p,
        send=message,
        send_exposed_share=Fraction(1),
    )["total"]
    return form, run


@given(devices, st.integers(1, 20), durations, durations, parts)
@example(1, 1, Fraction(1), Fraction(2), Fraction(1))
@example(2, 1, Fraction(1), Fraction(2), Fraction(1))
@example(3, 2, Fraction(1), Fraction(2), Fraction(1))
def test_1f1b_with_blocking_messages(p, m, f, b, part):
    form, run = both("1f1b", p=p, m=m, forward=[f] * p, backward=[b] * p, message=part * min(f, b))
    assert form == run


@given(st.tuples(devices, st.integers(1, 4), st.integers(1, 4)), durations, durations, parts)
@example((1, 1, 2), Fraction(1), Fraction(2), Fraction(1))
@example((4, 1, 2), Fraction(1), Fraction(2), Fraction(0))
def test_interleaved_with_messages_that_hide(shape, f, b, part):
    p, groups, v = shape
    forward, backward = [f / v] * (p * v), [b / v] * (p * v)
    form, run = both(
        "interleaved", p=p, m=groups * p, v=v, forward=forward, backward=backward, message=part * min(f, b) / v
    )
    assert form == run


@given(st.integers(2, 8), st.integers(1, 5), st.integers(2, 4), st.fractions(1, 3, max_denominator=6))
def test_interleaved_with_messages_too_long_to_hide(p, groups, v, stretch):
    forward, backward = [Fraction(1, v)] * (p * v), [Fraction(2, v)] * (p * v)
    form, run = both("interleaved", p=p, m=groups * p, v=v, forward=forward, backward=backward, message=stretch / v)
    assert abs(form / run - 1) <= Fraction(12, 100)


@given(devices, st.integers(1, 20), durations, st.fractions(1, 2, max_denominator=8))
def test_1f1b_with_a_heavy_last_stage(p, m, f, heavier):
    forward = [f] * (p - 1) + [f * heavier]
    form, run = both("1f1b", p=p, m=m, forward=forward, backward=[2 * t for t in forward])
    assert form == run


@given(devices, st.integers(1, 4), st.integers(2, 4), st.fractions(1, 2, max_denominator=8))
def test_interleaved_with_a_heavy_last_stage(p, groups, v, heavier):
    forward = [Fraction(1, v)] * (p * v - 1) + [heavier / v]
    form, run = both("interleaved", p=p, m=groups * p, v=v, forward=forward, backward=[2 * t for t in forward])
    assert form == run


@given(st.integers(2, 8), st.integers(1, 4), st.fractions(1, 2, max_denominator=8))
def test_1f1b_with_a_heavy_first_stage_is_an_upper_bound(p, groups, heavier):
    forward = [heavier] + [Fraction(1)] * (p - 1)
    form, run = both("1f1b", p=p, m=groups * p, forward=forward, backward=[2 * t for t in forward])
    assert run <= form <= Fraction(13, 10) * run


@given(st.integers(1, 8), st.integers(1, 20))
def test_micro_batches_in_flight_of_1f1b(p, m):
    run = pipeline.run(pipeline.one_forward_one_backward(p, m), [Fraction(1)] * p, [Fraction(2)] * p)
    assert fullest("1f1b", p, m, 1) == [run.in_flight[0], run.in_flight[min(1, p - 1)], run.in_flight[-1]]


@given(st.integers(1, 8), st.integers(1, 4), st.integers(2, 4))
def test_micro_batches_in_flight_of_interleaving(p, groups, v):
    stages = p * v
    run = pipeline.run(pipeline.interleaved(p, groups * p, v), [Fraction(1)] * stages, [Fraction(2)] * stages)
    assert fullest("interleaved", p, groups * p, v) == [
        run.in_flight[0],
        run.in_flight[min(1, p - 1)],
        run.in_flight[-1],
    ]


def fullest(schedule, p, m, v):
    found = in_flight(
        pp=Fraction(p), schedule=SCHEDULES.index(schedule), virtual_stages=Fraction(v), micro_batches=Fraction(m)
    )
    return found["in_flight"]


@pytest.mark.parametrize(("p", "m", "v", "share"), [(4, 16, 1, Fraction(3, 16)), (4, 16, 2, Fraction(3, 32))])
def test_bubble_of_the_textbook(p, m, v, share):
    """(p - 1)/m of the useful time, divided by v."""
    stages = p * v
    schedule = "1f1b" if v == 1 else "interleaved"
    form, _ = both(schedule, p=p, m=m, v=v, forward=[Fraction(1, v)] * stages, backward=[Fraction(2, v)] * stages)
    assert form / (3 * m) - 1 == share
