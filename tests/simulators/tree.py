"""Trees on a non-blocking switch: binomial trees for any number of ranks, the double binary tree."""

from __future__ import annotations

from fractions import Fraction

from tests.simulators.network import Block, Line, LineName, Network, Schedule, Step, Transfer, backwards, outwards


def broadcast(n: int) -> Schedule:
    """Everybody who has rank 0's message passes it on; the number who have it doubles in each step."""
    return [
        [Transfer(i, i + distance, ((0, 0),)) for i in range(min(distance, n - distance))]
        for distance in (1 << k for k in range((n - 1).bit_length()))
    ]


def reduce(n: int) -> Schedule:
    return backwards(broadcast(n))


def gather(n: int) -> Schedule:
    """In step k every odd multiple of 2^k hands all that it holds to the rank 2^k before it."""
    schedule: Schedule = []
    for distance in (1 << k for k in range((n - 1).bit_length())):
        step: Step = []
        for source in range(distance, n, 2 * distance):
            held = range(source, min(source + distance, n))
            step.append(Transfer(source, source - distance, tuple((rank, 0) for rank in held)))
        schedule.append(step)
    return schedule


def scatter(n: int) -> Schedule:
    return outwards(gather(n))


def parents_in_binary_tree(n: int) -> dict[int, int]:
    """NCCL's tree over 0..n-1 (rank: parent): rank 0 is the root with one child, odd ranks are leaves."""
    parents: dict[int, int] = {}
    for rank in range(1, n):
        height = rank & -rank
        above = (rank ^ height) | (height << 1)
        parents[rank] = above if above < n else rank ^ height
    return parents


def double_binary_tree(n: int, chunks: int) -> Schedule:
    """All-reduce of two halves over two such trees; the second is mirrored (even n) or shifted by one (odd n).

    Blocks are (0, 2 * chunk + tree); chunk after chunk goes up and down again.
    """
    second = [(n - 1 - rank) if n % 2 == 0 else (rank + 1) % n for rank in range(n)]
    schedule: Schedule = [[] for _ in range(chunks + 4 * n.bit_length())]
    for tree, names in enumerate((list(range(n)), second)):
        parents = parents_in_binary_tree(n)
        depth = {rank: 0 if rank == 0 else _depth(parents, rank) for rank in range(n)}
        deepest = max(depth.values())
        for chunk in range(chunks):
            block: tuple[Block, ...] = ((0, 2 * chunk + tree),)
            for rank, parent in parents.items():
                up = Transfer(names[rank], names[parent], block, True)
                schedule[chunk + deepest - depth[rank]].append(up)
                schedule[chunk + deepest + depth[parent]].append(Transfer(names[parent], names[rank], block))
    return [step for step in schedule if step]


def _depth(parents: dict[int, int], rank: int) -> int:
    return 1 + _depth(parents, parents[rank]) if rank else 0


def ways_out(n: int, latency: Fraction, bandwidth: Fraction) -> Network:
    """A switch of which only the ways out are counted, as is usual when trees are compared."""
    lines: dict[LineName, Line] = {i: Line(latency, bandwidth) for i in range(n)}
    return Network(lines, lambda transfer: [transfer.source])
