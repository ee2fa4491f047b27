"""Law 21 of collectives, on the simulated steps that the forms are held against: what is sent is received."""

from fractions import Fraction

import pytest

from tests.simulators import jobs, switch, tree
from tests.simulators.network import crossbar, loads

ON_PORTS = {
    "gather, doubled": (switch.gather_bruck, jobs.all_gather),
    "pairs": (switch.exchange_pairwise, jobs.all_to_all),
    "blocks by their digits": (switch.exchange_bruck, jobs.all_to_all),
    "vectors": (switch.all_reduce_by_doubling, jobs.reduction_to_all),
    "binomial gather": (tree.gather, jobs.gather),
    "two trees": (
        lambda n: tree.double_binary_tree(n, 1),
        lambda ranks, S: jobs.reduction_to_all(ranks, S, jobs.HALVES),
    ),
}


@pytest.mark.parametrize("schedule", ON_PORTS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
def test_21_what_is_sent_is_received(schedule, n):
    """And blocks for others are all that is counted: an all-to-all of n ranks moves n (n - 1) blocks at least."""
    steps, job = ON_PORTS[schedule]
    carried = loads(crossbar(range(n), Fraction(1), Fraction(1)), steps(n), job(range(n), Fraction(n)).sizes)
    sent, received = (sum(size for (end, _), size in carried.items() if end == way) for way in ("out", "in"))
    assert sent == received
    if job is jobs.all_to_all:
        assert sent >= n * (n - 1)
