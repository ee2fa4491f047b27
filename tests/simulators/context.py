"""A ring of ranks that pass keys and values on while they attend to those they have, executed exchange by exchange."""

from fractions import Fraction


def forward(works, send):
    """When the last rank is done: `works[rank][step]` is its attention in a step, `send` takes a block to the next rank.

    A step begins when its block is there and the one before is done; its block moves on during the step, once both ends are
    in it, since the next rank has room for one block beside the one in use.
    """
    ranks, steps = len(works), len(works[0])
    begins = [Fraction(0)] * ranks
    for step in range(steps):
        ends = [begin + works[rank][step] for rank, begin in enumerate(begins)]
        if step == steps - 1:
            return max(ends)
        here = [max(begins[rank - 1], begins[rank]) + send for rank in range(ranks)]
        begins = [max(end, there) for end, there in zip(ends, here, strict=True)]
    return Fraction(0)


def forward_running_ahead(works, send):
    """The same where a rank has room for all blocks, so that they move on as soon as they are there."""
    ends = [Fraction(0)] * len(works)
    for step in range(len(works[0])):
        ends = [max(end, step * send) + works[rank][step] for rank, end in enumerate(ends)]
    return max(ends)


def backward(works, send, send_gradient):
    """The same with the gradient of each block, which follows it a step behind and is added to in every step.

    A link carries the block of the step and the gradient of the one before, one after the other; the last hop takes each
    gradient to the rank that the block came from.
    """
    ranks, steps = len(works), len(works[0])
    begins = [Fraction(0)] * ranks
    for step in range(steps):
        moved = (send if step < steps - 1 else 0) + (send_gradient if step else 0)
        ends = [begin + works[rank][step] for rank, begin in enumerate(begins)]
        here = [max(begins[rank - 1], begins[rank]) + moved for rank in range(ranks)]
        begins = [max(end, there) for end, there in zip(ends, here, strict=True)]
    return max(max(begins[rank - 1], begins[rank]) + send_gradient for rank in range(ranks))


def zigzag(ranks, tokens):
    """The tokens of each rank: one early and one late piece."""
    piece = tokens // (2 * ranks)
    return [
        [*range(r * piece, (r + 1) * piece), *range((2 * ranks - 1 - r) * piece, (2 * ranks - r) * piece)]
        for r in range(ranks)
    ]


def contiguous(ranks, tokens):
    """The tokens of each rank: one piece."""
    piece = tokens // ranks
    return [list(range(r * piece, (r + 1) * piece)) for r in range(ranks)]


def pairs(split, window):
    """Query-key pairs of each rank and step, counted one by one; those on the edges of what a query sees count half."""

    def seen(query, key):
        back = query - key
        return Fraction(int(0 <= back < window) + int(0 < back <= window), 2)

    ranks = len(split)
    return [
        [sum(seen(q, k) for q in split[rank] for k in split[(rank - step) % ranks]) for step in range(ranks)]
        for rank in range(ranks)
    ]
