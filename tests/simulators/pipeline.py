"""Pipeline schedules executed op by op: who computes what in which order is fixed, when follows from the data.

Forward of a micro-batch on a stage needs that of the stage before, its input gradient that of the stage after (the last one its
own forward), its weight gradient its input gradient. A whole backward is both gradients as one op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

FORWARD, BACKWARD, INPUT, WEIGHT = "forward", "backward", "input gradient", "weight gradient"
Op = tuple[str, int, int]
"""What, stage, micro-batch."""
Slot = tuple[Op, ...]
"""One op, or two that run together as a pair."""


class DeadlockError(Exception):
    """Every device waits for another."""


@dataclass(frozen=True, slots=True)
class Program:
    """What each device does in turn. `home` tells the device of a stage for a micro-batch; `chunks`, how many stages a device
    has for each micro-batch.
    """

    orders: tuple[tuple[Slot, ...], ...]
    stages: int
    chunks: int
    home: Callable[[int, int], int]


@dataclass(frozen=True, slots=True)
class Run:
    """`bubble`: the common end minus the work of the busiest device. By device, stage shares of activations
    (micro-batches over chunks) at the fullest moment: `in_flight` are held until the input gradient is done, `held` until the
    weight gradient is. `messages`: activations and gradients sent. `ended`: when each op was done.
    """

    makespan: Fraction
    bubble: Fraction
    in_flight: tuple[Fraction, ...]
    held: tuple[Fraction, ...]
    messages: int
    ended: dict[Op, Fraction]


def in_a_line(orders: Iterable[Iterable[Op]], chunks: int = 1) -> Program:
    """Device d has the stages d, d + p, d + 2 p and so on."""
    alone = tuple(tuple((op,) for op in order) for order in orders)
    devices = len(alone)
    return Program(alone, devices * chunks, chunks, lambda stage, _: stage % devices)


def gpipe(devices: int, micro_batches: int) -> Program:
    return breadth_first(devices, micro_batches, 1)


def breadth_first(devices: int, micro_batches: int, chunks: int) -> Program:
    """All micro-batches through a chunk before the next chunk."""
    return in_a_line(
        (
            [(FORWARD, chunk * devices + d, m) for chunk in range(chunks) for m in range(micro_batches)]
            + [(BACKWARD, chunk * devices + d, m) for chunk in reversed(range(chunks)) for m in range(micro_batches)]
            for d in range(devices)
        ),
        chunks,
    )


def one_forward_one_backward(devices: int, micro_batches: int) -> Program:
    """Device i starts with as many forwards as there are devices after it, then alternates."""
    return interleaved(devices, micro_batches, 1, warm_up=1)


def interleaved(devices: int, micro_batches: int, chunks: int, group: int | None = None, warm_up: int = 2) -> Program:
    """Groups of micro-batches go through all chunks of a device before the next group; Megatron's order and warm-up."""
    size = min(group or devices, micro_batches)
    forth, back = in_groups(micro_batches, chunks, size)
    orders = []
    for d in range(devices):
        forward = [(FORWARD, chunk * devices + d, m) for chunk, m in forth]
        backward = [(BACKWARD, chunk * devices + d, m) for chunk, m in back]
        orders.append(alternating(forward, backward, warm_up * (devices - 1 - d) + (chunks - 1) * size))
    return in_a_line(orders, chunks)


