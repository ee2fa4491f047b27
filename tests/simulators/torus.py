"""Tori and meshes whose axes are cut into sub-axes: bucket all-gather in any mix of axis orders, all-to-all loads.

A slice is a list of axes; each axis is written as a product over logical axes, innermost first, for example
`[("tensor", 4), ("data", 4)]` for one of sixteen chips. All groups of a logical axis work at the same time, so that
those which share cables are seen to share them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations, product
from math import prod
from typing import cast

from tests.simulators.jobs import Job, all_gather, side_by_side
from tests.simulators.network import Line, LineName, Network, Schedule, Step, Transfer, loads, together

Chip = tuple[int, ...]
Row = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class SubAxis:
    """`size` chips at distance `stride` along a physical axis; a ring if the last of them is next to the first."""

    axis: int
    size: int
    stride: int
    ring: bool


@dataclass(frozen=True)
class Slice:
    """A torus or mesh with its axes written as products over logical axes; `wraps` says which axes are closed."""

    rows: tuple[Row, ...]
    wraps: tuple[bool, ...]
    latency: Fraction = Fraction(0)
    bandwidth: Fraction = Fraction(1)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(prod(size for _, size in row) for row in self.rows)

    @property
    def chips(self) -> list[Chip]:
        return list(product(*map(range, self.shape)))

    def sub_axes(self, name: str) -> list[SubAxis]:
        """Where a logical axis lies. Two chips have one cable, so a length of 2 is never a ring."""
        found = []
        for axis, (row, length, wrap) in enumerate(zip(self.rows, self.shape, self.wraps, strict=True)):
            stride = 1
            for label, size in row:
                if label == name and size > 1:
                    found.append(SubAxis(axis, size, stride, wrap and stride * size == length and length > 2))
                stride *= size
        return found

    def step(self, chip: Chip, axis: int, distance: int) -> Chip:
        moved = (chip[axis] + distance) % self.shape[axis]
        return (*chip[:axis], moved, *chip[axis + 1 :])

    def digit(self, chip: Chip, sub: SubAxis) -> int:
        return chip[sub.axis] // sub.stride % sub.size

    def groups(self, name: str) -> list[list[Chip]]:
        """The groups of a logical axis: chips that differ in its sub-axes only."""
        subs = self.sub_axes(name)
        found: dict[Chip, list[Chip]] = {}
        for chip in self.chips:
            corner = chip
            for sub in subs:
                corner = self.step(corner, sub.axis, -self.digit(chip, sub) * sub.stride)
            found.setdefault(corner, []).append(chip)
        return list(found.values())

    def network(self) -> Network:
        """Every cable carries `bandwidth` each way; a hop between neighbours of a group may pass through other chips."""
        line = Line(self.latency, self.bandwidth)
        lines: dict[LineName, Line] = {}
        for chip in self.chips:
            for axis, (length, wrap) in enumerate(zip(self.shape, self.wraps, strict=True)):
                for way in (1, -1):
                    if length > 1 and (0 <= chip[axis] + way < length or wrap):
                        lines[chip, self.step(chip, axis, way)] = line

        def route(transfer: Transfer) -> list[LineName]:
            source, target = cast("Chip", transfer.source), cast("Chip", transfer.target)
            axis, distance = cast("tuple[int, int]", transfer.lane)
            # A schedule run backwards keeps its lanes: then the way is the other one.
            way = next(way for way in (distance, -distance) if self.step(source, axis, way) == target)
            return list(self.cables(source, axis, way))

        return Network(lines, route)

    def cables(self, chip: Chip, axis: int, distance: int) -> Iterator[tuple[Chip, Chip]]:
        """The cables passed on the way from a chip along an axis."""
        way = 1 if distance > 0 else -1
        for _ in range(abs(distance)):
            following = self.step(chip, axis, way)
            yield chip, following
            chip = following


def gather_job(machine: Slice, name: str, payload: Fraction, shares: Sequence[Fraction]) -> Job:
    """All groups of a logical axis gather; each shard is split over the axis orders by `shares`, each part in two halves."""
    halves = [share / 2 for share in shares for _ in range(2)]
    return side_by_side(all_gather(group, payload, halves) for group in machine.groups(name))


def gather(machine: Slice, orders: Sequence[Sequence[SubAxis]]) -> Schedule:
    """Bucket all-gather: the part of each order goes along its sub-axes one after the other, every group at once."""
    return together(*[_gather_in_order(machine, order, (2 * k, 2 * k + 1)) for k, order in enumerate(orders)])


def _gather_in_order(machine: Slice, order: Sequence[SubAxis], pieces: tuple[int, int]) -> Schedule:
    held: dict[Chip, list[Chip]] = {chip: [chip] for chip in machine.chips}
    schedule: Schedule = []
    for sub in order:
        line = {chip: _line(machine, sub, chip) for chip in machine.chips}
        held_along = {chip: [held[member] for member in line[chip]] for chip in machine.chips}
        schedule += _gather_along(machine, sub, pieces, held_along)
        held = {chip: [origin for origins in held_along[chip] for origin in origins] for chip in machine.chips}
    return schedule


def _line(machine: Slice, sub: SubAxis, chip: Chip) -> list[Chip]:
    """The members of a sub-axis that a chip lies on, in order."""
    start = machine.step(chip, sub.axis, -machine.digit(chip, sub) * sub.stride)
    return [machine.step(start, sub.axis, k * sub.stride) for k in range(sub.size)]


def _gather_along(
    machine: Slice, sub: SubAxis, pieces: tuple[int, int], held_along: dict[Chip, list[list[Chip]]]
) -> Schedule:
    """Both ways at once; on a ring what lies opposite comes half from either side."""
    schedule: Schedule = []
    for distance in range(1, (sub.size // 2 if sub.ring else sub.size - 1) + 1):
        step: Step = []
        for chip in machine.chips:
            place = machine.digit(chip, sub)
            for way, half in ((1, pieces[:1]), (-1, pieces[1:])):
                origin = place - way * (distance - 1)
                if sub.ring:
                    origin %= sub.size
                elif not (0 <= place + way < sub.size and 0 <= origin < sub.size):
                    continue
                sent = half if sub.ring and 2 * distance == sub.size else pieces
                blocks = tuple((source, piece) for source in held_along[chip][origin] for piece in sent)
                target = machine.step(chip, sub.axis, way * sub.stride)
                step.append(Transfer(chip, target, blocks, lane=(sub.axis, way * sub.stride)))
        schedule.append(step)
    return schedule


def axis_loads(machine: Slice, schedule: Schedule, job: Job) -> list[Fraction]:
    """Bytes on the busiest cable of each axis."""
    busiest = [Fraction(0)] * len(machine.shape)
    for cable, amount in loads(machine.network(), schedule, job.sizes).items():
        axis = _axis_of(cable)
        busiest[axis] = max(busiest[axis], amount)
    return busiest


def _axis_of(cable: LineName) -> int:
    here, there = cast("tuple[Chip, Chip]", cable)
    return next(axis for axis, (a, b) in enumerate(zip(here, there, strict=True)) if a != b)


def best_shares(loads_by_order: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """How to divide the bytes over axis orders so that the busiest axis is least busy.

    The linear programme has few variables: some orders are used, as many axes are equally busy. All such corners are
    tried, in exact fractions.
    """
    orders, axes = range(len(loads_by_order)), range(len(loads_by_order[0]))
    best: tuple[Fraction, list[Fraction]] | None = None
    for count in range(1, min(len(orders), len(axes)) + 1):
        for used in combinations(orders, count):
            for tight in combinations(axes, count):
                rows = [[loads_by_order[order][axis] for order in used] + [Fraction(-1)] for axis in tight]
                solution = _solve([*rows, [Fraction(1)] * count + [Fraction(0)]], [Fraction(0)] * count + [Fraction(1)])
                if solution is None or min(solution[:-1]) < 0:
                    continue
                shares = [dict(zip(used, solution, strict=False)).get(order, Fraction(0)) for order in orders]
                mixed = zip(
                    *([share * load for load in row] for share, row in zip(shares, loads_by_order, strict=True)),
                    strict=True,
                )
                busiest = Fraction(max(map(sum, mixed)))
                if best is None or busiest < best[0]:
                    best = (busiest, shares)
    if best is None:
        raise AssertionError("one order alone is always a corner")
    return best[1]


def _solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """Gauss-Jordan elimination; None if the equations have no single solution."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = next((row for row in range(column, size) if rows[row][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(size):
            if row != column and rows[row][column]:
                factor = rows[row][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    return [row[-1] for row in rows]


def exchange_loads(machine: Slice, name: str, payload: Fraction) -> dict[tuple[Chip, Chip], Fraction]:
    """All-to-all in all groups of a logical axis: bytes on each cable, minimal routes, all axis orders equally often."""
    orders = list(permutations(machine.sub_axes(name)))
    carried: dict[tuple[Chip, Chip], Fraction] = {}
    for group in machine.groups(name):
        block = payload / len(group) / len(orders)
        for source, target, order in product(group, group, orders):
            for share, route in _routes(machine, source, target, order):
                for cable in route:
                    carried[cable] = carried.get(cable, Fraction(0)) + share * block
    return carried


def _routes(
    machine: Slice, source: Chip, target: Chip, order: Sequence[SubAxis]
) -> Iterator[tuple[Fraction, list[tuple[Chip, Chip]]]]:
    """The shortest routes that take the sub-axes in order, with the part of the bytes on each; opposite places split."""
    if not order:
        if source != target:
            raise AssertionError(f"the route ends at {source}, not at {target}")
        yield Fraction(1), []
        return
    sub = order[0]
    ahead = machine.digit(target, sub) - machine.digit(source, sub)
    if sub.ring:
        ahead %= sub.size
        choices = [ahead - sub.size] if 2 * ahead > sub.size else [ahead, -ahead] if 2 * ahead == sub.size else [ahead]
    else:
        choices = [ahead]
    for distance in choices:
        first = list(machine.cables(source, sub.axis, distance * sub.stride))
        following = machine.step(source, sub.axis, distance * sub.stride)
        for share, rest in _routes(machine, following, target, order[1:]):
            yield share / len(choices), first + rest
