"""Messages, operations with a root, tokens and the barrier as a library runs them on a switched machine.

None of these is measured by itself: the constants are those of the ring, or of grouped sends.
"""

from costmodel.equations.collectives.library import LibraryLevels, RingByProtocol, TreeByProtocol
from costmodel.equations.collectives.library_on_switches import LibraryConstants, flagged, low_latency, simple
from costmodel.equations.collectives.switch_messages import TokensOnSwitches
from costmodel.symbolic import (
    BYTE,
    Chapter,
    both,
    bytes_per_second,
    count,
    either,
    equation,
    given,
    infinite,
    largest,
    part,
    seconds,
    select,
    smallest,
)

LIKE_RING = "not measured by itself: the constants are those of the ring"
LIKE_EXCHANGE = "not measured by itself: the constants are those of an all-to-all"


class SendByLibrary(Chapter):
    """Every rank sends to the next of its group at once, as pipeline stages do: the slowest of the links decides."""

    at = part(LibraryLevels, shared=True)
    by = part(LibraryConstants, shared=True)
    n, m, u, S = at.n, at.m, at.u, at.S
    link = given(bytes_per_second, "one link of a rank to another of its domain, one way")

    ll_nic = equation(
        bytes_per_second,
        smallest(by.ll_rank_rate, at.nic_per_chip * select(by.ll_nic_share > 0, by.ll_nic_share, 1)),
        "what its share of the NICs attains, low latency",
    )
    nic = equation(
        bytes_per_second,
        at.nic_per_chip * select(by.simple_nic_share > 0, by.simple_nic_share, 1),
        "what its share of the NICs attains",
    )
    direct_ll_latency = equation(
        seconds,
        by.exchange_ll_start + at.dispatch_latency + select(n > m, by.ll_ring_step + at.added_latency + at.farther, 0),
        "start-up, and a step between domains",
    )
    direct_ll_ports = equation(
        seconds,
        select(n > m, 0, S / (link * select(by.exchange_ll_share > 0, by.exchange_ll_share, 1))),
        "to a rank of the same domain",
    )
    direct_ll_nics = equation(seconds, select(n > m, S / ll_nic, 0), "to a rank of another domain")
    direct_ll_uplinks = equation(
        seconds, select(n > u, S * at.unit_oversubscription / (u * ll_nic), 0), "to another unit, one of each u"
    )
    direct_ll = equation(
        seconds,
        select(
            both(by.exchange_ll_share > 0, either(n <= m, by.ll_nic_share > 0)),
            direct_ll_latency + largest(direct_ll_ports, direct_ll_nics, direct_ll_uplinks),
            infinite,
        ),
        "one message a rank, low latency (LL)",
        approximate=LIKE_EXCHANGE,
    )
    direct_simple_latency = equation(
        seconds,
        by.exchange_start + at.dispatch_latency + select(n > m, by.simple_ring_step + at.added_latency + at.farther, 0),
        "start-up, and a step between domains",
    )
    direct_simple_ports = equation(
        seconds, select(n > m, 0, S / (link * by.pair_share)), "to a rank of the same domain"
    )
    direct_simple_nics = equation(seconds, select(n > m, S / nic, 0), "to a rank of another domain")
    direct_simple_uplinks = equation(
        seconds, select(n > u, S * at.unit_oversubscription / (u * nic), 0), "to another unit, one of each u"
    )
    direct_simple = equation(
        seconds,
        select(
            both(by.exchange_share > 0, either(n <= m, by.simple_nic_share > 0)),
            direct_simple_latency + largest(direct_simple_ports, direct_simple_nics, direct_simple_uplinks),
            infinite,
        ),
        "one message a rank, whole chunks",
        approximate=LIKE_EXCHANGE,
    )


class DownTheRing(Chapter):
    """A message streamed down a chain of all ranks by one protocol; a sum comes the other way."""

    ring = part(RingByProtocol, passes=1)
    n, m, u, S = ring.n, ring.m, ring.u, ring.S

    latency = equation(seconds, ring.latency, "down the chain of all ranks")
    ports = equation(
        seconds,
        largest(S / ring.port, select(n > m, S / ring.rank_rate, 0)),
        "the whole message, in m channels",
    )
    nics = equation(seconds, select(n > m, S / (m * ring.nic), 0), "a channel for each NIC")
    uplinks = equation(seconds, select(n > u, S / (u * ring.uplink), 0), "one way into a unit")
    time = equation(
        seconds,
        select(ring.used > 0, latency + largest(ports, nics, uplinks), infinite),
        "start-up, steps, and the fullest link",
        approximate=LIKE_RING,
    )


class MessageByLibrary(Chapter):
    """Broadcast; reduce is the same run backwards."""

    by = part(LibraryConstants, shared=True)

    ring_ll = part(DownTheRing, **low_latency(by))
    ring_ll = equation(seconds, ring_ll.time, "down a flat ring, low latency (LL)", approximate=LIKE_RING)
    ring_ll128 = part(DownTheRing, **flagged(by))
    ring_ll128 = equation(seconds, ring_ll128.time, "down a flat ring, 128-byte flags", approximate=LIKE_RING)
    ring_simple = part(DownTheRing, **simple(by))
    ring_simple = equation(seconds, ring_simple.time, "down a flat ring, whole chunks", approximate=LIKE_RING)


