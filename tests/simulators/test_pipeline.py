"""The pipeline simulator against cases worked out elsewhere, and against what can be drawn on paper."""

from collections import Counter
from fractions import Fraction

import pytest

from tests.simulators import pipeline
from tests.simulators.pipeline_cases import SEARCHED, UPDATES, cases, program, run_equal


@pytest.mark.parametrize("schedule", sorted({case.schedule for case in cases()} - set(SEARCHED)))
def test_published_cases(schedule):
    for case in cases():
        if case.schedule != schedule:
            continue
        found = case.run()
        if schedule == "pipedream-2bw":
            ends = [found.ended[pipeline.BACKWARD, 0, case.m * (UPDATES - k) - 1] for k in (2, 3)]
            assert ends[0] - ends[1] == case.makespan, case.name
        else:
            assert found.makespan == case.makespan, case.name
        if case.messages is not None:
            sent = found.messages // UPDATES if schedule == "pipedream-2bw" else found.messages
            assert (found.in_flight, found.held, sent) == (case.in_flight, case.held, case.messages), case.name


@pytest.mark.parametrize("schedule", SEARCHED)
def test_published_cases_of_searched_orders(schedule):
    """The memory on the fullest device is the same from 2 p micro-batches on, and so are the messages; the time within a fifth."""
    for case in cases():
        if case.schedule == schedule and case.m >= 2 * case.p:
            found = case.run()
            assert max(found.held) == max(case.held), case.name
            assert found.messages == case.messages, case.name
            assert abs(found.makespan / case.makespan - 1) <= Fraction(1, 5), case.name


def test_many_cases():
    counted = Counter(case.schedule for case in cases())
    assert len(counted) == 14
    assert min(counted.values()) >= 24


def test_two_devices_two_micro_batches():
    """F F B B on both, one later: 1 + 1 + 2, then 2 + 2 back on the first."""
    ones, twos = [Fraction(1)] * 2, [Fraction(2)] * 2
    found = pipeline.run(pipeline.one_forward_one_backward(2, 2), ones, twos)
    assert (found.makespan, found.bubble, found.in_flight) == (9, 3, (2, 1))


def test_weight_gradients_fill_the_end():
    """ZB-H1 on two devices, unit times. First F F I W I W, second waiting one slot: F I F I W W; the first waits for I of the second."""
    found = run_equal(program("zb-h1", 2, 2), 1, 1, 1)
    assert (found.makespan, found.bubble) == (7, 1)


def test_one_device_never_idles_nor_sends():
    found = pipeline.run(pipeline.interleaved(1, 4, 2), [Fraction(1)] * 2, [Fraction(2)] * 2, Fraction(5))
    assert (found.makespan, found.bubble, found.messages) == (24, 0, 0)


def test_a_pair_takes_its_own_time():
    """DualPipe on two devices, six micro-batches: what overlaps is taken off once a pair."""
    apart, together = (run_equal(program("dualpipe", 2, 6), 1, 1, 1, pair=Fraction(pair)) for pair in (3, 2))
    pairs = min(sum(len(slot) > 1 for slot in order) for order in program("dualpipe", 2, 6).orders)
    assert apart.makespan - together.makespan == pairs


def test_messages_that_block_cost_both_sides():
    """Two devices, one micro-batch: the activation and the gradient cross once each."""
    args = ([Fraction(1)] * 2, [Fraction(2)] * 2)
    assert pipeline.run_blocking(1, *args, Fraction(1, 2)) == 6 + 1
    assert (
        pipeline.run_blocking(4, *args, Fraction(0))
        == pipeline.run(pipeline.one_forward_one_backward(2, 4), *args).makespan
    )


def test_an_impossible_order_is_a_deadlock():
    backward_first = pipeline.in_a_line([[(pipeline.BACKWARD, d, 0), (pipeline.FORWARD, d, 0)] for d in range(2)])
    with pytest.raises(pipeline.DeadlockError):
        pipeline.run(backward_first, [Fraction(1)] * 2, [Fraction(1)] * 2)
