"""What recomputation repeats of a layer's communication."""

from costmodel.equations.axes import RECOMPUTE
from costmodel.equations.parallelism.layout import Layout
from costmodel.symbolic import Chapter, choose, count, equation, part


class Repeated(Chapter):
    """How often the forward communication of the average layer comes again in its backward pass."""

    layout = part(Layout, shared=True)

    repeated_tp = equation(
        count,
        choose(layout.recompute, dict.fromkeys(RECOMPUTE.labels, 0) | {"full": 1}) / layout.recompute_every,
        "times that recomputation repeats the communication of a layer's forward pass among tensor-parallel ranks and experts",
    )
    repeated_cp = equation(
        count,
        choose(layout.recompute, dict.fromkeys(RECOMPUTE.labels, 0) | {"attention": 1, "full": 1})
        / layout.recompute_every,
        "times that it repeats the context-parallel communication, which is part of the attention",
    )
