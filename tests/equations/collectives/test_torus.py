"""Groups on parts of a torus: what the busiest cable carries when all groups move their blocks, against the closed forms."""

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.equations.collectives.drawn import evaluate
from tests.simulators import jobs, torus
from tests.simulators.jobs import Job, carry_out
from tests.simulators.network import backwards

IDEAL, EVEN, ORDERED = "torus", "evenly-split-torus", "axis-by-axis-torus"
S, ALPHA, W = Fraction(64), Fraction(3), Fraction(1)
ONE = Fraction(1)


def closed_form(algorithm, subs):
    values = {"S": S, "alpha": ALPHA, "W": W}
    for number, letter in enumerate("xyz"):
        sub = subs[number] if number < len(subs) else torus.SubAxis(0, 1, 1, ring=False)
        described = {"size": sub.size, "stride": sub.stride, "ring": int(sub.ring)}
        values |= {f"{name}_{letter}": value for name, value in described.items()}
    return evaluate(algorithm, values)


def machine(rows, wraps):
    return torus.Slice(tuple(rows), tuple(wraps), ALPHA, W)


def run(slice_, name, orders, shares):
    """Gather, check that every chip got everything, and return the bytes on the busiest cable of each axis."""
    job = torus.gather_job(slice_, name, S, shares)
    schedule = torus.gather(slice_, orders)
    carry_out(slice_.network(), schedule, job)
    return torus.axis_loads(slice_, schedule, job)


def hold_against_cables(slice_, name):
    subs = slice_.sub_axes(name)
    orders = list(permutations(subs))
    loads = [run(slice_, name, [order], [ONE]) for order in orders]

    best = run(slice_, name, orders, torus.best_shares(loads))
    assert closed_form(IDEAL, subs)["all_gather_bandwidth"] == max(best) / W

    turns = [subs[k:] + subs[:k] for k in range(len(subs))]
    even = run(slice_, name, turns, [ONE / len(turns)] * len(turns))
    assert closed_form(EVEN, subs)["all_gather_bandwidth"] == max(even) / W

    phase = min(sum(load) for load in loads)
    assert closed_form(ORDERED, subs)["all_gather_bandwidth"] == phase / W

    exchanged = torus.exchange_loads(slice_, name, S)
    found = closed_form(IDEAL, subs)
    assert found["all_to_all_bandwidth"] == max(exchanged.values()) / W
    assert found["all_gather_latency"] == found["all_to_all_latency"] == hops_alone(slice_, name, orders[0])


def hops_alone(slice_, name, order):
    """The latency of an all-gather whose blocks weigh nothing."""
    job = torus.gather_job(slice_, name, Fraction(0), [ONE])
    return carry_out(slice_.network(), torus.gather(slice_, [order]), Job(job.sizes, job.first, job.last))


WRAP, OPEN = True, False
PLACEMENTS = {
    "3x5 torus": ([[("a", 3)], [("a", 5)]], [WRAP, WRAP]),
    "4x4 torus": ([[("a", 4)], [("a", 4)]], [WRAP, WRAP]),
    "4x8 torus": ([[("a", 4)], [("a", 8)]], [WRAP, WRAP]),
    "2x8: two chips have one cable": ([[("a", 2)], [("a", 8)]], [WRAP, WRAP]),
    "3x3x3 torus": ([[("a", 3)]] * 3, [WRAP] * 3),
    "2x2x4 torus": ([[("a", 2)], [("a", 2)], [("a", 4)]], [WRAP] * 3),
    "4x4 mesh": ([[("a", 4)], [("a", 4)]], [OPEN, OPEN]),
    "4 open x 8 wrapped": ([[("a", 4)], [("a", 8)]], [OPEN, WRAP]),
    "inner 4 of 16": ([[("a", 4), ("b", 4)]], [WRAP]),
    "outer 4 of 16": ([[("b", 4), ("a", 4)]], [WRAP]),
    "outer 3 of 12, open": ([[("b", 4), ("a", 3)]], [OPEN]),
    "middle 4 of 16": ([[("b", 2), ("a", 4), ("c", 2)]], [WRAP]),
    "a weak sub-axis binds": ([[("b", 4), ("a", 4)], [("a", 2), ("c", 4)]], [WRAP, WRAP]),
    "a 2x2 square": ([[("a", 2), ("b", 4)], [("a", 2), ("b", 4)]], [WRAP, WRAP]),
    "what a 2x2 square leaves": ([[("b", 2), ("a", 4)], [("b", 2), ("a", 4)]], [WRAP, WRAP]),
    "a plane and half an axis": ([[("a", 3)], [("a", 3)], [("a", 2), ("b", 2)]], [WRAP] * 3),
    "a plane of a 3x3x4 torus": ([[("a", 3)], [("b", 3)], [("a", 4)]], [WRAP] * 3),
}


