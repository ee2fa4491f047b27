"""What each collective must achieve: the blocks, who holds what at first, and what must be held at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.simulators.network import Block, Memory, Network, Node, Schedule, ScheduleError, lockstep

WHOLE = (Fraction(1),)
HALVES = (Fraction(1, 2), Fraction(1, 2))


@dataclass(frozen=True)
class Job:
    """`sizes` in bytes by block, `first` and `last` what each node holds: block -> ranks whose data are in it."""

    sizes: dict[Block, Fraction]
    first: Memory
    last: Memory

    def memory(self) -> Memory:
        return {node: dict(held) for node, held in self.first.items()}

    def verify(self, memory: Memory) -> None:
        """Raise ScheduleError unless every node holds what the collective promises."""
        for node, wanted in self.last.items():
            for block, contributors in wanted.items():
                found = memory.get(node, {}).get(block)
                if found != contributors:
                    raise ScheduleError(f"{node} should hold {block} from {set(contributors)}, holds {found}")


Clock = Callable[..., Fraction]


def carry_out(network: Network, schedule: Schedule, job: Job, clock: Clock = lockstep, **how: bool) -> Fraction:
    """Run the schedule, check its result, return the seconds it took."""
    memory = job.memory()
    seconds = clock(network, schedule, job.sizes, memory, **how)
    job.verify(memory)
    return seconds


def _pieces(ranks: Sequence[Node], payload: Fraction, shares: Sequence[Fraction]) -> dict[Block, Fraction]:
    return {(rank, piece): payload * share / len(ranks) for rank in ranks for piece, share in enumerate(shares)}


def _own(sizes: Iterable[Block], node: Node) -> dict[Block, frozenset[Node]]:
    return {block: frozenset([node]) for block in sizes}


def all_gather(ranks: Sequence[Node], payload: Fraction, shares: Sequence[Fraction] = WHOLE) -> Job:
    """Block (rank, piece): a piece of that rank's shard; `payload` bytes are gathered altogether."""
    sizes = _pieces(ranks, payload, shares)
    everything: dict[Block, frozenset[Node]] = {block: frozenset([block[0]]) for block in sizes}
    first: Memory = {rank: {block: who for block, who in everything.items() if block[0] == rank} for rank in ranks}
    return Job(sizes, first, {rank: dict(everything) for rank in ranks})


def reduce_scatter(ranks: Sequence[Node], payload: Fraction, shares: Sequence[Fraction] = WHOLE) -> Job:
    """Block (rank, piece): what that rank is to own of the sum of `payload` bytes on every rank."""
    sizes = _pieces(ranks, payload, shares)
    everyone = frozenset(ranks)
    first: Memory = {rank: _own(sizes, rank) for rank in ranks}
    return Job(sizes, first, {rank: {block: everyone for block in sizes if block[0] == rank} for rank in ranks})


def all_reduce(ranks: Sequence[Node], payload: Fraction, shares: Sequence[Fraction] = WHOLE) -> Job:
    """Blocks as in a reduce-scatter; at the end everybody holds the sum of all of them."""
    sizes = _pieces(ranks, payload, shares)
    everyone = frozenset(ranks)
    return Job(
        sizes, {rank: _own(sizes, rank) for rank in ranks}, {rank: dict.fromkeys(sizes, everyone) for rank in ranks}
    )


def all_to_all(ranks: Sequence[Node], payload: Fraction, shares: Sequence[Fraction] = WHOLE) -> Job:
    """Block (source, target, piece); `payload` is what one rank sends, its block to itself included."""
    sizes: dict[Block, Fraction] = {
        (a, b, piece): payload * share / len(ranks) for a in ranks for b in ranks for piece, share in enumerate(shares)
    }
    return exchange(ranks, sizes)


def exchange(ranks: Sequence[Node], sizes: dict[Block, Fraction]) -> Job:
    """Any demand: blocks (source, target, piece) of any size."""
    first: Memory = {rank: {} for rank in ranks}
    last: Memory = {rank: {} for rank in ranks}
    for block in sizes:
        source, target = block[0], block[1]
        first[source][block] = last[target][block] = frozenset([source])
    return Job(sizes, first, last)


def broadcast(ranks: Sequence[Node], payload: Fraction, shares: Sequence[Fraction] = WHOLE) -> Job:
    """Block (root, piece): a piece of the message of the first rank."""
    root = ranks[0]
    sizes: dict[Block, Fraction] = {(root, piece): payload * share for piece, share in enumerate(shares)}
    return Job(sizes, {root: _own(sizes, root)}, {rank: _own(sizes, root) for rank in ranks})


def reduction(ranks: Sequence[Node], payload: Fraction, shares: Sequence[Fraction] = WHOLE) -> Job:
    """Block (root, piece): a piece of the sum that the first rank is to hold."""
    sizes = broadcast(ranks, payload, shares).sizes
    return Job(
        sizes, {rank: _own(sizes, rank) for rank in ranks}, {ranks[0]: {block: frozenset(ranks) for block in sizes}}
    )


def reduction_to_all(ranks: Sequence[Node], payload: Fraction, shares: Sequence[Fraction] = WHOLE) -> Job:
    """An all-reduce of one undivided message: blocks as in a reduction, everybody holds the sum."""
    job = reduction(ranks, payload, shares)
    return Job(job.sizes, job.first, {rank: dict(job.last[ranks[0]]) for rank in ranks})


def gather(ranks: Sequence[Node], payload: Fraction, shares: Sequence[Fraction] = WHOLE) -> Job:
    """Block (rank, piece): of that rank's part of the `payload` bytes which the first rank collects."""
    job = all_gather(ranks, payload, shares)
    return Job(job.sizes, job.first, {ranks[0]: job.last[ranks[0]]})


def scatter(ranks: Sequence[Node], payload: Fraction, shares: Sequence[Fraction] = WHOLE) -> Job:
    """Block (rank, piece): of the part of the first rank's `payload` bytes that belongs to that rank."""
    sizes = _pieces(ranks, payload, shares)
    root = ranks[0]
    last: Memory = {rank: {block: frozenset([root]) for block in sizes if block[0] == rank} for rank in ranks}
    return Job(sizes, {root: _own(sizes, root)}, last)


def side_by_side(jobs: Iterable[Job]) -> Job:
    """Several groups' jobs at once; their ranks are all different."""
    together = Job({}, {}, {})
    for job in jobs:
        together.sizes.update(job.sizes)
        together.first.update(job.first)
        together.last.update(job.last)
    return together


def even(count: int) -> tuple[Fraction, ...]:
    """`count` equal shares."""
    return (Fraction(1, count),) * count
