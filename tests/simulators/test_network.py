"""The engine: it refuses schedules that cheat, and its clocks are right on cases done in the head."""

from fractions import Fraction

import pytest

from tests.simulators import jobs, ring, switch, torus
from tests.simulators.network import (
    ScheduleError,
    Transfer,
    backwards,
    cables,
    crossbar,
    eager,
    free_running,
    loads,
    lockstep,
    longest,
)

ONE = Fraction(1)
LINE = cables([(0, 1), (1, 2)], latency=ONE, bandwidth=Fraction(10))


def test_a_step_takes_latency_and_bytes_of_the_slowest_line():
    job = jobs.broadcast([0, 1, 2], Fraction(20))
    schedule = [[Transfer(0, 1, ((0, 0),))], [Transfer(1, 2, ((0, 0),))]]
    assert jobs.carry_out(LINE, schedule, job) == 2 * (1 + 2)


def test_two_messages_on_one_line_share_it():
    job = jobs.broadcast([0, 1], Fraction(20), jobs.HALVES)
    one_step = [[Transfer(0, 1, ((0, 0),)), Transfer(0, 1, ((0, 1),))]]
    assert jobs.carry_out(LINE, one_step, job) == 1 + 2
    assert loads(LINE, one_step, job.sizes) == {(0, 1): 20}
    assert longest(LINE, one_step, job.sizes) == 2
    assert jobs.carry_out(LINE, one_step, job, free_running) == 2 * (1 + 1)
    assert jobs.carry_out(LINE, one_step, job, free_running, pipelined=True) == 1 + 2
    assert jobs.carry_out(LINE, one_step, job, eager) == 2 * (1 + 1)


def test_eager_lines_do_not_wait_for_what_has_not_come():
    net = crossbar(range(4), Fraction(0), ONE)
    job = jobs.exchange([0, 1, 2, 3], {(0, 2, 0): ONE, (2, 1, 0): Fraction(3), (1, 3, 0): ONE})
    chained = [
        [Transfer(2, 1, ((2, 1, 0),))],
        [Transfer(0, 1, ((0, 2, 0),)), Transfer(1, 3, ((1, 3, 0),))],
        [Transfer(1, 2, ((0, 2, 0),))],
    ]
    assert jobs.carry_out(net, chained, job, free_running) == 5
    assert jobs.carry_out(net, chained, job, eager) == 5
    assert jobs.carry_out(net, chained, job) == 5


def test_nobody_sends_what_it_does_not_hold():
    with pytest.raises(ScheduleError, match="does not hold"):
        jobs.carry_out(LINE, [[Transfer(1, 2, ((0, 0),))]], jobs.broadcast([0, 1, 2], ONE))


def test_what_comes_in_a_step_cannot_leave_in_it():
    with pytest.raises(ScheduleError, match="does not hold"):
        jobs.carry_out(LINE, [[Transfer(0, 1, ((0, 0),)), Transfer(1, 2, ((0, 0),))]], jobs.broadcast([0, 1, 2], ONE))


def test_nothing_flows_where_there_is_no_cable():
    with pytest.raises(ScheduleError, match="does not exist"):
        jobs.carry_out(LINE, [[Transfer(0, 2, ((0, 0),))]], jobs.broadcast([0, 1, 2], ONE))


def test_no_contribution_is_counted_twice():
    twice = [[Transfer(0, 1, ((0, 0),), True)], [Transfer(0, 1, ((0, 0),), True)]]
    with pytest.raises(ScheduleError, match="twice"):
        jobs.carry_out(LINE, twice, jobs.reduction_to_all([0, 1], ONE))


def test_no_sum_is_overwritten_by_less():
    loses = [[Transfer(0, 1, ((0, 0),), True)], [Transfer(0, 1, ((0, 0),))]]
    with pytest.raises(ScheduleError, match="loses"):
        jobs.carry_out(LINE, loses, jobs.reduction_to_all([0, 1], ONE))


@pytest.mark.parametrize("missing", range(6))
def test_an_incomplete_result_is_seen(missing):
    schedule = ring.gather_one_way(3)
    flat = [transfer for step in schedule for transfer in step]
    net = ring.ring(3, ONE, ONE)
    with pytest.raises(ScheduleError):
        jobs.carry_out(
            net,
            [[transfer] for number, transfer in enumerate(flat) if number != missing],
            jobs.all_gather(range(3), ONE),
        )


def test_a_gathering_run_backwards_reduces():
    net = ring.ring(4, ONE, ONE)
    forth, back = ring.gather_one_way(4), backwards(ring.gather_one_way(4))
    assert jobs.carry_out(net, back, jobs.reduce_scatter(range(4), Fraction(8))) == 3 * (1 + 2)
    assert jobs.carry_out(net, back + forth, jobs.all_reduce(range(4), Fraction(8))) == 6 * (1 + 2)


def test_every_byte_sent_is_received():
    net = crossbar(range(7), ONE, ONE)
    job = jobs.all_to_all(range(7), Fraction(7))
    carried = loads(net, switch.exchange_bruck(7), job.sizes)
    assert sum(v for (way, _), v in carried.items() if way == "out") == sum(
        v for (way, _), v in carried.items() if way == "in"
    )


def test_a_skewed_exchange_takes_as_long_as_its_busiest_port():
    schedule, sizes = switch.exchange_demand([[9, 3, 1], [0, 9, 2], [4, 0, 9]])
    net = crossbar(range(3), Fraction(0), ONE)
    assert jobs.carry_out(net, schedule, jobs.exchange(range(3), sizes)) == 4
    assert sum(sizes.values()) == 10


def test_shares_over_axis_orders_balance_the_axes():
    a, b = Fraction(3), Fraction(1)
    assert torus.best_shares([[a, b], [b, a]]) == [Fraction(1, 2), Fraction(1, 2)]
    assert torus.best_shares([[Fraction(4), b], [Fraction(2), Fraction(2)]]) == [0, 1]
    assert lockstep(LINE, [], {}, {}) == 0
