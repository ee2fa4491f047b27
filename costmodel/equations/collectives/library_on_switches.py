"""The algorithms of a library on a switched machine, each by every protocol, with the constants of its links."""

from collections.abc import Mapping
from typing import Any

from costmodel.equations.collectives.library import (
    CHOICE,
    FITTED,
    AddedInSwitches,
    AddedInSwitchesAcross,
    ExchangeByProtocol,
    RingByProtocol,
    TreeByProtocol,
)
from costmodel.symbolic import (
    Chapter,
    bytes_per_second,
    count,
    equation,
    given,
    infinite,
    part,
    seconds,
)
from costmodel.symbolic.system import View

LINKS = "link"


class LibraryConstants(Chapter):
    """Constants of a library: by protocol those of the domain's link and of the network's, those of grouped sends."""

    ll_start = given(seconds, "low latency: from the call to the first byte", owner=LINKS)
    ll_step = given(seconds, "low latency: one step inside a fast domain", owner=LINKS)
    ll_share = given(count, "low latency: of a port; 0 where it is not used", owner=LINKS)
    ll_overhead = given(seconds, "low latency: the least that a step of a ring takes over several domains", owner=LINKS)
    ll_ring_step = given(seconds, "low latency: one step of a ring between domains", owner=LINKS)
    ll_tree_step = given(seconds, "low latency: one step of a tree between domains", owner=LINKS)
    ll_nic_share = given(count, "low latency: of a NIC; 0 where it is not used", owner=LINKS)
    ll_rank_rate = given(bytes_per_second, "low latency: what one rank sends at most over several domains", owner=LINKS)
    ll128_start = given(seconds, "128-byte flags: from the call to the first byte", owner=LINKS)
    ll128_step = given(seconds, "128-byte flags: one step inside a fast domain", owner=LINKS)
    ll128_share = given(count, "128-byte flags: of a port; 0 where it is not used", owner=LINKS)
    ll128_overhead = given(
        seconds, "128-byte flags: the least that a step of a ring takes over several domains", owner=LINKS
    )
    ll128_ring_step = given(seconds, "128-byte flags: one step of a ring between domains", owner=LINKS)
    ll128_tree_step = given(seconds, "128-byte flags: one step of a tree between domains", owner=LINKS)
    ll128_nic_share = given(count, "128-byte flags: of a NIC; 0 where it is not used", owner=LINKS)
    simple_start = given(seconds, "whole chunks: from the call to the first byte", owner=LINKS)
    simple_step = given(seconds, "whole chunks: one step inside a fast domain", owner=LINKS)
    simple_share = given(count, "whole chunks: of a port; 0 where it is not used", owner=LINKS)
    simple_overhead = given(
        seconds, "whole chunks: the least that a step of a ring takes over several domains", owner=LINKS
    )
    simple_ring_step = given(seconds, "whole chunks: one step of a ring between domains", owner=LINKS)
    simple_tree_step = given(seconds, "whole chunks: one step of a tree between domains", owner=LINKS)
    simple_nic_share = given(count, "whole chunks: of a NIC; 0 where it is not used", owner=LINKS)
    own_shard = given(count, "cost of a rank's own shard over that of one sent", owner=LINKS)
    exchange_ll_start = given(seconds, "grouped sends, low latency: from the call to the first byte", owner=LINKS)
    exchange_ll_share = given(count, "grouped sends, low latency: of a port; 0 where it is not used", owner=LINKS)
    exchange_start = given(seconds, "grouped sends: from the call to the first byte", owner=LINKS)
    exchange_share = given(count, "grouped sends: of a port; 0 where they are not measured", owner=LINKS)
    exchange_nic_share = given(count, "grouped sends: of a NIC; 0 where they are not used", owner=LINKS)
    own_block = given(count, "cost of a rank's block for itself over that of one sent", owner=LINKS)
    pair_share = given(count, "of a port, one rank sending to one other", owner=LINKS)


def low_latency(by: View) -> Mapping[str, Any]:
    """What `Protocol` is bound to for LL."""
    return {
        "start": by.ll_start,
        "step": by.ll_step,
        "share": by.ll_share,
        "overhead": by.ll_overhead,
        "ring_step": by.ll_ring_step,
        "tree_step": by.ll_tree_step,
        "nic_share": by.ll_nic_share,
        "rank_rate": by.ll_rank_rate,
        "own_shard": 0,
    }


