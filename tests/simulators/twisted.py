"""Twisted tori as graphs: distances by breadth-first search, cable loads of all shortest ways, gathers along closed lines.

`doubled` axes are 2k long and the others k. With one, each short axis closes k further along the long one; with two, the short
axis closes k further along both.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

Chip = tuple[int, ...]
Cable = tuple[Chip, int, int]
"""A chip, an axis and a way along it, 1 or -1."""


@dataclass(frozen=True)
class Twisted:
    """k x k x 2k chips (one axis doubled) or k x 2k x 2k (two)."""

    k: int
    doubled: int

    @property
    def shape(self) -> Chip:
        return (self.k, self.k, 2 * self.k) if self.doubled == 1 else (self.k, 2 * self.k, 2 * self.k)

    @cached_property
    def chips(self) -> list[Chip]:
        return list(product(*map(range, self.shape)))

    def step(self, chip: Chip, axis: int, way: int) -> Chip:
        """The chip at the other end of a cable."""
        moved = list(chip)
        moved[axis] += way
        if not 0 <= moved[axis] < self.shape[axis]:
            moved[axis] %= self.shape[axis]
            for other, length in enumerate(self.shape):
                if self.shape[axis] == self.k and length == 2 * self.k:
                    moved[other] = (moved[other] + way * self.k) % length
        return tuple(moved)

    def neighbours(self, chip: Chip) -> list[tuple[Cable, Chip]]:
        return [((chip, axis, way), self.step(chip, axis, way)) for axis in range(3) for way in (1, -1)]

    def distances(self, source: Chip) -> dict[Chip, int]:
        found = {source: 0}
        queue = deque([source])
        while queue:
            chip = queue.popleft()
            for _, there in self.neighbours(chip):
                if there not in found:
                    found[there] = found[chip] + 1
                    queue.append(there)
        return found

    def mean_hops(self) -> Fraction:
        """Cables from a chip to another, on average over all, itself among them."""
        found = self.distances((0, 0, 0))
        return Fraction(sum(found.values()), len(found))

    def exchange_loads(self) -> dict[Cable, Fraction]:
        """All-to-all of one payload a chip: what every cable carries when all shortest ways of a block are used alike."""
        loads = dict.fromkeys([cable for chip in self.chips for cable, _ in self.neighbours(chip)], Fraction(0))
        for source in self.chips:
            far = self.distances(source)
            order = sorted(far, key=lambda chip: far[chip])
            ways = {source: 1}
            for chip in order:
                for _, there in self.neighbours(chip):
                    if far[there] == far[chip] + 1:
                        ways[there] = ways.get(there, 0) + ways[chip]
            # What arrives at a chip, its own block and what goes on, came over its last cables in the ratio of their ways.
            passing = dict.fromkeys(order, Fraction(1, len(order)))
            for chip in reversed(order):
                for (_, axis, way), before in self.neighbours(chip):
                    if far[before] == far[chip] - 1:
                        share = passing[chip] * ways[before] / ways[chip]
                        passing[before] += share
                        loads[before, axis, -way] += share
        return loads

    def disjoint_shortest_ways(self, target: Chip) -> int:
        """How many shortest ways from the first chip to `target` share no cable: a maximum flow, found way by way."""
        source = (0, 0, 0)
        near, far = self.distances(source), self.distances(target)
        room: dict[tuple[Chip, Chip], int] = {}
        for chip in self.chips:
            for _, there in self.neighbours(chip):
                if near[chip] + 1 + far[there] == near[target]:
                    room[chip, there] = room.get((chip, there), 0) + 1
                    room.setdefault((there, chip), 0)
        found = 0
        while (way := self._way(source, target, room)) is not None:
            for cable in way:
                room[cable] -= 1
                room[cable[1], cable[0]] += 1
            found += 1
        return found

    def _way(self, source: Chip, target: Chip, room: dict[tuple[Chip, Chip], int]) -> list[tuple[Chip, Chip]] | None:
        came: dict[Chip, Chip] = {source: source}
        queue = deque([source])
        while queue and target not in came:
            chip = queue.popleft()
            for _, there in self.neighbours(chip):
                if there not in came and room.get((chip, there), 0) > 0:
                    came[there] = chip
                    queue.append(there)
        if target not in came:
            return None
        way, chip = [], target
        while chip != source:
            way.append((came[chip], chip))
            chip = came[chip]
        return way

    def gather(self, order: tuple[int, int, int]) -> tuple[dict[Cable, Fraction], int]:
        """All-gather along closed lines of one axis after the other: shards over every cable, and steps taken.

        Raises AssertionError unless every chip ends with every shard, each received once.
        """
        loads: dict[Cable, Fraction] = {}
        held: dict[Chip, list[Chip]] = {chip: [chip] for chip in self.chips}
        steps = 0
        for axis in order:
            line = self._line(held, axis)
            steps += line // 2
            before = {chip: list(shards) for chip, shards in held.items()}
            for chip in self.chips:
                for way in (1, -1):
                    source = chip
                    for distance in range(1, line // 2 + 1):
                        source = self.step(source, axis, -way)
                        # What lies half way round comes half from either side.
                        share = Fraction(1, 2) if 2 * distance == line else Fraction(1)
                        if share == 1 or way == 1:
                            held[chip] += before[source]
                        cable = (self.step(chip, axis, -way), axis, way)
                        loads[cable] = loads.get(cable, Fraction(0)) + share * len(before[source])
        if any(sorted(shards) != self.chips for shards in held.values()):
            raise AssertionError("a shard is missing, or came twice")
        return loads, steps

    def _line(self, held: dict[Chip, list[Chip]], axis: int) -> int:
        """Chips along an axis until one that holds what the first does."""
        first = (0, 0, 0)
        chip, length = self.step(first, axis, 1), 1
        while chip not in held[first]:
            chip, length = self.step(chip, axis, 1), length + 1
        return length
