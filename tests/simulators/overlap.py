"""Communication inside a layer, executed: shards that go round a ring, pieces behind one another, two micro-batches of experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction


def gathered_in_a_ring(ranks: int, piece: Fraction, hop: Fraction) -> Fraction:
    """A rank multiplies its own shard, and each other one when it has come; shards go on as soon as they are there."""
    arrived = free = Fraction(0)
    for shard in range(ranks):
        arrived += hop if shard else 0
        free = max(free, arrived) + piece
    return free


def scattered_in_a_ring(ranks: int, piece: Fraction, hop: Fraction) -> Fraction:
    """Sums go round, and a rank adds its product for a shard before it passes it on; its own shard comes last, and is its last product."""
    free = passed = Fraction(0)
    for _ in range(ranks - 1):
        free += piece
        passed = max(passed, free) + hop
    return max(free + piece, passed)


def in_pieces(first: Sequence[Fraction], second: Sequence[Fraction]) -> Fraction:
    """Each piece goes through the first stage, then through the second, in order."""
    begun = done = Fraction(0)
    for before, after in zip(first, second, strict=True):
        begun += before
        done = max(done, begun) + after
    return done


COMMUNICATES = ("combine_backward", "dispatch_forward", "dispatch_backward", "combine_forward")
COMPUTES = ("attention_forward", "experts_backward", "experts_weights", "experts_forward", "attention_backward")
AFTER = {
    "dispatch_forward": "attention_forward",
    "experts_forward": "dispatch_forward",
    "combine_forward": "experts_forward",
    "experts_backward": "combine_backward",
    "experts_weights": "experts_backward",
    "dispatch_backward": "experts_backward",
    "attention_backward": "dispatch_backward",
}
"""What a phase waits for, beside the one before it on its stream; the first of a layer for the last of the one before."""


def expert_pairs(layers: int, times: Mapping[str, Fraction]) -> Fraction:
    """Two streams, each of which takes its phases in order: so many layers forward beside as many backward."""
    done: dict[str, Fraction] = {}
    streams = {"communicates": Fraction(0), "computes": Fraction(0)}
    for _ in range(layers):
        before = {"attention_forward": "combine_forward", "combine_backward": "attention_backward"}
        ready = {phase: done.get(last, Fraction(0)) for phase, last in before.items()}
        waiting = {"communicates": list(COMMUNICATES), "computes": list(COMPUTES)}
        ended: dict[str, Fraction] = {}
        while any(waiting.values()):
            for stream, phases in waiting.items():
                if phases and (phases[0] in ready or AFTER[phases[0]] in ended):
                    phase = phases.pop(0)
                    begin = ready[phase] if phase in ready else ended[AFTER[phase]]
                    streams[stream] = ended[phase] = max(streams[stream], begin) + times[phase]
        done = ended
    return max(streams.values())
