"""How each algorithm on one kind of link is simulated: (chapter, operation) -> seconds, from moving real blocks.

All take the number of ranks, the payload, the latency of a step and the bandwidth of a link or port. Operations with a
range of outcomes (links that are held for the bytes only, chunks) are in `test_bounds.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from costmodel.equations.collectives.in_network import Nvls, Sharp
from costmodel.equations.collectives.ring import Path, Ring, TwoWayRing, TwoWayRingByHalves
from costmodel.equations.collectives.switch import Bruck, Direct, OneShot, Rabenseifner, RecursiveDoubling, TwoShot
from costmodel.symbolic import Chapter
from tests.simulators import jobs, ring, switch
from tests.simulators.jobs import HALVES, WHOLE, carry_out
from tests.simulators.network import Network, Schedule, Transfer, backwards, crossbar, longest, outwards, towards


@dataclass(frozen=True)
class Case:
    """What an algorithm is run on."""

    n: int
    S: Fraction
    alpha: Fraction
    W: Fraction

    @property
    def ranks(self) -> range:
        return range(self.n)

    def on(self, network: Callable[[int, Fraction, Fraction], Network]) -> Network:
        return network(self.n, self.alpha, self.W)


Simulation = Callable[[Case], Fraction]
Gathering = Callable[[int], Schedule]
Links = Callable[[int, Fraction, Fraction], Network]


def port_each(n: int, latency: Fraction, bandwidth: Fraction) -> Network:
    return crossbar(range(n), latency, bandwidth)


def gathers(chapter: type[Chapter], links: Links, schedule: Gathering, pieces: tuple[Fraction, ...] = WHOLE) -> dict:
    """An all-gather, and what follows from running it backwards, for one root, and twice."""

    def all_gather(case: Case) -> Fraction:
        job = jobs.all_gather(case.ranks, case.S, pieces)
        return carry_out(case.on(links), schedule(case.n), job)

    def reduce_scatter(case: Case) -> Fraction:
        job = jobs.reduce_scatter(case.ranks, case.S, pieces)
        return carry_out(case.on(links), backwards(schedule(case.n)), job)

    def all_reduce(case: Case) -> Fraction:
        job = jobs.all_reduce(case.ranks, case.S, pieces)
        return carry_out(case.on(links), backwards(schedule(case.n)) + schedule(case.n), job)

    def gather(case: Case) -> Fraction:
        job = jobs.gather(case.ranks, case.S, pieces)
        return carry_out(case.on(links), towards(schedule(case.n), 0), job)

    def scatter(case: Case) -> Fraction:
        job = jobs.scatter(case.ranks, case.S, pieces)
        return carry_out(case.on(links), outwards(towards(schedule(case.n), 0)), job)

    found = {
        "all_gather": all_gather,
        "reduce_scatter": reduce_scatter,
        "all_reduce": all_reduce,
        "gather": gather,
        "scatter": scatter,
    }
    return {(chapter, operation): run for operation, run in found.items() if operation in chapter.system.equations}


def runs(
    links: Links,
    schedule: Gathering,
    job: Callable[..., jobs.Job],
    pieces: Callable[[int], tuple[Fraction, ...]] = lambda _: WHOLE,
) -> Simulation:
    """One schedule for one job."""
    return lambda case: carry_out(case.on(links), schedule(case.n), job(case.ranks, case.S, pieces(case.n)))


def direct_gather(n: int) -> Schedule:
    """Everybody sends its shard to everybody."""
    return switch.at_once([[Transfer(i, (i + k) % n, ((i, 0),)) for i in range(n)] for k in range(1, n)])


def in_switch(
    chapter: type[Chapter], operation: str, steps: Callable[[int], Schedule], job: Callable[..., jobs.Job]
) -> dict:
    """A switch that computes: the phases overlap, so that the busiest port counts, and the latency of one phase each."""

    def run(case: Case) -> Fraction:
        network = case.on(switch.computing_switch)
        schedule, task = steps(case.n), job(case.ranks, case.S)
        carry_out(network, schedule, task)
        waits = sum(
            (max((network.latency(network.path(t)) for t in step), default=0) for step in schedule), Fraction(0)
        )
        return waits + longest(network, schedule, task.sizes)

    return {(chapter, operation): run}


SIMULATIONS: dict[tuple[type[Chapter], str], Simulation] = {
    **gathers(Ring, ring.ring, ring.gather_one_way),
    **gathers(TwoWayRing, ring.ring, ring.gather_whole_shards, HALVES),
    **gathers(TwoWayRingByHalves, ring.ring, ring.gather_by_halves, HALVES),
    **gathers(Path, ring.path, ring.gather_on_path),
    **gathers(Bruck, port_each, switch.gather_bruck),
    **gathers(Direct, port_each, direct_gather),
    **gathers(RecursiveDoubling, port_each, switch.gather_by_doubling),
    (Ring, "all_to_all"): runs(ring.ring, ring.exchange_one_way, jobs.all_to_all),
    (Ring, "barrier"): lambda case: carry_out(
        case.on(ring.ring), ring.token_twice_round(case.n), jobs.reduction_to_all(case.ranks, Fraction(0))
    ),
    (TwoWayRing, "all_to_all"): runs(ring.ring, ring.exchange_shortest_way, jobs.all_to_all, lambda _: HALVES),
    (RecursiveDoubling, "all_reduce"): runs(port_each, switch.all_reduce_by_doubling, jobs.reduction_to_all),
    (Rabenseifner, "all_reduce"): runs(
        port_each, switch.all_reduce_rabenseifner, jobs.reduction_to_all, lambda n: jobs.even(switch.largest_power(n))
    ),
    (OneShot, "all_reduce"): runs(port_each, switch.reduce_and_copy_in_one_shot, jobs.reduction_to_all),
    (TwoShot, "all_reduce"): runs(port_each, switch.reduce_and_copy_in_two_shots, jobs.all_reduce),
    **in_switch(Nvls, "all_gather", lambda n: switch.copy_in_switch(n, own_crosses=True), jobs.all_gather),
    **in_switch(Nvls, "reduce_scatter", lambda n: switch.sum_in_switch(n, own_crosses=True), jobs.reduce_scatter),
    **in_switch(
        Nvls,
        "all_reduce",
        lambda n: switch.sum_in_switch(n, own_crosses=True) + switch.copy_in_switch(n, own_crosses=True),
        jobs.all_reduce,
    ),
    **in_switch(Sharp, "all_reduce", switch.sum_and_copy_in_network, jobs.reduction_to_all),
}
"""Every entry is exact."""