def in_groups(micro_batches: int, chunks: int, size: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Chunk and micro-batch of every pass of a device, forward and backward."""
    groups = [range(start, min(start + size, micro_batches)) for start in range(0, micro_batches, size)]
    forth = [(chunk, m) for batch in groups for chunk in range(chunks) for m in batch]
    return forth, [(chunks - 1 - chunk, m) for chunk, m in forth]


def alternating(forward: Sequence[Op], backward: Sequence[Op], ahead: int) -> list[Op]:
    ahead = min(ahead, len(forward))
    order = list(forward[:ahead])
    for later, earlier in zip(forward[ahead:], backward, strict=False):
        order += [later, earlier]
    return order + list(backward[len(forward) - ahead :])


def run(
    program: Program,
    forward: Sequence[Fraction],
    backward: Sequence[Fraction],
    message: Fraction = Fraction(0),
    *,
    weight: Sequence[Fraction] | None = None,
    pair: Fraction | None = None,
) -> Run:
    """Execute; seconds by stage, a pair taking `pair` or both after each other; a message takes `message` seconds and delays
    only who waits for it.

    `backward` is the whole backward pass, or the input gradient alone where `weight` gives the other.
    """
    late = weight or [Fraction(0)] * program.stages
    seconds = {
        FORWARD: forward,
        INPUT: backward,
        WEIGHT: late,
        BACKWARD: [a + b for a, b in zip(backward, late, strict=True)],
    }
    devices = len(program.orders)
    ended: dict[Op, Fraction] = {}
    clock, work, position = [Fraction(0)] * devices, [Fraction(0)] * devices, [0] * devices
    messages = 0
    left = sum(map(len, program.orders))
    while left:
        before = left
        for device, order in enumerate(program.orders):
            while position[device] < len(order):
                slot = order[position[device]]
                needs = [need for op in slot if (need := needed(op, program.stages)) is not None]
                if any(need not in ended for need in needs):
                    break
                remote = [program.home(need[1], need[2]) != device for need in needs]
                ready = max((ended[n] + message * r for n, r in zip(needs, remote, strict=True)), default=Fraction(0))
                together = pair is not None and len(slot) > 1
                took = pair if together else sum((seconds[what][stage] for what, stage, _ in slot), Fraction(0))
                clock[device] = max(clock[device], ready) + took
                work[device] += took
                for what, stage, batch in slot:
                    ended[what, stage, batch] = clock[device]
                    if what == BACKWARD:
                        ended[INPUT, stage, batch] = clock[device]
                messages += sum(remote)
                position[device] += 1
                left -= 1
        if left == before:
            raise DeadlockError
    makespan = max(clock)
    until_input, until_weight = (
        tuple(_fullest(order, program.chunks, ends) for order in program.orders)
        for ends in ({BACKWARD, INPUT}, {BACKWARD, WEIGHT})
    )
    return Run(makespan, makespan - max(work), until_input, until_weight, messages, ended)


def needed(op: Op, stages: int) -> Op | None:
    """The op whose result is needed; None for a batch that enters."""
    what, stage, batch = op
    if what == FORWARD:
        return (FORWARD, stage - 1, batch) if stage else None
    if what == WEIGHT:
        return (INPUT, stage, batch)
    return (FORWARD, stage, batch) if stage == stages - 1 else (INPUT, stage + 1, batch)


def _fullest(order: Sequence[Slot], chunks: int, ends: set[str]) -> Fraction:
    held = peak = 0
    for slot in order:
        held += sum(what == FORWARD for what, _, _ in slot)
        peak = max(peak, held)
        held -= sum(what in ends for what, _, _ in slot)
    return Fraction(peak, chunks)


def run_blocking(
    micro_batches: int, forward: Sequence[Fraction], backward: Sequence[Fraction], message: Fraction
) -> Fraction:
    """Makespan of one-forward-one-backward whose messages are exchanges that hold up both sides.

    Calls as in Megatron's schedule without interleaving: alone while warming up and cooling down, and a send paired
    with the receive from the same neighbour in between. A message moves once both sides have called.
    """
    devices = len(forward)
    return _exchange([_blocking_program(d, devices, micro_batches) for d in range(devices)], forward, backward, message)


def run_blocking_interleaved(
    micro_batches: int, chunks: int, forward: Sequence[Fraction], backward: Sequence[Fraction], message: Fraction
) -> Fraction:
    """The same of an interleaved schedule, seconds by device of one chunk: one exchange after each pass, or pair of passes."""
    devices = len(forward)
    programs = [_blocking_interleaved(d, devices, micro_batches, chunks) for d in range(devices)]
    return _exchange(programs, forward, backward, message)


def _exchange(
    programs: Sequence[list[str | list[tuple[str, int, int]]]],
    forward: Sequence[Fraction],
    backward: Sequence[Fraction],
    message: Fraction,
) -> Fraction:
    devices = len(programs)
    called: dict[tuple[str, int, int], list[Fraction]] = {}
    clock = [Fraction(0)] * devices
    position = [0] * devices
    posted = [False] * devices
    while any(position[device] < len(programs[device]) for device in range(devices)):
        before = (list(position), list(posted))
        for device, program in enumerate(programs):
            while position[device] < len(program):
                action = program[position[device]]
                if isinstance(action, str):
                    clock[device] += (forward if action == FORWARD else backward)[device]
                else:
                    if not posted[device]:
                        for name in action:
                            called.setdefault(name, []).append(clock[device])
                        posted[device] = True
                    if any(len(called[name]) < 2 for name in action):
                        break
                    clock[device] = max([clock[device], *(max(called[name]) + message for name in action)])
                    posted[device] = False
                position[device] += 1
        if before == (position, posted):
            raise DeadlockError
    return max(clock)


def _blocking_interleaved(
    device: int, devices: int, micro_batches: int, chunks: int
) -> list[str | list[tuple[str, int, int]]]:
    """As `_blocking_program`; the gradient for the first backward pass is received with the last exchange of the warm-up."""
    forth, back = in_groups(micro_batches, chunks, min(devices, micro_batches))
    passes, stages = len(forth), devices * chunks
    ahead = min(2 * (devices - 1 - device) + (chunks - 1) * min(devices, micro_batches), passes)

    def stage(chunk: int) -> int:
        return chunk * devices + device

    def crossing(direction: str, order: Sequence[tuple[int, int]], k: int, behind: int) -> list[tuple[str, int, int]]:
        """The message of the k-th pass over the boundary in front of its stage (`behind` 0) or behind it (1)."""
        if not 0 <= k < passes:
            return []
        boundary = stage(order[k][0]) + behind
        return [(direction, boundary, order[k][1])] if 0 < boundary < stages else []

    program: list[str | list[tuple[str, int, int]]] = []

    def call(*messages: list[tuple[str, int, int]]) -> None:
        if wanted := [message for several in messages for message in several]:
            program.append(wanted)

    call(crossing(FORWARD, forth, 0, 0))
    for k in range(ahead):
        program.append(FORWARD)
        first_gradient = crossing(BACKWARD, back, 0, 1) if k == ahead - 1 else []
        call(crossing(FORWARD, forth, k, 1), crossing(FORWARD, forth, k + 1, 0), first_gradient)
    for k in range(passes - ahead):
        program += [FORWARD, BACKWARD]
        call(
            crossing(FORWARD, forth, ahead + k, 1),
            crossing(BACKWARD, back, k, 0),
            crossing(FORWARD, forth, ahead + k + 1, 0),
            crossing(BACKWARD, back, k + 1, 1),
        )
    for k in range(passes - ahead, passes):
        program.append(BACKWARD)
        call(crossing(BACKWARD, back, k, 0), crossing(BACKWARD, back, k + 1, 1))
    return program


def _blocking_program(device: int, devices: int, micro_batches: int) -> list[str | list[tuple[str, int, int]]]:
    """Computations (by direction) and calls: messages (direction, boundary, micro-batch) exchanged together."""
    ahead = min(devices - 1 - device, micro_batches)
    first, last = device == 0, device == devices - 1
    program: list[str | list[tuple[str, int, int]]] = []

    def call(*messages: tuple[str, int, int] | None) -> None:
        if wanted := [message for message in messages if message is not None]:
            program.append(wanted)

    def enters(batch: int) -> tuple[str, int, int] | None:
        return None if first or batch >= micro_batches else (FORWARD, device - 1, batch)

    def leaves(batch: int) -> tuple[str, int, int] | None:
        return None if last else (FORWARD, device, batch)

    def gradient_enters(batch: int) -> tuple[str, int, int] | None:
        return None if last else (BACKWARD, device, batch)

    def gradient_leaves(batch: int) -> tuple[str, int, int] | None:
        return None if first else (BACKWARD, device - 1, batch)

    for batch in range(ahead):
        call(enters(batch))
        program.append(FORWARD)
        call(leaves(batch))
    if ahead < micro_batches:
        call(enters(ahead))
    for batch in range(micro_batches - ahead):
        program.append(FORWARD)
        call(leaves(ahead + batch), gradient_enters(batch))
        program.append(BACKWARD)
        call(gradient_leaves(batch), enters(ahead + batch + 1))
    for batch in range(micro_batches - ahead, micro_batches):
        call(gradient_enters(batch))
        program.append(BACKWARD)
        call(gradient_leaves(batch))
    return program
