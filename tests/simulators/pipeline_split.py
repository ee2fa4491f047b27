"""Orders of the schedules that split the backward pass: the zero-bubble family, in a line or folded to a V."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from tests.simulators.pipeline import FORWARD, INPUT, WEIGHT, Op, Program, in_a_line, in_groups


def zero_bubble(devices: int, micro_batches: int, chunks: int = 1, depth: int = 1, group: int | None = None) -> Program:
    """ZB-H1, or with `depth` 2 ZB-H2: device i starts with `depth` forwards for each device after it, then alternates forward and
    input gradient; its first weight gradient comes `depth` i input gradients late. With chunks, the interleaved ZB-1p.
    """
    size = min(group or devices, micro_batches)
    forth, back = in_groups(micro_batches, chunks, size)
    orders = []
    for d in range(devices):
        ahead = depth * (devices - 1 - d) + (chunks - 1) * size
        entering = iter([(FORWARD, chunk * devices + d, m) for chunk, m in forth])
        order = list(_next(entering, ahead))
        weights = iter([(WEIGHT, chunk * devices + d, m) for chunk, m in back])
        for done, (chunk, m) in enumerate(back):
            order += _next(entering, 1)
            order.append((INPUT, chunk * devices + d, m))
            if done >= depth * d:
                order += _next(weights, 1)
        orders.append([*order, *weights])
    return in_a_line(orders, chunks)


def _next(ops: Iterator[Op], most: int) -> Iterable[Op]:
    return list(islice(ops, most))


def folded(orders: list[list[tuple[str, int, int]]], micro_batches: int) -> Program:
    """Ops as (what, chunk, micro-batch); device d has the stages d and 2 p - 1 - d. Micro-batches beyond those asked for go."""
    p = len(orders)
    on_stages = tuple(
        tuple(((what, 2 * p - 1 - d if chunk else d, m),) for what, chunk, m in order if m < micro_batches)
        for d, order in enumerate(orders)
    )
    return Program(on_stages, 2 * p, 2, lambda stage, _: min(stage, 2 * p - 1 - stage))


def zb_v(devices: int, micro_batches: int) -> Program:
    """ZB-V as in PyTorch: forwards of the way out until the way back arrives, then one of each, weights where a device would idle."""
    many = max(micro_batches, 2 * devices - 1)
    orders = []
    for d in range(devices):
        out, back = _Chunk(0), _Chunk(1)
        order = [out.forward() for _ in range(2 * (devices - d) - 1)]
        for _ in range(d):
            order += [back.forward(), out.forward()]
        for _ in range(devices - d):
            order += [back.forward(), back.input(), back.weight()]
        while out.forwards < many or back.forwards < many:
            if out.forwards < many:
                order.append(out.forward())
            order += [out.input(), out.weight(), back.forward(), back.input(), back.weight()]
        for _ in range(d):
            order += [out.input(), back.input()]
        for _ in range(devices - d):
            order += [out.input(), out.weight()]
        order += [back.weight() for _ in range(back.inputs - back.weights)]
        order += [out.weight() for _ in range(out.inputs - out.weights)]
        orders.append(order)
    return folded(orders, micro_batches)


class _Chunk:
    """Deals out the micro-batches of a chunk, each kind of op in turn."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.forwards = self.inputs = self.weights = 0

    def forward(self) -> Op:
        self.forwards += 1
        return (FORWARD, self.number, self.forwards - 1)

    def input(self) -> Op:
        self.inputs += 1
        return (INPUT, self.number, self.inputs - 1)

    def weight(self) -> Op:
        self.weights += 1
        return (WEIGHT, self.number, self.weights - 1)


def v_half(devices: int, micro_batches: int, ahead: int = 1) -> Program:
    p = devices
    gap = 0 if p % 2 else 3
    starts = [(2 * d, 3 * p - 2 - d, 3 * p - 1 + gap + 2 * d, 6 * p - 2 + gap - d) for d in range(p)]
    return _repeated(starts, micro_batches, ahead)


def v_min(devices: int, micro_batches: int, ahead: int = 1) -> Program:
    p = devices
    gap = 0 if p % 3 else 2
    starts = [(d, 2 * p - 1 - d, 2 * p + gap + d, 4 * p - 1 + gap - d) for d in range(p)]
    return _repeated(starts, micro_batches, ahead)


def _repeated(starts: list[tuple[int, int, int, int]], micro_batches: int, ahead: int) -> Program:
    """A block of Qi et al. (controllable memory) gives the order of priority and the memory: when forward out and back and the input
    gradients back and out of a micro-batch would start on a device, six slots after those of the micro-batch before.

    Each device does, slot by slot, the first of its next `ahead` ops that is ready and for which it has room, and weight gradients
    when there is none.
    """
    p = len(starts)
    kinds = ((FORWARD, 0), (FORWARD, 1), (INPUT, 1), (INPUT, 0))
    room = max(_held(block) for block in starts)
    queues = [
        sorted(
            (slot + 6 * m, what, chunk, m)
            for m in range(micro_batches)
            for slot, (what, chunk) in zip(block, kinds, strict=True)
        )
        for block in starts
    ]
    done: dict[tuple[str, int, int], int] = {}
    orders: list[list[Op]] = [[] for _ in starts]
    held = [0] * p
    waiting: list[list[tuple[int, int]]] = [[] for _ in starts]
    time = 0
    while any(queues) or any(waiting):
        finished = []
        for d in range(p):
            for place, (_, what, chunk, m) in enumerate(queues[d][:ahead]):
                stage = 2 * p - 1 - d if chunk else d
                if what == FORWARD:
                    needed = (FORWARD, stage - 1, m) if stage else None
                    if held[d] + 1 > room:
                        continue
                else:
                    needed = (FORWARD, stage, m) if stage == 2 * p - 1 else (INPUT, stage + 1, m)
                if needed is None or needed in done:
                    del queues[d][place]
                    orders[d].append((what, chunk, m))
                    finished.append((what, stage, m))
                    held[d] += what == FORWARD
                    waiting[d] += [(chunk, m)] if what == INPUT else []
                    break
            else:
                if waiting[d]:
                    orders[d].append((WEIGHT, *waiting[d].pop(0)))
                    held[d] -= 1
        done.update(dict.fromkeys(finished, time))
        time += 1
    return folded(orders, micro_batches)


def _held(block: tuple[int, int, int, int]) -> int:
    """Chunks held at the fullest moment of a block repeated for ever, weight gradients in the next free slots."""
    taken = {slot % 6 for slot in block}
    free = [slot for slot in range(6) if slot not in taken]
    spans = []
    for start, end in ((block[0], block[3]), (block[1], block[2])):
        after = next(slot for slot in range(end + 1, end + 7) if slot % 6 in free)
        free.remove(after % 6)
        spans.append((start, after))
    return max(sum(len(range(start + (t - start) % 6, after + 1, 6)) for start, after in spans) for t in range(6))
