"""Unequal stages in closed form against the simulator, and against cases worked out elsewhere; messages that block or overlap."""

from fractions import Fraction
from itertools import accumulate

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from costmodel.equations.parallelism.schedules import SCHEDULES
from costmodel.equations.parallelism.unequal import StageBound, UnequalEnds
from costmodel.symbolic import compile_math
from tests.equations.parallelism.test_pipeline import devices, durations, equal_form, few, form, parts
from tests.simulators import pipeline
from tests.simulators.pipeline_cases import cases, program

ends = compile_math(UnequalEnds.system, ["alternating", "all_forward_first", "share"])
bound = compile_math(StageBound.system, ["bound"])
several = st.integers(2, 9)
layers = st.integers(0, 8)


def both(schedule, first, middle, last, p, m):
    """Closed form and simulation of stages given as (forward, backward)."""
    stages = [first, *[middle] * (p - 2), last]
    executed = pipeline.run(program(schedule, p, m), *(list(ways) for ways in zip(*stages, strict=True))).makespan
    times = {
        f"{which}_{way}": seconds
        for which, stage in (("first", first), ("middle", middle), ("last", last))
        for way, seconds in zip(("forward", "backward"), stage, strict=True)
    }
    found = ends(pp=Fraction(p), micro_batches=Fraction(m), schedule=SCHEDULES.index(schedule), **times)
    return found["alternating" if schedule == "1f1b" else "all_forward_first"], executed


def drawn(count, backward, extra=Fraction(0)):
    """A stage of so many layers, and of head and loss, a third of it forward."""
    return count + extra / 3, count * backward + extra * 2 / 3


@given(several, st.integers(1, 20), layers, layers, layers, durations, durations)
@example(9, 7, 3, 3, 1, Fraction(3, 2), Fraction(1))
@example(2, 1, 1, 1, 1, Fraction(1), Fraction(1))
def test_1f1b_is_exact_where_the_first_stage_has_no_more_layers_than_the_others(
    p, m, less, middle, last, backward, loss
):
    middle += 1
    first = drawn(max(0, middle - less), backward)
    found, executed = both("1f1b", first, drawn(middle, backward), drawn(last, backward, loss), p, m)
    assert found == executed


@given(several, st.integers(1, 20), st.integers(1, 8), layers, durations, durations)
def test_1f1b_is_exact_where_the_first_stage_is_heavy_and_the_last_not_light(p, m, middle, more, backward, loss):
    found, executed = both(
        "1f1b", drawn(middle + more, backward), drawn(middle, backward), drawn(middle, backward, loss), p, m
    )
    assert found == executed


@given(several, st.integers(1, 20), st.lists(durations, min_size=6, max_size=6))
def test_1f1b_is_never_high_and_gpipe_exact_whatever_the_stages(p, m, times):
    stages = (times[:2], times[2:4], times[4:])
    found, executed = both("1f1b", *stages, p, m)
    assert 0.85 * executed <= found <= executed
    found, executed = both("gpipe", *stages, p, m)
    assert found == executed


@few
@given(several, st.integers(1, 20), durations, durations)
def test_equal_stages_have_the_plain_bubble(p, m, f, b):
    for schedule in ("1f1b", "gpipe"):
        stage = (f, b)
        assert both(schedule, stage, stage, stage, p, m)[0] == (m + p - 1) * (f + b)


UNEQUAL = [case for case in cases() if not case.equal and case.schedule in {"1f1b", "gpipe"}]


def middle_alike(case):
    return len(set(case.forward[1:-1])) <= 1


@pytest.mark.parametrize("case", [case for case in UNEQUAL if middle_alike(case)], ids=lambda case: case.name)
def test_published_cases_with_odd_ends_are_exact(case):
    found = form(case.schedule, case.forward, case.inputs, case.weights, p=case.p, m=case.m)["total"]
    assert found == case.makespan


def test_published_cases_are_many():
    assert sum(map(middle_alike, UNEQUAL)) >= 36
    assert sum(not middle_alike(case) for case in UNEQUAL) >= 8


@pytest.mark.parametrize(
    "case",
    [case for case in UNEQUAL if case.schedule == "1f1b" and not middle_alike(case)],
    ids=lambda case: case.name,
)
def test_published_cases_where_every_stage_differs(case):
    """The longest bound of all stages is at most 2.1 % low."""
    backward = [i + w for i, w in zip(case.inputs, case.weights, strict=True)]
    whole = [f + b for f, b in zip(case.forward, backward, strict=True)]
    before = [Fraction(0), *accumulate(whole)]
    bounds = [
        bound(
            before=before[j],
            forward=case.forward[j],
            backward=backward[j],
            after=before[-1] - before[j + 1],
            last=whole[-1] if j < case.p - 1 else Fraction(0),
            alternating_after=sum(whole[case.p - case.m + 1 :]) if case.m <= case.p else Fraction(0),
            stages_after=Fraction(case.p - 1 - j),
            micro_batches=Fraction(case.m),
        )["bound"]
        for j in range(case.p)
    ]
    assert 0.979 * case.makespan <= max(bounds) <= case.makespan


@given(devices, st.integers(1, 20), durations, durations, parts)
def test_1f1b_with_messages_that_overlap(p, m, f, b, part):
    """Exact for messages of any length: only p - i micro-batches are in flight on device i, so some show in every one."""
    message = part * 5 * f
    executed = pipeline.run(program("1f1b", p, m), [f] * p, [b] * p, message).makespan
    assert equal_form("1f1b", (f, b, 0), p, m, message=message) == executed


@few
@given(st.integers(2, 8), st.integers(1, 4), st.integers(2, 4), durations, durations, parts)
def test_interleaved_with_messages_that_block(p, groups, v, f, b, part):
    message = part * min(f, b) / v
    found = form("interleaved", [f / v] * p * v, [b / v] * p * v, p=p, m=groups * p, v=v, message=message, block=1)
    chunk = ([f / v] * p, [b / v] * p)
    assert found["total"] == pipeline.run_blocking_interleaved(groups * p, v, *chunk, message)


@few
@given(several, st.integers(1, 20), layers, durations, durations, parts)
def test_unequal_stages_with_messages_are_a_little_high(p, m, last, backward, loss, part):
    """Each message that shows of equal stages is counted, though some hide behind the wait for a slower stage."""
    assume(last + loss > 0)
    message = part / 10
    stages = [drawn(4, backward)] * (p - 1) + [drawn(last, backward, loss)]
    forward, back = (list(ways) for ways in zip(*stages, strict=True))
    executed = pipeline.run(program("1f1b", p, m), forward, back, message).makespan
    found = form("1f1b", forward, back, p=p, m=m, message=message)["total"]
    assert -1e-12 <= found / executed - 1 <= 0.05