class RootByLibrary(Chapter):
    """Gather; scatter is the same run backwards. Grouped sends of which one rank has all."""

    at = part(LibraryLevels, shared=True)
    by = part(LibraryConstants, shared=True)
    n, m, S = at.n, at.m, at.S

    direct_simple_latency = equation(
        seconds,
        by.exchange_start + at.dispatch_latency + select(n > m, by.simple_ring_step + at.added_latency + at.farther, 0),
        "start-up, and a step between domains",
    )
    direct_simple_ports = equation(
        seconds,
        (m - 1) * S / (n * at.wire_port * select(by.exchange_share > 0, by.exchange_share, 1)),
        "shards of the root's domain",
    )
    direct_simple_nics = equation(
        seconds,
        (n - m) * S / (n * at.nic_per_chip * select(by.exchange_nic_share > 0, by.exchange_nic_share, 1)),
        "other shards, over the root's share of the NICs",
    )
    direct_simple = equation(
        seconds,
        select(
            both(by.exchange_share > 0, either(n <= m, by.exchange_nic_share > 0)),
            direct_simple_latency + largest(direct_simple_ports, direct_simple_nics),
            infinite,
        ),
        "grouped sends to or from the root, whole chunks",
        approximate=LIKE_EXCHANGE,
    )


class TokensByLibrary(Chapter):
    """Dispatch of tokens to experts by grouped sends; combine is the same run backwards."""

    at = part(LibraryLevels, shared=True)
    by = part(LibraryConstants, shared=True)
    n, m, u = at.n, at.m, at.u

    used = equation(
        count,
        select(both(by.exchange_share > 0, either(n <= m, by.exchange_nic_share > 0)), 1, 0),
        "1 where grouped sends are measured on all links that the group spans",
    )
    start = equation(seconds, by.exchange_start + at.dispatch_latency, "start-up, and what the host adds")
    out = equation(
        bytes_per_second,
        at.nic_per_chip * select(by.exchange_nic_share > 0, by.exchange_nic_share, 1),
        "what a rank's share of the NICs attains",
    )
    sends = part(
        TokensOnSwitches,
        launch_latency=start,
        domain_latency=0,
        nic_latency=by.simple_ring_step + at.added_latency + at.farther,
        unit_latency=by.simple_ring_step + at.added_latency + at.farther,
        port=at.wire_port * select(by.exchange_share > 0, by.exchange_share, 1),
        nic=out,
        uplink=out / at.unit_oversubscription,
        rail_latency=by.simple_ring_step + at.added_latency + at.farther,
        slowest_latency=select(n > m, by.simple_ring_step + at.added_latency + at.farther, 0),
        slowest_bandwidth=out,
    )
    per_expert_latency = equation(seconds, sends.per_expert_latency, "start-up, and a step between domains")
    per_expert_ports = equation(seconds, sends.per_expert_ports, "to experts in the domain")
    per_expert_nics = equation(seconds, sends.per_expert_nics, "to experts outside")
    per_expert_uplinks = equation(seconds, sends.per_expert_uplinks, "to experts of other units")
    per_expert = equation(
        seconds,
        select(used > 0, sends.per_expert, infinite),
        "grouped sends, one copy of a token for each of its experts",
        approximate=LIKE_EXCHANGE,
    )
    per_rank_latency = equation(seconds, sends.per_rank_latency, "start-up, and a step between domains")
    per_rank_ports = equation(seconds, sends.per_rank_ports, "to ranks of the domain")
    per_rank_nics = equation(seconds, sends.per_rank_nics, "to ranks outside")
    per_rank_uplinks = equation(seconds, sends.per_rank_uplinks, "to ranks of other units")
    per_rank = equation(
        seconds,
        select(used > 0, sends.per_rank, infinite),
        "grouped sends, one copy of a token for each rank with experts of its",
        approximate=LIKE_EXCHANGE,
    )
    per_node_latency = equation(seconds, sends.per_node_latency, "start-up, and a step between domains")
    per_node_ports = equation(seconds, sends.per_node_ports, "passed on inside the domains")
    per_node_nics = equation(seconds, sends.per_node_nics, "to domains outside")
    per_node_uplinks = equation(seconds, sends.per_node_uplinks, "to domains of other units")
    per_node = equation(
        seconds,
        select(used > 0, sends.per_node, infinite),
        "grouped sends, one copy of a token for each domain, passed on there",
        approximate=LIKE_EXCHANGE,
    )


class WaitByLibrary(Chapter):
    """Barrier: an all-reduce of nothing, since a library has no barrier of its own."""

    by = part(LibraryConstants, shared=True)

    ring_ll = part(RingByProtocol, passes=2, S=0 * BYTE, **low_latency(by))
    ring_ll = equation(seconds, ring_ll.time, "by a ring, low latency (LL)", approximate=LIKE_RING)
    tree_ll = part(TreeByProtocol, S=0 * BYTE, **low_latency(by))
    tree_ll = equation(seconds, tree_ll.time, "by trees, low latency (LL)", approximate=LIKE_RING)
    ring_simple = part(RingByProtocol, passes=2, S=0 * BYTE, **simple(by))
    ring_simple = equation(seconds, ring_simple.time, "by a ring, whole chunks", approximate=LIKE_RING)
    tree_simple = part(TreeByProtocol, S=0 * BYTE, **simple(by))
    tree_simple = equation(seconds, tree_simple.time, "by trees, whole chunks", approximate=LIKE_RING)
