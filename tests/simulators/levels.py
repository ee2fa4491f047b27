"""Clusters: ranks 0..R-1 in blocks of consecutive ranks, the blocks in larger blocks, and so on.

Inside its smallest block (a node) a rank talks through its own port; out of the node go network cards; a larger
block is left over its uplinks, taken as one line as wide as the shares of all its ranks together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import cast

from tests.simulators.network import Line, LineName, Network, Schedule, Step, Transfer, together


@dataclass(frozen=True)
class Cluster:
    """`blocks`: ranks in a node, in a unit of nodes, ..., in the whole cluster; each divides the next.

    `shares[0]` is the bandwidth of a rank's port, `shares[l]` one rank's fair share of what leaves its block of
    level l; `latencies[l]` what a message costs that must climb l levels. `cards` network cards serve a node, if
    they are fewer than its ranks.
    """

    blocks: tuple[int, ...]
    shares: tuple[Fraction, ...]
    latencies: tuple[Fraction, ...]
    cards: int = 0

    @property
    def ranks(self) -> range:
        return range(self.blocks[-1])

    def climb(self, a: int, b: int) -> int:
        """How many blocks a message from a to b must leave."""
        return sum(a // block != b // block for block in self.blocks)

    def network(self) -> Network:
        node = self.blocks[0]
        cards = self.cards or node
        lines: dict[LineName, Line] = {}
        for way in ("out", "in"):
            for rank in self.ranks:
                lines[way, "port", rank] = Line(self._step(way, 0), self.shares[0])
                if len(self.blocks) > 1:
                    card = rank * cards // node
                    lines[way, "card", card] = Line(self._step(way, 1), self.shares[1] * node / cards)
            for level in range(2, len(self.blocks)):
                size = self.blocks[level - 1]
                for block in range(self.blocks[-1] // size):
                    lines[way, level, block] = Line(self._step(way, level), self.shares[level] * size)

        def route(transfer: Transfer) -> list[LineName]:
            a, b = cast("int", transfer.source), cast("int", transfer.target)
            height = self.climb(a, b)
            if height == 0:
                return [("out", "port", a), ("in", "port", b)]
            climbed = range(2, height + 1)
            up: list[LineName] = [("out", level, a // self.blocks[level - 1]) for level in climbed]
            down: list[LineName] = [("in", level, b // self.blocks[level - 1]) for level in reversed(climbed)]
            return [("out", "card", a * cards // node), *up, *down, ("in", "card", b * cards // node)]

        return Network(lines, route)

    def _step(self, way: str, level: int) -> Fraction:
        """The latency that a line adds on the way up, so that a climb of l levels costs latencies[l] altogether."""
        if way == "in":
            return Fraction(0)
        return self.latencies[level] - (self.latencies[level - 1] if level > 1 else 0)


def ring_gather(order: Sequence[int], holdings: dict[int, tuple[int, ...]], piece: int = 0) -> Schedule:
    """All-gather round a ring of ranks that each hold the blocks of several ranks."""
    n = len(order)
    return [
        [
            Transfer(order[i], order[(i + 1) % n], tuple((rank, piece) for rank in holdings[order[(i - step) % n]]))
            for i in range(n)
        ]
        for step in range(n - 1)
    ]


def gather_by_levels(group: Sequence[int], factors: Sequence[int]) -> Schedule:
    """All-gather among ranks in order, level by level from the outermost.

    `factors`: members of the group in one node, then nodes with members in one unit, and so on. Those in the same
    place of different blocks gather first, so that only the least possible crosses the upper levels.
    """
    holdings: dict[int, tuple[int, ...]] = {rank: (rank,) for rank in group}
    schedule: Schedule = []
    stride = len(group)
    for factor in reversed(factors):
        stride //= factor
        phase: list[Schedule] = []
        gathered: dict[int, tuple[int, ...]] = {}
        for start in range(len(group)):
            if start // stride % factor == 0:
                ring = [group[start + k * stride] for k in range(factor)]
                phase.append(ring_gather(ring, holdings))
                everything = tuple(rank for member in ring for rank in holdings[member])
                gathered.update(dict.fromkeys(ring, everything))
        schedule += together(*phase)
        holdings = gathered
    return schedule


def gather_in_channels(group: Sequence[int], members: int) -> Schedule:
    """Flat rings through the group, `members` of it in every node: one ring a member, each entering nodes at another one.

    Blocks are (rank, ring): every ring gathers its share of each shard.
    """
    rings: list[Schedule] = []
    for channel in range(members):
        order = _in_channel(group, members, channel)
        rings.append(ring_gather(order, {rank: (rank,) for rank in order}, channel))
    return together(*rings)


def gather_along_rails_by_doubling(group: Sequence[int], members: int) -> Schedule:
    """All-gather along every rail by exchanges with partners half as far away each time; a power of two of nodes."""
    nodes = len(group) // members
    schedule: Schedule = []
    distance = nodes // 2
    while distance:
        step: Step = []
        for index, rank in enumerate(group):
            node, place = divmod(index, members)
            held = range(node % (2 * distance), nodes, 2 * distance)
            partner = group[(node ^ distance) * members + place]
            step.append(Transfer(rank, partner, tuple((group[k * members + place], 0) for k in held)))
        schedule.append(step)
        distance //= 2
    return schedule


def chains_in_channels(group: Sequence[int], members: int) -> Schedule:
    """A broadcast from the first rank once round rings as in `gather_in_channels`; blocks are (first rank, ring)."""
    chains: list[Schedule] = []
    for channel in range(members):
        order = _in_channel(group, members, channel)
        start = order.index(group[0])
        chain = order[start:] + order[:start]
        chains.append([[Transfer(a, b, ((group[0], channel),))] for a, b in pairwise(chain)])
    return together(*chains)


def _in_channel(group: Sequence[int], members: int, channel: int) -> list[int]:
    """Node after node, each from another of its ranks on."""
    nodes = range(0, len(group), members)
    return [group[node + (channel + k) % members] for node in nodes for k in range(members)]


def exchange_directly(group: Sequence[int]) -> Schedule:
    """All-to-all in which every block goes straight to its rank."""
    return [[Transfer(a, b, ((a, b, 0),)) for a in group for b in group if a != b]]


def exchange_in_rounds(group: Sequence[int], factors: Sequence[int]) -> Schedule:
    """All-to-all, one partner a round: the one that is so many units, nodes and places further on, nearest first.

    `factors` as in `gather_by_levels`: rounds in which nobody leaves its node come first, then those inside units.
    """
    schedule: Schedule = []
    for shift in range(1, len(group)):
        step: Step = []
        for index, rank in enumerate(group):
            partner, stride = 0, 1
            for factor in factors:
                partner += (index // stride + shift // stride) % factor * stride
                stride *= factor
            step.append(Transfer(rank, group[partner], ((rank, group[partner], 0),)))
        schedule.append(step)
    return schedule


def exchange_on_rails(group: Sequence[int], node_size: int) -> Schedule:
    """All-to-all in which a block first goes to the rank of its own node that has the place of its target."""
    first: Step = []
    second: Step = []
    for a in group:
        for b in group:
            relay = a // node_size * node_size + b % node_size
            if relay != a:
                first.append(Transfer(a, relay, ((a, b, 0),)))
            if b != relay:
                second.append(Transfer(relay, b, ((a, b, 0),)))
    return [first, second]
