"""Pipeline schedules executed op by op: who computes what in which order is fixed, when follows from the data.

A device holds `chunks` stages; stage s = chunk * devices + device. Forward of micro-batch m on stage s needs that of
stage s - 1, backward that of stage s + 1, the last backward its own forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

FORWARD, BACKWARD = "forward", "backward"
Op = tuple[str, int, int]
"""Direction, chunk on the device, micro-batch."""


class DeadlockError(Exception):
    """Every device waits for another."""


@dataclass(frozen=True, slots=True)
class Run:
    """`bubble`: the common end minus the work of the busiest device. `in_flight`: by device, stage shares of
    activations (micro-batches over chunks) held at the fullest moment. `messages`: activations and gradients sent."""

    makespan: Fraction
    bubble: Fraction
    in_flight: tuple[Fraction, ...]
    messages: int


def gpipe(devices: int, micro_batches: int) -> list[list[Op]]:
    everything = range(micro_batches)
    order: list[Op] = [(FORWARD, 0, m) for m in everything]
    order += [(BACKWARD, 0, m) for m in everything]
    return [order for _ in range(devices)]


def one_forward_one_backward(devices: int, micro_batches: int) -> list[list[Op]]:
    """Device i starts with as many forwards as there are devices after it, then alternates."""
    return [
        _alternating(
            [(0, m) for m in range(micro_batches)], [(0, m) for m in range(micro_batches)], devices - 1 - device
        )
        for device in range(devices)
    ]


def interleaved(devices: int, micro_batches: int, chunks: int, group: int | None = None) -> list[list[Op]]:
    """Groups of micro-batches go through all chunks of a device before the next group; Megatron's order and warm-up."""
    size = min(group or devices, micro_batches)
    groups = [range(start, min(start + size, micro_batches)) for start in range(0, micro_batches, size)]
    forward = [(chunk, m) for batch in groups for chunk in range(chunks) for m in batch]
    backward = [(chunks - 1 - chunk, m) for batch in groups for chunk in range(chunks) for m in batch]
    return [
        _alternating(forward, backward, 2 * (devices - 1 - device) + (chunks - 1) * size) for device in range(devices)
    ]


def _alternating(forward: list[tuple[int, int]], backward: list[tuple[int, int]], ahead: int) -> list[Op]:
    ahead = min(ahead, len(forward))
    order: list[Op] = [(FORWARD, *op) for op in forward[:ahead]]
    for later, earlier in zip(forward[ahead:], backward, strict=False):
        order += [(FORWARD, *later), (BACKWARD, *earlier)]
    return order + [(BACKWARD, *op) for op in backward[len(forward) - ahead :]]


def run(
    order: Sequence[Sequence[Op]],
    forward: Sequence[Fraction],
    backward: Sequence[Fraction],
    message: Fraction = Fraction(0),
) -> Run:
    """Execute; `forward` and `backward` seconds by stage; a message takes `message` seconds and delays only who waits for it."""
    devices, stages = len(order), len(forward)
    seconds = {FORWARD: forward, BACKWARD: backward}
    ended: dict[tuple[str, int, int], Fraction] = {}
    clock = [Fraction(0)] * devices
    work = [Fraction(0)] * devices
    position = [0] * devices
    messages = 0
    while any(position[device] < len(order[device]) for device in range(devices)):
        before = sum(position)
        for device in range(devices):
            while position[device] < len(order[device]):
                direction, chunk, batch = order[device][position[device]]
                stage = chunk * devices + device
                needed, crosses = _input_of(direction, stage, batch, stages)
                if needed is not None and needed not in ended:
                    break
                sent = crosses and devices > 1
                ready = (ended[needed] if needed is not None else 0) + (message if sent else 0)
                clock[device] = max(clock[device], ready) + seconds[direction][stage]
                work[device] += seconds[direction][stage]
                ended[direction, stage, batch] = clock[device]
                messages += sent
                position[device] += 1
        if sum(position) == before:
            raise DeadlockError
    makespan = max(clock)
    return Run(makespan, makespan - max(work), _in_flight(order, stages // devices), messages)


def _input_of(direction: str, stage: int, batch: int, stages: int) -> tuple[tuple[str, int, int] | None, bool]:
    """The op whose result is needed, and whether it comes from another stage; None for a batch that enters."""
    if direction == FORWARD:
        return ((FORWARD, stage - 1, batch), True) if stage else (None, False)
    return ((FORWARD, stage, batch), False) if stage == stages - 1 else ((BACKWARD, stage + 1, batch), True)


def _in_flight(order: Sequence[Sequence[Op]], chunks: int) -> tuple[Fraction, ...]:
    peaks = []
    for ops in order:
        held = peak = 0
        for direction, _, _ in ops:
            held += 1 if direction == FORWARD else -1
            peak = max(peak, held)
        peaks.append(Fraction(peak, chunks))
    return tuple(peaks)


def run_blocking(
    micro_batches: int, forward: Sequence[Fraction], backward: Sequence[Fraction], message: Fraction
) -> Fraction:
    """Makespan of one-forward-one-backward whose messages are exchanges that hold up both sides.

    Calls as in Megatron's schedule without interleaving: alone while warming up and cooling down, and a send paired
    with the receive from the same neighbour in between. A message moves once both sides have called.
    """
    devices = len(forward)
    programs = [_blocking_program(device, devices, micro_batches) for device in range(devices)]
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
