"""The engine: blocks on nodes, transfers over lines, three ways to clock them.

A *line* is anything that carries bytes one way and can be full: a cable, a port's way out, a network card,
a shared uplink. A transfer occupies every line of its route. What a node holds of a block is the set of the
ranks whose data went into it, so that a lost, repeated or doubly counted contribution is an error and not a
slightly wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

Node = Hashable
Block = tuple[Hashable, ...]
LineName = Hashable
Contributors = frozenset[Node]
Memory = dict[Node, dict[Block, Contributors]]
Sizes = Mapping[Block, Fraction]


class ScheduleError(Exception):
    """The schedule does something a real machine could not do, or something useless."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Blocks that go from one node to another; `combine` adds them to what is there, otherwise they replace it."""

    source: Node
    target: Node
    blocks: tuple[Block, ...]
    combine: bool = False
    lane: Hashable = None

    def reversed(self) -> Transfer:
        return Transfer(self.target, self.source, self.blocks, True, self.lane)


Step = list[Transfer]
Schedule = list[Step]


@dataclass(frozen=True, slots=True)
class Line:
    latency: Fraction
    bandwidth: Fraction


@dataclass(frozen=True)
class Network:
    """Lines by name, and the names of those that a transfer occupies, in order."""

    lines: Mapping[LineName, Line]
    route: Callable[[Transfer], Sequence[LineName]]

    def path(self, transfer: Transfer) -> list[LineName]:
        names = list(self.route(transfer))
        for name in names:
            if name not in self.lines:
                raise ScheduleError(f"{transfer.source} -> {transfer.target} needs {name}, which does not exist")
        return names

    def latency(self, path: Iterable[LineName]) -> Fraction:
        return sum((self.lines[name].latency for name in path), Fraction(0))


def cables(pairs: Iterable[tuple[Node, Node]], latency: Fraction, bandwidth: Fraction) -> Network:
    """Direct cables, both ways, between the pairs named; a second cable between a pair is not a second line."""
    line = Line(latency, bandwidth)
    lines: dict[LineName, Line] = {way: line for a, b in pairs for way in ((a, b), (b, a))}
    return Network(lines, lambda transfer: [(transfer.source, transfer.target)])


def crossbar(nodes: Iterable[Node], latency: Fraction, bandwidth: Fraction) -> Network:
    """A non-blocking switch: each node has one port, which carries `bandwidth` out and as much in."""
    lines: dict[LineName, Line] = {}
    for node in nodes:
        lines["out", node] = Line(latency, bandwidth)
        lines["in", node] = Line(Fraction(0), bandwidth)
    return Network(lines, lambda transfer: [("out", transfer.source), ("in", transfer.target)])


def _deliver(memory: Memory, step: Step) -> None:
    """Move the blocks of one step: everything is read before anything is written."""
    carried = []
    for transfer in step:
        held = memory.setdefault(transfer.source, {})
        for block in transfer.blocks:
            if block not in held:
                raise ScheduleError(f"{transfer.source} sends {block}, which it does not hold")
            carried.append((transfer, block, held[block]))
    for transfer, block, contributors in carried:
        there = memory.setdefault(transfer.target, {})
        before = there.get(block, frozenset())
        if transfer.combine:
            if before & contributors:
                raise ScheduleError(
                    f"{transfer.target} counts {sorted(map(str, before & contributors))} twice in {block}"
                )
            there[block] = before | contributors
        else:
            if not before <= contributors:
                raise ScheduleError(f"{transfer.target} loses part of {block} to what {transfer.source} sends")
            there[block] = contributors


def _size(transfer: Transfer, sizes: Sizes) -> Fraction:
    return sum((sizes[block] for block in transfer.blocks), Fraction(0))


def loads(network: Network, schedule: Schedule, sizes: Sizes) -> dict[LineName, Fraction]:
    """Bytes that each line carries over the whole schedule."""
    carried: dict[LineName, Fraction] = {}
    for step in schedule:
        for transfer in step:
            for name in network.path(transfer):
                carried[name] = carried.get(name, Fraction(0)) + _size(transfer, sizes)
    return carried


def longest(network: Network, schedule: Schedule, sizes: Sizes) -> Fraction:
    """Seconds for which the busiest line moves bytes: no clocking of the schedule can be quicker."""
    carried = loads(network, schedule, sizes)
    return max((amount / network.lines[name].bandwidth for name, amount in carried.items()), default=Fraction(0))


def lockstep(network: Network, schedule: Schedule, sizes: Sizes, memory: Memory) -> Fraction:
    """Seconds when a step starts once the one before has ended everywhere; transfers that share a line share it fairly."""
    total = Fraction(0)
    for step in schedule:
        carried = loads(network, [step], sizes)
        slowest = Fraction(0)
        for transfer in step:
            path = network.path(transfer)
            moving = max((carried[name] / network.lines[name].bandwidth for name in path), default=Fraction(0))
            slowest = max(slowest, network.latency(path) + moving)
        total += slowest
        _deliver(memory, step)
    return total


