"""Ranks 0..n-1 on a non-blocking switch: every rank can send to any other, one port each."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.simulators.network import Block, Line, LineName, Network, Schedule, Step, Transfer, backwards

ADDER, COPIER = "adder", "copier"


def largest_power(n: int) -> int:
    """The largest power of two that is not above n."""
    return 1 << (n.bit_length() - 1)


def gather_by_doubling(n: int) -> Schedule:
    """Pairs at distance 1, 2, 4, ... exchange all that they hold; n is a power of two."""
    return [
        [Transfer(i, i ^ distance, tuple((i // distance * distance + k, 0) for k in range(distance))) for i in range(n)]
        for distance in _powers_below(n)
    ]


def scatter_by_halving(n: int) -> Schedule:
    """Pairs at distance n/2, n/4, ... swap the halves that the other side is to own; n is a power of two."""
    return backwards(gather_by_doubling(n))


def gather_bruck(n: int) -> Schedule:
    """Each rank fetches from the rank 1, 2, 4, ... further on all that this one holds and it lacks."""
    schedule: Schedule = []
    for distance in _powers_below(n):
        count = min(distance, n - distance)
        schedule.append(
            [Transfer(i, (i - distance) % n, tuple(((i + k) % n, 0) for k in range(count))) for i in range(n)]
        )
    return schedule


def all_reduce_by_doubling(n: int) -> Schedule:
    """Whole vectors are exchanged and added at distances 1, 2, 4, ...; surplus ranks fold in before and out after."""
    core = largest_power(n)
    vector: tuple[Block, ...] = ((0, 0),)
    doubling: Schedule = [
        [Transfer(i, i ^ distance, vector, True) for i in range(core)] for distance in _powers_below(core)
    ]
    return _folded(n, vector, doubling)


def all_reduce_rabenseifner(n: int) -> Schedule:
    """Halve and sum, then double and copy, among the largest power of two; surplus ranks fold in before and out after.

    Blocks are those of a reduction in as many pieces as ranks take part: (0, piece).
    """
    core = largest_power(n)
    pieces: tuple[Block, ...] = tuple((0, k) for k in range(core))
    renamed: Schedule = [
        [Transfer(t.source, t.target, tuple((0, block[0]) for block in t.blocks), t.combine) for t in step]
        for step in scatter_by_halving(core) + gather_by_doubling(core)
    ]
    return _folded(n, pieces, renamed)


def _folded(n: int, vector: tuple[Block, ...], core_schedule: Schedule) -> Schedule:
    core = largest_power(n)
    surplus = range(core, n)
    if not surplus:
        return core_schedule
    fold: Step = [Transfer(i, i - core, vector, True) for i in surplus]
    return [fold, *core_schedule, [Transfer(i - core, i, vector) for i in surplus]]


def exchange_pairwise(n: int) -> Schedule:
    """All-to-all in rounds: in round k everybody sends to the rank k further on."""
    return [[Transfer(i, (i + k) % n, ((i, (i + k) % n, 0),)) for i in range(n)] for k in range(1, n)]


def at_once(schedule: Schedule) -> Schedule:
    """All sends of a schedule posted in one step."""
    return [[transfer for step in schedule for transfer in step]] if schedule else []


def exchange_bruck(n: int) -> Schedule:
    """All-to-all in ceil(log2 n) steps: a block travels the binary digits of its distance, sharing messages on the way."""
    return [
        [
            Transfer(
                i,
                (i + digit) % n,
                tuple(((i - far % digit) % n, (i - far % digit + far) % n, 0) for far in range(n) if far & digit),
            )
            for i in range(n)
        ]
        for digit in _powers_below(n)
    ]


def exchange_demand(demand: Sequence[Sequence[int]]) -> tuple[Schedule, dict[Block, Fraction]]:
    """All-to-all of any demand (rows send, columns receive, diagonal stays): rounds in which each rank sends to one other.

    The matrix is filled up to equal row and column sums and split into permutations (Birkhoff); the filling is
    not sent. Blocks are (source, target, round), their sizes in the units of the demand.
    """
    n = len(demand)
    wanted = [[0 if i == j else demand[i][j] for j in range(n)] for i in range(n)]
    full = max([sum(row) for row in wanted] + [sum(column) for column in zip(*wanted, strict=True)], default=0)
    filled = [row[:] for row in wanted]
    for i in range(n):
        for j in range(n):
            filled[i][j] += min(full - sum(filled[i]), full - sum(row[j] for row in filled))
    schedule: Schedule = []
    sizes: dict[Block, Fraction] = {}
    while any(map(any, filled)):
        match = _perfect_matching([[j for j in range(n) if row[j]] for row in filled])
        units = min(filled[i][j] for i, j in match.items())
        step: Step = []
        for i, j in match.items():
            filled[i][j] -= units
            sent = min(units, wanted[i][j])
            wanted[i][j] -= sent
            if sent:
                block = (i, j, len(schedule))
                sizes[block] = Fraction(sent)
                step.append(Transfer(i, j, (block,)))
        schedule.append(step)
    return schedule, sizes


def reduce_and_copy_in_one_shot(n: int) -> Schedule:
    """All-reduce in which everybody reads everybody's whole vector."""
    return [[Transfer(i, j, ((0, 0),), True) for i in range(n) for j in range(n) if i != j]] if n > 1 else []


