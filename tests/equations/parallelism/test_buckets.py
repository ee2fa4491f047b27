"""Gradient buckets: closed forms against buckets that queue for a wire one by one, alone and behind a pipeline."""

import csv
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.parallelism.buckets import BestBuckets, BucketList, Buckets, EqualBuckets, PipelineBuckets
from costmodel.symbolic import Axis, compile_math
from tests.simulators import buckets as simulator
from tests.simulators.pipeline import interleaved, one_forward_one_backward

CASES = Path(__file__).parents[2] / "published" / "bucket_cases.csv"
MIB = 2**20
equal = compile_math(EqualBuckets.system)
best = compile_math(BestBuckets.system)
ddp = compile_math(Buckets.system)
behind = compile_math(PipelineBuckets.system)

whole = st.integers(1, 1000).map(Fraction)
seconds = st.fractions(Fraction(1, 100), 10, max_denominator=100)


def listed(sizes, times, backward):
    """What shows of a list of buckets, by its closed form."""
    axis = Axis("bucket", tuple(map(str, range(len(sizes)))))
    evaluate = compile_math(BucketList.system, ["exposed"], [axis])
    return evaluate(
        gradient_bytes=sum(sizes),
        backward_compute=backward,
        filled=[sum(sizes[: i + 1]) for i in range(len(sizes))],
        still_to_reduce=[sum(times[i:]) for i in range(len(times))],
    )["exposed"]


@given(st.lists(st.tuples(whole, seconds), min_size=1, max_size=8), seconds)
def test_any_list_of_buckets(buckets, backward):
    sizes, times = zip(*buckets, strict=True)
    assert listed(sizes, times, backward) == simulator.behind_one_pass(sizes, times, backward)


@given(st.integers(1, 40), whole, seconds, seconds, seconds)
def test_equal_buckets(count, size, start, rate, backward):
    found = equal(
        gradient_bytes=count * size, backward_compute=backward, buckets=Fraction(count), start=start, rate=rate
    )
    time = start + size / rate
    assert found["exposed"] == simulator.behind_one_pass([size] * count, [time] * count, backward)


def reduce_in(start, rate, gradient, cap):
    """The two reductions that the start and the rate are read from."""
    return {
        "launch_latency": Fraction(1, 1000),
        "whole_reduction": start + gradient / rate,
        "bucket_reduction": start + cap / rate,
    }


def split(gradient, first, cap):
    """Sizes as DDP makes them."""
    sizes, left = [min(first, gradient)], gradient - min(first, gradient)
    while left > 0:
        sizes.append(min(cap, left))
        left -= sizes[-1]
    return sizes


@given(whole, st.integers(1, 50), st.integers(1, 200), seconds, st.integers(1, 100), seconds, st.integers(1, 4))
def test_ddp_has_a_small_first_bucket_and_a_rest(gradient, first, cap, start, rate, backward, micro_batches):
    found = ddp(
        gradient_bytes=gradient,
        backward_compute=backward,
        micro_batches=micro_batches,
        first_bucket_cap=Fraction(first),
        bucket_cap=Fraction(cap),
        **reduce_in(start, rate, gradient, cap),
    )
    sizes = split(gradient, Fraction(first), Fraction(cap))
    if gradient <= cap:  # a single size is known: it says nothing of a start
        start, rate = found["start"], found["rate"]
    times = [start + size / rate for size in sizes]
    assert found["buckets"] == len(sizes)
    assert float(found["reduced"]) == pytest.approx(float(sum(times)))
    shown = simulator.behind_one_pass(sizes, times, backward)
    assert float(found["exposed"]) == pytest.approx(float(shown))
    assert found["exposed_without_no_sync"] == micro_batches * found["exposed"]
    assert found["exposed"] <= found["reduced"]


