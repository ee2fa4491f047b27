"""Collectives that need the same links at the same time: what of a layer is not there for FSDP and gradients to hide behind."""

from costmodel.equations.axes import SHARDING
from costmodel.symbolic import Chapter, count, equation, given, largest, seconds, select


class TakenLinks(Chapter):
    """The part of a layer during which other axes occupy the links that sharing weights and gradients needs.

    Traffic that shows holds its links while it lasts: other traffic over them waits, and hides only behind what is left.
    Traffic that hides is slowed by the wire factors instead. Groups that share may sum over other links than they share on (HSDP).
    """

    weights_sharded = given(count, "1 when the weights are shared", SHARDING, owner="layout")

    tp_shares_links = given(count, "1 where tensor-parallel traffic takes the links of FSDP and gradients")
    cp_shares_links = given(count, "1 where context-parallel traffic does")
    ep_shares_links = given(count, "1 where exchanges of experts do")
    tp_shares_across = given(count, "1 where tensor-parallel traffic takes the links on which groups sum their shares")
    cp_shares_across = given(count, "1 where context-parallel traffic does")
    ep_shares_across = given(count, "1 where exchanges of experts do")
    fsdp_shares_across = given(
        count, "1 where traffic of groups that share weights takes the links on which they sum their shares"
    )
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
    # The weights being shared, gradients are scattered layer by layer, and what is left to the end of a step is the sum over
    # groups. Otherwise it comes after the scatter among neighbours, and is taken to wait for the links of both.
    tp_shares_sync, cp_shares_sync, ep_shares_sync = (
        equation(
            count,
            select(sharded > 0, across, largest(neighbours, across)),
            f"1 where {axis} traffic takes the links of what follows the last backward pass",
            approximate="where neighbours scatter and groups sum over unlike links, both wait for what takes either",
        )
        for axis, neighbours, across, sharded in (
            ("tensor-parallel", tp_shares_links, tp_shares_across, weights_sharded),
            ("context-parallel", cp_shares_links, cp_shares_across, weights_sharded),
            ("experts'", ep_shares_links, ep_shares_across, weights_sharded),
        )
    )
    taken_sync = equation(
        seconds,
        tp_shares_sync * tp_backward + cp_shares_sync * cp_backward + ep_shares_sync * ep_backward,
        "of its backward pass, when the links of what follows the last one are taken",
        source="loads of concurrent collectives add on the links that they share",
    )
