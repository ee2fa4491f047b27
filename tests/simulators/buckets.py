"""Reductions of gradients behind a backward pass, bucket by bucket, alone and behind a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tests.simulators.pipeline import BACKWARD, FORWARD, INPUT, Program, needed


def behind_one_pass(buckets: Sequence[Fraction], times: Sequence[Fraction], backward: Fraction) -> Fraction:
    """Seconds from the end of the backward pass to the end of the last reduction; buckets in the order they fill."""
    whole = sum(buckets)
    free = filled = Fraction(0)
    for size, seconds in zip(buckets, times, strict=True):
        filled += size
        free = max(free, backward * filled / whole) + seconds
    return free - backward


def behind_pipeline(
    program: Program,
    forward: Fraction,
    backward: Fraction,
    *,
    gather: Fraction = Fraction(0),
    reduction: Fraction = Fraction(0),
    buckets: int = 1,
) -> Fraction:
    """End of the last op or reduction of any device: times of a whole rank, shared by its chunks.

    Weights are gathered chunk by chunk from the start; a chunk's gradients are reduced in buckets during its last backward pass.
    """
    chunks = program.chunks
    order = [[op for slot in slots for op in slot] for slots in program.orders]
    devices = len(order)
    seconds = {FORWARD: forward / chunks, BACKWARD: backward / chunks}
    last = {op[1]: op for ops in order for op in ops if op[0] == BACKWARD}
    ended: dict[tuple[str, int, int], Fraction] = {}
    clock, wire = [Fraction(0)] * devices, [Fraction(0)] * devices
    position = [0] * devices
    while any(position[device] < len(order[device]) for device in range(devices)):
        for device, ops in enumerate(order):
            while position[device] < len(ops):
                direction, stage, batch = op = ops[position[device]]
                need = needed(op, program.stages)
                if need is not None and need not in ended:
                    break
                ready = ended[need] if need is not None else Fraction(0)
                gathered = (stage // devices + 1) * gather / chunks if direction == FORWARD else Fraction(0)
                start = max(clock[device], ready, gathered)
                kind = INPUT if direction == BACKWARD else direction
                clock[device] = ended[kind, stage, batch] = start + seconds[direction]
                position[device] += 1
                if op == last[stage]:
                    for bucket in range(1, buckets + 1):
                        full = start + seconds[BACKWARD] * bucket / buckets
                        wire[device] = max(wire[device], full) + reduction / chunks / buckets
    return max(*clock, *wire)
