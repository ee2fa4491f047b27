"""Rings and open paths: ranks 0..n-1 in a row, cables between neighbours, a further one that closes a ring."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.simulators.network import Network, Schedule, Step, Transfer, cables, together


def ring(n: int, latency: Fraction, bandwidth: Fraction) -> Network:
    """A cycle; two ranks are joined by one cable."""
    return cables([(i, (i + 1) % n) for i in range(n) if n > 1], latency, bandwidth)


def path(n: int, latency: Fraction, bandwidth: Fraction) -> Network:
    return cables([(i, i + 1) for i in range(n - 1)], latency, bandwidth)


def gather_one_way(n: int, pieces: Sequence[int] = (0,), way: int = 1) -> Schedule:
    """Everybody passes on what came in the step before, starting with its own."""
    return [
        [Transfer(i, (i + way) % n, tuple(((i - way * step) % n, piece) for piece in pieces)) for i in range(n)]
        for step in range(n - 1)
    ]


def gather_by_halves(n: int) -> Schedule:
    """One half of every shard goes round to the right, the other to the left."""
    return together(gather_one_way(n, [0], 1), gather_one_way(n, [1], -1))


def gather_whole_shards(n: int, *, halve_antipode: bool = True) -> Schedule:
    """Whole shards (both pieces) travel both ways until they meet; the shard opposite comes half from either side."""
    schedule: Schedule = []
    for distance in range(1, n // 2 + 1):
        step: Step = []
        for i in range(n):
            right, left = (i - distance + 1) % n, (i + distance - 1) % n
            if 2 * distance < n:
                step += [
                    Transfer(i, (i + 1) % n, ((right, 0), (right, 1))),
                    Transfer(i, (i - 1) % n, ((left, 0), (left, 1))),
                ]
            elif halve_antipode:
                step += [Transfer(i, (i + 1) % n, ((right, 0),)), Transfer(i, (i - 1) % n, ((left, 1),))]
            else:
                step += [Transfer(i, (i + 1) % n, ((right, 0), (right, 1)))]
        schedule.append(step)
    return schedule


def gather_on_path(n: int) -> Schedule:
    """Both ways at once; the ends have one neighbour only."""
    schedule: Schedule = []
    for step in range(n - 1):
        rightward = [Transfer(i, i + 1, ((i - step, 0),)) for i in range(n - 1) if i >= step]
        leftward = [Transfer(i, i - 1, ((i + step, 0),)) for i in range(1, n) if i + step < n]
        schedule.append(rightward + leftward)
    return schedule


def reduce_along_path_and_return(n: int, chunks: int) -> Schedule:
    """Chunks are summed towards rank 0 and come back, the later ones still on their way in."""
    schedule: Schedule = [[] for _ in range(2 * (n - 1) + chunks - 1)] if n > 1 else []
    for chunk in range(chunks):
        for hop in range(n - 1):
            schedule[chunk + hop].append(Transfer(n - 1 - hop, n - 2 - hop, ((0, chunk),), combine=True))
            schedule[chunk + n - 1 + hop].append(Transfer(hop, hop + 1, ((0, chunk),)))
    return schedule


def exchange_one_way(n: int) -> Schedule:
    """All-to-all to the right: in each step everything that is not yet there moves one rank on."""
    return [
        [
            Transfer(i, (i + 1) % n, tuple(((i - step) % n, (i - step + far) % n, 0) for far in range(n - 1, step, -1)))
            for i in range(n)
        ]
        for step in range(n - 1)
    ]


def exchange_shortest_way(n: int) -> Schedule:
    """All-to-all the short way round; what goes to the rank opposite goes half either way. Blocks in two pieces."""
    schedule: Schedule = []
    for step in range(n // 2):
        moves: Step = []
        for i in range(n):
            for way in (1, -1):
                origin = (i - way * step) % n
                blocks: list[tuple[int, int, int]] = []
                for far in range(n // 2, step, -1):
                    target = (origin + way * far) % n
                    blocks += [
                        (origin, target, piece) for piece in ((0, 1) if 2 * far < n else (0,) if way == 1 else (1,))
                    ]
                moves.append(Transfer(i, (i + way) % n, tuple(blocks)))
        schedule.append(moves)
    return schedule


def exchange_on_path(n: int) -> Schedule:
    """All-to-all along a path, block by block, those with the longest way first."""
    schedule: Schedule = []
    for step in range(n - 1):
        moves: Step = []
        for i in range(n):
            for way, end in ((1, n - 1), (-1, 0)):
                origin = i - way * step
                if 0 <= origin < n:
                    moves += [Transfer(i, i + way, ((origin, target, 0),)) for target in range(end, i, -way)]
        schedule.append(moves)
    return schedule


def chain(n: int, chunks: int) -> Schedule:
    """Rank 0's message passed along in chunks."""
    schedule: Schedule = [[] for _ in range(n - 2 + chunks)] if n > 1 else []
    for chunk in range(chunks):
        for hop in range(n - 1):
            schedule[chunk + hop].append(Transfer(hop, hop + 1, ((0, chunk),)))
    return schedule


def token_twice_round(n: int) -> Schedule:
    """A barrier: the token collects who has come, and goes round again to tell; blocks (0, 0)."""
    if n == 1:
        return []
    first = [[Transfer(i, i + 1, ((0, 0),), combine=True)] for i in range(n - 1)]
    second = [[Transfer(i % n, (i + 1) % n, ((0, 0),))] for i in range(n - 1, 2 * n - 2)]
    return first + second
