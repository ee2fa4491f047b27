"""The pipeline schedules by label, and what kinds of them there are."""

from collections.abc import Mapping

from costmodel.symbolic import choose
from costmodel.symbolic.nodes import Expression

SCHEDULES = (
    "1f1b",
    "interleaved",
    "gpipe",
    "breadth-first",
    "zb-h1",
    "zb-h2",
    "zb-1p",
    "zb-2p",
    "interleaved-zb",
    "zb-v",
    "v-half",
    "v-min",
    "dualpipe",
    "dualpipev",
    "chimera",
    "pipedream",
    "pipedream-2bw",
)
"""In the order in which the equations number them."""

CHUNKED = ("interleaved", "breadth-first", "interleaved-zb")
"""Rank r holds chunks r, r + p, r + 2 p and so on, as many as one likes but at least two."""

FOLDED = ("zb-v", "v-half", "v-min", "dualpipev")
"""Two chunks a rank, the second on the way back: the first rank holds both the embedding and the head."""

TWO_WAY = ("dualpipe", "chimera")
"""Micro-batches enter at both ends: a rank holds a stage of either way, so that there are two copies of the weights."""

SPLIT = ("zb-h1", "zb-h2", "zb-1p", "zb-2p", "interleaved-zb", "zb-v", "v-half", "v-min", "dualpipe", "dualpipev")
"""The backward pass is split: gradients of weights wait until a rank would idle."""

ASYNCHRONOUS = ("pipedream", "pipedream-2bw")
"""The pipeline never drains, so gradients are those of older weights: the mathematics of the training changes."""


def by_schedule(
    schedule: Expression, formulas: Mapping[str | tuple[str, ...], Expression], others: Expression
) -> Expression:
    """The formula of the schedule, each given for one label or for several; `others` for those not named."""
    named = {
        label: formula
        for labels, formula in formulas.items()
        for label in ((labels,) if isinstance(labels, str) else labels)
    }
    rest = {label: others for label in SCHEDULES if label not in named}
    return choose(schedule, named | rest)
