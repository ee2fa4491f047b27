"""Goodput against a run that fails at random, the best interval, published figures, and what a run takes with failures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.catalog.catalog import Catalog
from costmodel.equations.economics import Economics, Goodput
from costmodel.runtime import call
from costmodel.symbolic import compile_math
from tests.simulators import failures

DAY = 86400.0
goodput_of = compile_math(Goodput.system)
goodput_at = compile_math(Goodput.system.cut("interval"), ["goodput"])
economics_of = compile_math(Economics.system)
RELIABILITY = {name: number.value for name, number in Catalog.open().assumptions("reliability").items()}
ENERGY = {name: number.value for name, number in Catalog.open().assumptions("energy").items()}


def goodput(**changes):
    usual = {"chips": 1000, "failure_rate": 1e-7, "checkpoint_blocking": 5, "restart": 600, "shortest_interval": 0}
    return goodput_of(**usual | changes)


def at_interval(interval, between, blocking, restart):
    """Goodput with a checkpoint at an interval that is not the best one."""
    told = goodput_at(
        chips=1, failure_rate=1 / between, checkpoint_blocking=blocking, restart=restart, interval=interval
    )
    return told["goodput"]


def run(**changes):
    usual = {
        "step_time": 10.0,
        "step_tokens": 1e6,
        "train_tokens": 1e12,
        "chips": 1024,
        "chip_price": 1 / 3600,
        "chip_power": 1000,
        "domain_chips": 8,
        "parameters": 1e11,
        "checkpoint_bytes_per_parameter": 14,
    }
    return call(economics_of, ENERGY | RELIABILITY | usual | changes)


@pytest.mark.parametrize(
    ("between", "blocking", "restart", "interval"),
    [(10_000, 20, 600, 600), (2_000, 5, 600, 150), (1_000, 1, 900, 400), (5_000, 60, 60, 100)],
)
def test_a_run_that_fails_at_random_takes_as_long_as_expected(between, blocking, restart, interval):
    work = 4_000 * between
    seconds, stops = failures.run(work, interval, blocking, restart, between, seed=1)
    assert at_interval(interval, between, blocking, restart) == pytest.approx(work / seconds, rel=0.02)
    assert stops == pytest.approx(seconds / between, rel=0.05)


@given(st.floats(1e3, 1e6), st.floats(0.1, 60), st.floats(0, 1000), st.floats(0.2, 5))
def test_no_other_interval_is_much_better_than_the_best(between, blocking, restart, factor):
    best = goodput(chips=1, failure_rate=1 / between, checkpoint_blocking=blocking, restart=restart)
    other = at_interval(best["interval"] * factor, between, blocking, restart)
    # Young's interval is that of the exact form to first order: what it misses is of the order of blocking over MTBF.
    assert other <= best["goodput"] * (1 + blocking / between)


def test_16384_gpus_fail_every_three_hours_and_1024_every_two_days():
    rate = RELIABILITY["failure_rate_gpu"]
    assert goodput(chips=16384, failure_rate=rate)["between_failures"] / 3600 == pytest.approx(3.1, abs=0.05)
    assert goodput(chips=1024, failure_rate=rate)["between_failures"] / 3600 == pytest.approx(50, abs=0.3)
    # Llama 3 405B: 419 unexpected interruptions in 54 days on 16,384 H100.
    assert 54 * DAY / goodput(chips=16384, failure_rate=rate)["between_failures"] == pytest.approx(419, rel=0.01)
    # Meta RSC-1: 6.5 failures in 1000 days of nodes of eight, at 16,384 and 131,072 GPUs.
    nodes = 6.5e-3 / 8 / DAY
    assert goodput(chips=16384, failure_rate=nodes)["between_failures"] / 3600 == pytest.approx(1.8, abs=0.05)
    assert goodput(chips=131072, failure_rate=nodes)["between_failures"] / 3600 == pytest.approx(0.23, abs=0.005)


def test_published_expected_time_ratios():
    """With 20 s saves 88.8 % of the time is progress when 3 % of spares stop the run too; 60 s saves cannot reach 90 %."""
    rate = 4.7e-4 / DAY
    quick = goodput(chips=1.03 * 16384, failure_rate=rate, checkpoint_blocking=20)
    assert quick["first_order"] == pytest.approx(0.888, abs=5e-4)
    assert quick["goodput"] == pytest.approx(0.890, abs=5e-4)
    assert goodput(chips=16384, failure_rate=rate, checkpoint_blocking=60)["goodput"] < 0.86
    # Llama 3 reports over 90 % with asynchronous checkpoints.
    assert goodput(chips=16384, failure_rate=rate, checkpoint_blocking=1)["goodput"] > 0.93


@given(st.floats(1e4, 1e7), st.floats(0.1, 60), st.floats(0, 1000))
def test_first_order_is_near_while_failures_are_rare(between, blocking, restart):
    told = goodput(chips=1, failure_rate=1 / between, checkpoint_blocking=blocking, restart=restart)
    share = (restart + told["interval"] + blocking) / between
    assert told["goodput"] == pytest.approx(told["first_order"], abs=share**2 + 1e-9)


@given(st.floats(1, 1e6), st.floats(0, 2000), st.floats(0.01, 100))
def test_more_chips_longer_restarts_and_slower_saves_cost_progress(chips, restart, blocking):
    told = goodput(chips=chips, restart=restart, checkpoint_blocking=blocking)
    assert 0 <= told["goodput"] < 1
    for worse in ({"chips": 2 * chips}, {"restart": restart + 60}, {"checkpoint_blocking": 2 * blocking}):
        same = {"chips": chips, "restart": restart, "checkpoint_blocking": blocking}
        assert goodput(**same | worse)["goodput"] <= told["goodput"] * (1 + 1e-9)


def test_a_run_with_failures_beside_one_without():
    told = run()
    assert told["run_time"] == 1e7
    assert told["run_time_with_failures"] == pytest.approx(1e7 / told["goodput"])
    assert told["chip_time_with_failures"] == pytest.approx(1.03 * told["run_time_with_failures"] * 1024)
    assert told["cost_with_failures"] == pytest.approx(told["chip_time_with_failures"] / 3600)
    assert told["energy_with_failures"] == pytest.approx(told["energy"] / told["goodput"])
    assert told["goodput_low"] < told["goodput"] < told["goodput_high"]


def test_the_worst_fleets_stop_small_jobs_as_often_as_was_measured():
    """Meta measured 7.9 hours between failures at 1,024 GPUs, where the rate of its nodes gives 28.8."""
    small, large = run(chips=1024), run(chips=16384)
    assert small["at_worst_between_failures"] / 3600 == pytest.approx(7.9, rel=0.02)
    assert large["at_worst_between_failures"] / 3600 == pytest.approx(1.8, rel=0.02)


def test_checkpoints():
    """5.67 TB of 405e9 weights take 57 s at 100 GB/s, and no checkpoint begins before the last is written."""
    told = run(parameters=405e9, chips=131072, step_time=1.0)
    assert told["checkpoint_bytes"] == 14 * 405e9
    assert told["checkpoint_write"] == pytest.approx(56.7)
    assert told["checkpoint_interval"] == pytest.approx(56.7)
    assert run(parameters=1e9, chips=1024, step_time=1000.0)["checkpoint_interval"] == 1000.0


def test_failure_rates_by_kind_of_machine():
    rates = {chips: run(domain_chips=chips)["failure_rate"] * DAY for chips in (0, 8, 72)}
    assert rates == pytest.approx({0: 2.0e-4, 8: 4.7e-4, 72: 6.0e-4})


def test_hopeless_runs_have_finite_numbers():
    told = run(chips=10**9, step_time=1e9)
    assert 0 < told["goodput"] < 1e-100
    assert told["run_time_with_failures"] < float("inf")


RUN = {
    "step_time": 10,
    "step_tokens": 10**6,
    "train_tokens": 10**12,
    "chips": 1000,
    "chip_price": 3.6 / 3600,
    "chip_power": 1000,
    "training_share": 0.8,
    "host_power_per_chip": 150,
    "host_power_per_chip_nvl72": 100,
    "rack_scale_domain": 64,
    "domain_chips": 8,
    "network_power_per_chip": 50,
    "site_overhead": 1.2,
}


def test_a_million_steps():
    """1e6 steps of 10 s on 1000 chips at 3.60 dollars an hour, each drawing 1.2 x (800 + 150 + 50) = 1200 W."""
    found = run(**RUN)
    assert found["steps"] == 10**6
    assert found["run_time"] == 10**7
    assert found["chip_time"] == 10**10
    assert found["cost"] == pytest.approx(10**10 / 3600 * 3.6)
    assert found["drawn_power"] == pytest.approx(1200)
    assert found["energy"] == pytest.approx(1.2e13)


def test_a_rack_that_is_one_domain_shares_its_hosts_otherwise():
    assert run(**RUN | {"domain_chips": 72})["drawn_power"] == pytest.approx(1.2 * 950)


@given(st.integers(1, 10**15), st.integers(1, 10**8))
def test_the_last_step_may_be_partly_filled(tokens, step_tokens):
    found = run(**RUN | {"train_tokens": tokens, "step_tokens": step_tokens})
    assert (found["steps"] - 1) * step_tokens < tokens <= found["steps"] * step_tokens


@given(st.sampled_from(("step_time", "chips")), st.integers(2, 1000))
def test_time_and_chips_multiply_all_of_it(name, times):
    one, many = run(**RUN), run(**RUN | {name: times * RUN[name]})
    for quantity in ("chip_time", "cost", "energy"):
        assert many[quantity] == pytest.approx(times * one[quantity])