@given(st.floats(1e-3, 10), st.floats(1e6, 1e11), st.floats(1e-6, 1e-3), st.floats(1e8, 1e12))
def test_no_other_number_of_equal_buckets_shows_less(backward, gradient, start, rate):
    told = best(gradient_bytes=gradient, backward_compute=backward, start=start, rate=rate)

    def shows(count):
        return equal(gradient_bytes=gradient, backward_compute=backward, buckets=count, start=start, rate=rate)[
            "exposed"
        ]

    least = shows(told["buckets"])
    for factor in (0.25, 0.5, 0.9, 0.99, 1.01, 1.1, 2, 4):
        if told["buckets"] * factor >= 1:
            assert shows(told["buckets"] * factor) >= least * (1 - 1e-9)


EXAMPLE = {"gradient": 3e9, "start": 20e-6, "rate": 40e9 / (2 * 15 / 16), "cap": 25 * MIB}
"""3 GB of gradients on 16 ranks, 40 GB/s each way, 20 us a collective."""


def example(backward):
    sizes = split(EXAMPLE["gradient"], MIB, EXAMPLE["cap"])
    times = [EXAMPLE["start"] + size / EXAMPLE["rate"] for size in sizes]
    return len(sizes), times[1], listed(sizes, times, backward), sum(times)


def test_a_compute_bound_step_shows_its_last_bucket_and_a_wire_bound_one_what_is_over():
    """116 buckets of 25 MiB at 1.249 ms: 0.89 ms show of a backward pass of 250 ms, 43.8 of 100 ms, 142.9 without overlap."""
    many, one, shows, _ = example(0.25)
    assert many == 116
    assert one == pytest.approx(1.249e-3, rel=1e-3)
    _, _, wire_bound, whole_time = example(0.1)
    assert shows == pytest.approx(0.89e-3, rel=0.01)
    assert wire_bound == pytest.approx(43.8e-3, rel=5e-3)
    assert whole_time == pytest.approx(142.9e-3, rel=2e-3)
    told = best(gradient_bytes=EXAMPLE["gradient"], backward_compute=0.1, start=EXAMPLE["start"], rate=EXAMPLE["rate"])
    assert told["buckets"] == pytest.approx((0.1 / 20e-6) ** 0.5)
    assert told["bucket"] == pytest.approx(42e6, rel=0.02)


def published():
    with CASES.open(newline="") as file:
        for row in csv.DictReader(file):
            yield pytest.param(row, id="-".join(list(row.values())[:5]))


@pytest.mark.parametrize("row", list(published()))
def test_traffic_behind_a_pipeline(row):
    p, v, m, buckets = (int(row[name]) for name in ("stages", "chunks", "micro_batches", "buckets"))
    forward, backward, whole_time, shows = (Fraction(row[name]) for name in ("forward", "backward", "whole", "shows"))
    traffic = {row["traffic"]: whole_time}
    order = one_forward_one_backward(p, m) if v == 1 else interleaved(p, m, v)
    alone = simulator.behind_pipeline(order, forward, backward)
    simulated = simulator.behind_pipeline(order, forward, backward, buckets=buckets, **traffic) - alone
    times = {"reduction": 0, "gather": 0} | traffic
    told = behind(pp=p, virtual_stages=v, buckets=buckets, forward_compute=forward, backward_compute=backward, **times)
    found = told["exposed_weight" if row["traffic"] == "gather" else "exposed_gradient"]
    assert float(simulated) == pytest.approx(float(shows), abs=1e-3)
    assert float(found) == pytest.approx(float(shows), abs=1e-3)


@given(st.sampled_from([2, 4]), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), seconds, seconds, seconds)
def test_reductions_behind_any_pipeline(p, v, groups, buckets, forward, backward, reduction):
    order = one_forward_one_backward(p, groups * p) if v == 1 else interleaved(p, groups * p, v)
    alone = simulator.behind_pipeline(order, forward, backward)
    shown = simulator.behind_pipeline(order, forward, backward, reduction=reduction, buckets=buckets) - alone
    told = behind(
        pp=p,
        virtual_stages=v,
        buckets=buckets,
        forward_compute=forward,
        backward_compute=backward,
        reduction=reduction,
        gather=0,
    )
    assert told["exposed_gradient"] == shown