def free_running(
    network: Network, schedule: Schedule, sizes: Sizes, memory: Memory, *, pipelined: bool = False
) -> Fraction:
    """Seconds when a transfer starts as soon as its blocks have come and its lines are free.

    Each line serves its transfers in the order of the schedule. `pipelined`: a line is busy for the bytes only,
    and the latency passes while it already moves what comes next.
    """
    free: dict[LineName, Fraction] = {}
    ready: dict[tuple[Node, Block], Fraction] = {}
    end = Fraction(0)
    for step in schedule:
        arrivals = []
        for transfer in step:
            path = network.path(transfer)
            start = max((free.get(name, Fraction(0)) for name in path), default=Fraction(0))
            start = max([start, *(ready.get((transfer.source, block), Fraction(0)) for block in transfer.blocks)])
            moving = _size(transfer, sizes) / min(network.lines[name].bandwidth for name in path)
            latency = network.latency(path)
            for name in path:
                free[name] = start + moving + (Fraction(0) if pipelined else latency)
            arrivals.append((transfer, start + latency + moving))
        for transfer, arrival in arrivals:
            for block in transfer.blocks:
                place = (transfer.target, block)
                ready[place] = max(ready.get(place, Fraction(0)), arrival)
            end = max(end, arrival)
        _deliver(memory, step)
    return end


def streamed(network: Network, schedule: Schedule, sizes: Sizes, memory: Memory) -> Fraction:
    """Seconds in the limit of ever smaller chunks that follow each other: every line works all the time.

    What remains is the latency of the longest way that a block goes and the bytes of the busiest line.
    """
    reached: dict[tuple[Node, Block], Fraction] = {}
    for step in schedule:
        arrivals = [
            ((t.target, block), reached.get((t.source, block), Fraction(0)) + network.latency(network.path(t)))
            for t in step
            for block in t.blocks
        ]
        for place, moment in arrivals:
            reached[place] = max(reached.get(place, Fraction(0)), moment)
        _deliver(memory, step)
    return max(reached.values(), default=Fraction(0)) + longest(network, schedule, sizes)


def eager(network: Network, schedule: Schedule, sizes: Sizes, memory: Memory) -> Fraction:
    """Seconds when no line waits for a transfer that cannot start yet if it could serve a later one.

    The schedule says what must have come before a transfer can leave (the steps before it, block by block) and
    who goes first when several could.
    """
    before: dict[int, set[int]] = {}
    arrived: dict[tuple[Node, Block], set[int]] = {}
    waiting: list[tuple[int, Transfer]] = []
    for step in schedule:
        numbered = [(len(waiting) + offset, transfer) for offset, transfer in enumerate(step)]
        for number, transfer in numbered:
            before[number] = set().union(*(arrived.get((transfer.source, block), set()) for block in transfer.blocks))
        for number, transfer in numbered:
            for block in transfer.blocks:
                arrived.setdefault((transfer.target, block), set()).add(number)
        waiting += numbered
        _deliver(memory, step)
    free: dict[LineName, Fraction] = {}
    ended: dict[int, Fraction] = {}
    now = Fraction(0)
    while waiting:
        left = []
        for number, transfer in waiting:
            path = network.path(transfer)
            ready = all(other in ended and ended[other] <= now for other in before[number])
            if ready and all(free.get(name, Fraction(0)) <= now for name in path):
                seconds = network.latency(path) + _size(transfer, sizes) / min(
                    network.lines[name].bandwidth for name in path
                )
                ended[number] = now + seconds
                free.update(dict.fromkeys(path, now + seconds))
            else:
                left.append((number, transfer))
        waiting = left
        now = min((moment for moment in ended.values() if moment > now), default=now)
    return max(ended.values(), default=Fraction(0))


def backwards(schedule: Schedule) -> Schedule:
    """The schedule run back in time with every copy turned into a sum: a gathering becomes a reduction."""
    return [[transfer.reversed() for transfer in step] for step in reversed(schedule)]


def towards(schedule: Schedule, root: Node) -> Schedule:
    """What is left of a gathering when only one node is to have everything."""
    wanted: set[tuple[Node, Block]] = set()
    kept: Schedule = []
    for step in reversed(schedule):
        moves: Step = []
        for t in step:
            blocks = tuple(block for block in t.blocks if t.target == root or (t.target, block) in wanted)
            if blocks:
                moves.append(Transfer(t.source, t.target, blocks, t.combine, t.lane))
        wanted |= {(t.source, block) for t in moves for block in t.blocks}
        kept.append(moves)
    return [step for step in reversed(kept) if step]


def outwards(schedule: Schedule) -> Schedule:
    """A gathering towards one node run back in time: that node hands out what it would have collected."""
    return [[Transfer(t.target, t.source, t.blocks, lane=t.lane) for t in step] for step in reversed(schedule)]


def together(*schedules: Schedule) -> Schedule:
    """Schedules that run side by side, step by step."""
    length = max((len(schedule) for schedule in schedules), default=0)
    return [
        [transfer for schedule in schedules if index < len(schedule) for transfer in schedule[index]]
        for index in range(length)
    ]