def flagged(by: View) -> Mapping[str, Any]:
    """What `Protocol` is bound to for LL128."""
    return {
        "start": by.ll128_start,
        "step": by.ll128_step,
        "share": by.ll128_share,
        "overhead": by.ll128_overhead,
        "ring_step": by.ll128_ring_step,
        "tree_step": by.ll128_tree_step,
        "nic_share": by.ll128_nic_share,
        "rank_rate": infinite,
    }


def simple(by: View) -> Mapping[str, Any]:
    """What `Protocol` is bound to for Simple."""
    return {
        "start": by.simple_start,
        "step": by.simple_step,
        "share": by.simple_share,
        "overhead": by.simple_overhead,
        "ring_step": by.simple_ring_step,
        "tree_step": by.simple_tree_step,
        "nic_share": by.simple_nic_share,
        "rank_rate": infinite,
    }


def across(tree: View, inside: View) -> Mapping[str, Any]:
    """What `AddedInSwitchesAcross` is bound to for the protocol of a tree."""
    return {
        "used": tree.used,
        "climb": tree.climb,
        "rank": tree.rank,
        "added": inside.ports,
        "rails": tree.nics,
        "spine": tree.uplinks,
    }


class ShardsByLibrary(Chapter):
    """All-gather and reduce-scatter (one pass), and the rings of an all-reduce (two)."""

    by = part(LibraryConstants, shared=True)
    passes = given(count, "1 for an all-gather or reduce-scatter, 2 for an all-reduce")

    ring_ll = part(RingByProtocol, **low_latency(by))
    ring_ll = equation(seconds, ring_ll.time, "flat ring, low latency (LL)", source=FITTED, approximate=CHOICE)
    ring_ll128 = part(RingByProtocol, **flagged(by))
    ring_ll128 = equation(seconds, ring_ll128.time, "flat ring, 128-byte flags", source=FITTED, approximate=CHOICE)
    ring_simple = part(RingByProtocol, **simple(by))
    ring_simple = equation(seconds, ring_simple.time, "flat ring, whole chunks", source=FITTED, approximate=CHOICE)


class SumsByLibrary(Chapter):
    """All-reduce."""

    rings = part(ShardsByLibrary, shared=True, passes=2)
    by = part(LibraryConstants, shared=True)

    tree_ll = part(TreeByProtocol, **low_latency(by))
    tree_ll = equation(
        seconds, tree_ll.time, "double binary trees, low latency (LL)", source=FITTED, approximate=CHOICE
    )
    tree_ll128 = part(TreeByProtocol, **flagged(by))
    tree_ll128 = equation(
        seconds, tree_ll128.time, "double binary trees, 128-byte flags", source=FITTED, approximate=CHOICE
    )
    tree_simple = part(TreeByProtocol, **simple(by))
    up_simple = tree_simple
    tree_simple = equation(
        seconds, tree_simple.time, "double binary trees, whole chunks", source=FITTED, approximate=CHOICE
    )

    nvls = part(AddedInSwitches)
    inside = nvls
    nvls = equation(
        seconds,
        nvls.time,
        "added and copied by the domain's switches",
        valid="one domain; floating-point sums; more than two ranks",
        source=FITTED,
        approximate=CHOICE,
    )
    nvls_tree = part(AddedInSwitchesAcross, **across(up_simple, inside))
    nvls_tree = equation(
        seconds,
        nvls_tree.time,
        "added by the domain's switches, double binary trees across, whole chunks",
        source=FITTED,
        approximate=CHOICE,
    )


class BlocksByLibrary(Chapter):
    """All-to-all."""

    by = part(LibraryConstants, shared=True)

    direct_ll = part(
        ExchangeByProtocol,
        start=by.exchange_ll_start,
        share=by.exchange_ll_share,
        nic_step=by.ll_ring_step,
        nic_share=by.ll_nic_share,
        rank_rate=by.ll_rank_rate,
        own_block=0,
    )
    direct_ll = equation(seconds, direct_ll.time, "grouped sends, low latency (LL)", source=FITTED, approximate=CHOICE)
    direct_simple = part(
        ExchangeByProtocol,
        start=by.exchange_start,
        share=by.exchange_share,
        nic_step=by.simple_ring_step,
        nic_share=by.exchange_nic_share,
        rank_rate=infinite,
    )
    direct_simple = equation(
        seconds, direct_simple.time, "grouped sends, whole chunks", source=FITTED, approximate=CHOICE
    )
