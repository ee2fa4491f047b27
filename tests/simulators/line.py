"""A message over several hops, and barriers."""

from __future__ import annotations

from tests.simulators.network import Block, Schedule, Transfer
from tests.simulators.ring import chain


def relay(hops: int, chunks: int) -> Schedule:
    """A message from rank 0 to rank `hops`, handed on in chunks; blocks (0, chunk)."""
    return chain(hops + 1, chunks)


def dissemination_barrier(n: int) -> Schedule:
    """Everybody tells the rank 1, 2, 4, ... further on whom it has heard of; blocks (rank, 0)."""
    schedule: Schedule = []
    for distance in (1 << k for k in range((n - 1).bit_length())):
        heard: list[tuple[Block, ...]] = [
            tuple(((i - k) % n, 0) for k in range(min(distance, n - distance))) for i in range(n)
        ]
        schedule.append([Transfer(i, (i + distance) % n, heard[i]) for i in range(n)])
    return schedule
