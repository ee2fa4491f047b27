"""Orders of the schedules whose micro-batches meet: DualPipe, DualPipeV, Chimera."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simulators.pipeline import BACKWARD, FORWARD, INPUT, WEIGHT, Op, Program, Slot

Mark = tuple[str, int]
"""What, and of which of the two streams that meet on a device."""


def dualpipe(devices: int, micro_batches: int) -> Program:
    """Even micro-batches enter at the first device, odd ones at the last; a device has one stage for each."""
    half = devices // 2
    orders = []
    for d in range(devices):
        near = 0 if d < half else 1  # the stream whose end of the pipeline is nearer
        stages = (d, devices - 1 - d)
        marks = _meeting(min(d, devices - 1 - d), half, micro_batches // 2)
        orders.append(_numbered(marks, [(stages[near ^ s], near ^ s, 2) for s in (0, 1)]))
    return Program(tuple(orders), devices, 1, _two_way(devices))


def dualpipev(devices: int, micro_batches: int) -> Program:
    """DualPipe over twice the stages, folded: the second stream is the first on its way back."""
    p = devices
    orders = [_numbered(_meeting(d, p, micro_batches), [(d, 0, 1), (2 * p - 1 - d, 0, 1)]) for d in range(p)]
    return Program(tuple(orders), 2 * p, 2, lambda stage, _: min(stage, 2 * p - 1 - stage))


def _two_way(devices: int):
    return lambda stage, batch: devices - 1 - stage if batch % 2 else stage


def _meeting(edge: int, half: int, each: int) -> Iterator[tuple[Mark, ...]]:
    """The steps of DeepSeek's released DualPipe on the device that is `edge` away from an end; `each` micro-batches a stream."""
    inner = half - 1 - edge
    for _ in range(2 * inner):
        yield ((FORWARD, 0),)
    for _ in range(edge + 1):
        yield ((FORWARD, 0),)
        yield ((FORWARD, 1),)
    for _ in range(inner):
        yield ((INPUT, 1),)
        yield ((WEIGHT, 1),)
        yield ((FORWARD, 1),)
    for step in range(each - 2 * half + edge + 1):
        if step == 0 and inner == 0:
            yield ((FORWARD, 0),)
            yield ((BACKWARD, 1),)
        else:
            yield ((FORWARD, 0), (BACKWARD, 1))
        yield ((FORWARD, 1), (BACKWARD, 0))
    for _ in range(inner):
        yield ((BACKWARD, 1),)
        yield ((FORWARD, 1), (BACKWARD, 0))
    # Whole backward passes first; from the middle on the weights wait, and the ops alternate between the streams.
    for place in range(2 * (edge + 1)):
        yield ((INPUT if place > edge else BACKWARD, 1 - place % 2),)
    for _ in range(inner):
        yield ((WEIGHT, 0),)
        yield ((INPUT, 0),)
    for _ in range(edge + 1):
        yield ((WEIGHT, 0),)


def _numbered(marks: Iterator[tuple[Mark, ...]], streams: list[tuple[int, int, int]]) -> tuple[Slot, ...]:
    """Micro-batches for the marks. A stream is its stage, its first micro-batch and the step to the next; weights are first in, first
    out over both.
    """
    counts = {(kind, s): 0 for kind in (FORWARD, INPUT) for s in (0, 1)}
    waiting: list[tuple[int, int]] = []
    slots = []
    for together in marks:
        slot: list[Op] = []
        for what, s in together:
            if what == WEIGHT:
                slot.append((WEIGHT, *waiting.pop(0)))
                continue
            stage, first, step = streams[s]
            kind = FORWARD if what == FORWARD else INPUT
            slot.append((what, stage, first + step * counts[kind, s]))
            counts[kind, s] += 1
            if what == INPUT:
                waiting.append(slot[-1][1:])
        slots.append(tuple(slot))
    return tuple(slots)


def chimera(devices: int, micro_batches: int) -> Program:
    """Two 1F1B pipelines against each other, p micro-batches at a time: on stage s, micro-batch k of its way and unit has the forward
    slot s + 2 k and the backward slot 2 p - 1 - s + 2 k, which never meet where both passes take a slot.
    """
    p = devices
    orders = []
    for d in range(p):
        at: list[tuple[int, Op]] = []
        for batch in range(micro_batches):
            stage = p - 1 - d if batch % 2 else d
            unit, k = divmod(batch // 2, p // 2)
            start = 2 * p * unit + 2 * k
            at += [(start + stage, (FORWARD, stage, batch)), (start + 2 * p - 1 - stage, (BACKWARD, stage, batch))]
        orders.append(tuple((op,) for _, op in sorted(at)))
    return Program(tuple(orders), p, 1, _two_way(p))