@pytest.mark.parametrize("placement", PLACEMENTS.values(), ids=list(PLACEMENTS))
def test_named_placements(placement):
    hold_against_cables(machine(*placement), "a")


factors = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(1, 5)), min_size=1, max_size=2, unique_by=lambda f: f[0]
)


@settings(max_examples=25)
@given(st.lists(st.tuples(factors, st.booleans()), min_size=1, max_size=3))
@example([([("a", 1)], True)])
@example([([("a", 2)], True), ([("b", 3)], False)])
def test_any_placement(axes):
    slice_ = machine([row for row, _ in axes], [wrap for _, wrap in axes])
    assume(len(slice_.chips) <= 48)
    for name in ("a", "b"):
        if slice_.sub_axes(name):
            hold_against_cables(slice_, name)


@given(st.integers(1, 17), st.booleans(), st.integers(0, 2))
def test_one_axis_is_a_ring_or_a_path(n, wrapped, position):
    alone = torus.SubAxis(0, n, 1, ring=wrapped)
    nothing = torus.SubAxis(0, 1, 1, ring=False)
    subs = [alone if k == position else nothing for k in range(3)]
    line = evaluate("two-way-ring" if wrapped else "path", {"n": n, "S": S, "alpha": ALPHA, "W": W})
    for algorithm in (IDEAL, EVEN, ORDERED):
        found = closed_form(algorithm, subs)
        for operation in ("all_gather", "reduce_scatter", "all_reduce"):
            assert found[operation] == line[operation]
    assert closed_form(IDEAL, subs)["all_to_all"] == line["all_to_all"]


@pytest.mark.parametrize("side", [3, 4, 5])
def test_equal_axes_run_in_step(side):
    """On equal axes the evenly divided schedule takes latency and bandwidth one after the other, to the second."""
    slice_ = machine([[("a", side)], [("a", side)]], [WRAP, WRAP])
    subs = slice_.sub_axes("a")
    turns = [subs, subs[::-1]]
    job = torus.gather_job(slice_, "a", S, [ONE / 2] * 2)
    assert closed_form(EVEN, subs)["all_gather"] == carry_out(slice_.network(), torus.gather(slice_, turns), job)


@pytest.mark.parametrize("placement", ["3x5 torus", "a weak sub-axis binds", "a plane and half an axis"])
def test_sums_run_backwards(placement):
    """The gathering run back in time adds everything up in the right place and loads the cables as much."""
    slice_ = machine(*PLACEMENTS[placement])
    subs = slice_.sub_axes("a")
    orders = [subs[k:] + subs[:k] for k in range(len(subs))]
    halves = [ONE / (2 * len(orders))] * 2 * len(orders)
    forth = torus.gather(slice_, orders)
    back = backwards(forth)
    groups = slice_.groups("a")
    reduction = jobs.side_by_side(jobs.reduce_scatter(group, S, halves) for group in groups)
    both = jobs.side_by_side(jobs.all_reduce(group, S, halves) for group in groups)
    for job, schedule, operation in ((reduction, back, "reduce_scatter"), (both, back + forth, "all_reduce")):
        carry_out(slice_.network(), schedule, job)
        load = max(torus.axis_loads(slice_, schedule, job)) / W
        assert closed_form(EVEN, subs)[f"{operation}_bandwidth"] == load
    for algorithm in (IDEAL, EVEN, ORDERED):
        found = closed_form(algorithm, subs)
        assert found["reduce_scatter"] == found["all_gather"] == found["all_reduce"] / 2


@pytest.mark.parametrize("placement", PLACEMENTS.values(), ids=list(PLACEMENTS))
def test_a_message_to_the_next_rank_of_every_group(placement):
    """The groups in between send over the same cables: a stride of s loads them s times."""
    slice_ = machine(*placement)
    busiest = Fraction(0)
    for sub in slice_.sub_axes("a"):
        carried: dict = {}
        for chip in slice_.chips:
            if slice_.digit(chip, sub) < sub.size - 1:
                for cable in slice_.cables(chip, sub.axis, sub.stride):
                    carried[cable] = carried.get(cable, 0) + S
        busiest = max(busiest, *carried.values())
    assert closed_form(IDEAL, slice_.sub_axes("a"))["stride"] * S == busiest
