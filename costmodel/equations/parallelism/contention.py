"""Collectives that need the same links at the same time: what of a layer is not there for FSDP and gradients to hide behind."""

from costmodel.symbolic import Chapter, count, equation, given, seconds


class TakenLinks(Chapter):
    """The part of a layer during which other axes occupy the links that sharing weights and gradients needs.

    Traffic that shows holds its links while it lasts: other traffic over them waits, and hides only behind what is left.
    Traffic that hides is slowed by the wire factors instead.
    """

    tp_shares_links = given(count, "1 where tensor-parallel traffic takes the links of FSDP and gradients")
    cp_shares_links = given(count, "1 where context-parallel traffic does")
    ep_shares_links = given(count, "1 where exchanges of experts do")
    tp_forward = given(seconds, "tensor-parallel traffic of a layer that shows, forward")
    tp_backward = given(seconds, "the same, backward, what is repeated included")
    cp_forward = given(seconds, "context-parallel traffic of a layer that shows, forward")
    cp_backward = given(seconds, "the same, backward, what is repeated included")
    ep_forward = given(seconds, "exchanges of experts that show, forward")
    ep_backward = given(seconds, "the same, backward, what is repeated included")

    taken_forward = equation(
        seconds,
        tp_shares_links * tp_forward + cp_shares_links * cp_forward + ep_shares_links * ep_forward,
        "of a layer's forward pass, when the links are taken",
        source="loads of concurrent collectives add on the links that they share",
    )
    taken_backward = equation(
        seconds,
        tp_shares_links * tp_backward + cp_shares_links * cp_backward + ep_shares_links * ep_backward,
        "of its backward pass",
        source="loads of concurrent collectives add on the links that they share",
    )