def reduce_and_copy_in_two_shots(n: int) -> Schedule:
    """All-reduce: everybody reads its part of every vector, then every other's sum."""
    if n == 1:
        return []
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    return [[Transfer(i, j, ((j, 0),), True) for i, j in pairs], [Transfer(i, j, ((i, 0),)) for i, j in pairs]]


def computing_switch(n: int, latency: Fraction, bandwidth: Fraction) -> Network:
    """A switch that adds what comes to ADDER and copies what comes to COPIER to every port; ports as in a crossbar."""
    lines: dict[LineName, Line] = {}
    for rank in range(n):
        lines["out", rank] = Line(latency, bandwidth)
        lines["in", rank] = Line(Fraction(0), bandwidth)

    def route(transfer: Transfer) -> list[LineName]:
        inside = (ADDER, COPIER)
        return [("in", transfer.target)] if transfer.source in inside else [("out", transfer.source)]

    return Network(lines, route)


def sum_in_switch(n: int, *, own_crosses: bool) -> Schedule:
    """Reduce-scatter: the switch adds all ranks' parts of a block and hands the sum to its owner."""
    if n == 1:
        return []
    send: Step = [Transfer(i, ADDER, ((j, 0),), True) for i in range(n) for j in range(n) if own_crosses or i != j]
    if own_crosses:
        return [send, [Transfer(ADDER, j, ((j, 0),)) for j in range(n)]]
    return [send, [Transfer(ADDER, j, ((j, 0),), True) for j in range(n)]]


def copy_in_switch(n: int, *, own_crosses: bool) -> Schedule:
    """All-gather: each owner sends its block once, the switch copies it to every port, the owner's too if it must cross."""
    if n == 1:
        return []
    send: Step = [Transfer(i, COPIER, ((i, 0),)) for i in range(n)]
    return [send, [Transfer(COPIER, i, tuple((j, 0) for j in range(n) if own_crosses or i != j)) for i in range(n)]]


def sum_and_copy_in_network(n: int) -> Schedule:
    """All-reduce: every rank sends its whole vector to the switches once and gets the sum once."""
    if n == 1:
        return []
    send: Step = [Transfer(i, ADDER, ((0, 0),), True) for i in range(n)]
    return [send, [Transfer(ADDER, i, ((0, 0),)) for i in range(n)]]


def _perfect_matching(choices: Sequence[Sequence[int]]) -> dict[int, int]:
    """One target for each source, all different, by augmenting paths."""
    taken: dict[int, int] = {}

    def place(source: int, tried: set[int]) -> bool:
        for target in choices[source]:
            if target not in tried:
                tried.add(target)
                if target not in taken or place(taken[target], tried):
                    taken[target] = source
                    return True
        return False

    for source in range(len(choices)):
        if not place(source, set()):
            raise AssertionError("a matrix with equal line sums has a perfect matching")
    return {source: target for target, source in taken.items()}


def _powers_below(n: int) -> list[int]:
    return [1 << k for k in range((n - 1).bit_length())]
