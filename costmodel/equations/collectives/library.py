"""What a library adds to an algorithm: NCCL's protocols, each with its start-up, its time of a step and its share of a link.

A library sends by one of several protocols. The low-latency one (LL) flags every word: it starts soonest and wastes most of the
bandwidth; LL128 flags every 128 bytes; Simple waits for whole chunks and fills the link. All three run the same steps over
the same links as the textbook form, so that each is that form with other constants, and the fastest is taken: what a library's own
choice comes to where it chooses well. Constants are fitted to measured collectives, link class by link class, and hold for
whole curves: a start-up is what a small message takes, not what one line of code does.
"""

from costmodel.equations.collectives.in_network import Nvls
from costmodel.equations.collectives.sources import NCCL
from costmodel.equations.collectives.switch_levels import DirectByLevels, RingByLevels
from costmodel.equations.collectives.tree import DoubleBinaryTree
from costmodel.symbolic import (
    Chapter,
    both,
    bytes_,
    bytes_per_second,
    count,
    either,
    equation,
    floor_log2,
    given,
    infinite,
    largest,
    part,
    seconds,
    select,
)

FITTED = "the form of NCCL 2.30, src/graph/tuning.cc; constants fitted to measured collectives"
CHOICE = "a library that chooses worse than the fastest takes longer, and no rank is taken to come late"


class LibraryLevels(Chapter):
    """What a library sees of the group and its machine."""

    n = given(count, "ranks in the group")
    m = given(count, "ranks of the group in one fast domain")
    u = given(count, "ranks of the group in one unit")
    S = given(bytes_, "the whole gathered or reduced array; of an all-to-all, one rank's send buffer")
    wire_port = given(bytes_per_second, "a rank's links into its fast domain, all together, one way")
    nic_per_chip = given(bytes_per_second, "a rank's fair share of its host's NICs, one way")
    unit_oversubscription = given(
        count, "bandwidth into a unit's switches over bandwidth out of the unit", owner="cluster"
    )
    unit_beyond = given(seconds, "what further switches add to a step between units")
    added_latency = given(seconds, "what tunnels and virtual switches add to a step between domains", owner="link")
    dispatch_latency = given(seconds, "what the host adds that starts each collective by itself", owner="assumption")

    farther = equation(seconds, select(n > u, unit_beyond, 0), "what further switches add to the longest step")


class Protocol(Chapter):
    """One protocol on the links of a domain and of the network."""

    at = part(LibraryLevels, shared=True)
    n, m = at.n, at.m
    start = given(seconds, "from the call to the first byte")
    step = given(seconds, "one step inside a fast domain")
    share = given(count, "of a port; 0 where the protocol is not used")
    overhead = given(seconds, "the least that a step of a ring takes in a group of several domains")
    ring_step = given(seconds, "one step of a ring between domains")
    tree_step = given(seconds, "one step of a tree between domains")
    nic_share = given(count, "of a NIC; 0 where the protocol is not used")
    rank_rate = given(bytes_per_second, "what one rank sends at most in a group of several domains")
    own_shard = given(count, "cost of a rank's own shard, which passes through its kernel, over that of one sent")

    used = equation(
        count,
        select(both(share > 0, either(n <= m, nic_share > 0)), 1, 0),
        "1 where the library uses the protocol on all links that the group spans",
    )
    begin = equation(seconds, start + at.dispatch_latency, "start-up, and what the host adds")
    around = equation(seconds, ring_step + at.added_latency, "one step of a ring between domains")
    upward = equation(seconds, tree_step + at.added_latency + at.farther, "the longest step of a tree between domains")
    port = equation(
        bytes_per_second, at.wire_port * select(share > 0, share, 1), "what a rank attains into its fast domain"
    )
    nic = equation(
        bytes_per_second, at.nic_per_chip * select(nic_share > 0, nic_share, 1), "what its share of the NICs attains"
    )
    uplink = equation(bytes_per_second, nic / at.unit_oversubscription, "what its share of the unit's uplinks attains")


class RingByProtocol(Chapter):
    """All-gather or reduce-scatter (one pass) or all-reduce (two) by a flat ring in rank order, m channels."""

    by = part(Protocol, shared=True)
    n, m, S = by.n, by.m, by.S
    passes = given(count, "1 for an all-gather or reduce-scatter, 2 for an all-reduce")

    once = part(
        RingByLevels,
        launch_latency=0,
        domain_latency=select(n > m, largest(by.step, by.overhead), by.step),
        nic_latency=by.around,
        unit_latency=by.around + by.farther,
        port=by.port,
        nic=by.nic,
        uplink=by.uplink,
    )
    latency = equation(seconds, by.begin + passes * once.latency, "start-up, n - 1 steps a pass", source=NCCL)
    rank = equation(
        seconds, select(n > m, passes * (n - 1) * S / (n * by.rank_rate), 0), "at the most that a rank sends"
    )
    ports = equation(
        seconds,
        largest(passes * once.ports + select(n > m, 0, by.own_shard * S / (n * by.port)), rank),
        "n - 1 shards a pass, and in one domain, where nothing hides it, the own one through the kernel",
    )
    nics = equation(seconds, passes * once.nics, "a channel for each NIC")
    uplinks = equation(seconds, passes * once.uplinks, "one way out of a unit")
    time = equation(
        seconds,
        select(by.used > 0, latency + largest(ports, nics, uplinks), infinite),
        "start-up, steps, and the fullest link",
        source=FITTED,
        approximate=CHOICE,
    )


class TreeByProtocol(Chapter):
    """All-reduce along a chain inside each domain and by double binary trees across them."""

    by = part(Protocol, shared=True)
    n, m, u, S = by.n, by.m, by.u, by.S

    across = part(DoubleBinaryTree, n=n / m, S=S / m, alpha=by.upward, W=by.nic)
    climb = equation(
        seconds, by.begin + 2 * floor_log2(n / m) * by.upward, "start-up, up the tree and back", source=NCCL
    )
    latency = equation(seconds, climb + 2 * (m - 1) * by.step, "and along the chain, there and back", source=NCCL)
    rank = equation(seconds, select(n > m, 2 * S / by.rank_rate, 0), "at the most that a rank sends")
    ports = equation(
        seconds,
        largest(select(m > 2, 2, m - 1) * S / by.port, rank),
        "a rank within the chain passes on sums and results",
    )
    nics = equation(seconds, across.all_reduce_bandwidth, "S/m on each rail, up and down both trees")
    uplinks = equation(
        seconds, select(n > u, 2 * S / (u * by.uplink), 0), "a unit hangs on the rest by two edges a tree"
    )
    time = equation(
        seconds,
        select(both(by.used > 0, n > m), latency + largest(ports, nics, uplinks), infinite),
        "start-up, steps, and the fullest link",
        source=FITTED,
        approximate=CHOICE,
    )


class AddedInSwitches(Chapter):
    """All-reduce that the switches of a domain add and copy (NVLS): a long start-up, then fewer bytes."""

    at = part(LibraryLevels, shared=True)
    n, m, S = at.n, at.m, at.S
    in_network_start = given(seconds, "from the call to the first byte, added in the switches", owner="link")
    in_network_share = given(count, "of a port when the switches add; 0 where they cannot", owner="link")

    inside = part(
        Nvls, n=m, alpha=at.dispatch_latency, W=at.wire_port * select(in_network_share > 0, in_network_share, 1)
    )
    latency = equation(seconds, in_network_start + at.dispatch_latency, "start-up, both phases included")
    ports = equation(seconds, inside.all_reduce_bandwidth, "S to be added, S/m of results")
    time = equation(
        seconds,
        select(both(in_network_share > 0, both(n <= m, n > 2)), latency + ports, infinite),
        "start-up, and the bytes through a port",
        source=FITTED,
        approximate=CHOICE,
    )


class AddedInSwitchesAcross(Chapter):
    """Added by the switches inside each domain, double binary trees across them (NVLSTree)."""

    n = given(count, "ranks in the group")
    m = given(count, "ranks of the group in one fast domain")
    in_network_share = given(count, "of a port when the switches add; 0 where they cannot", owner="link")
    used = given(count, "1 where the library uses the protocol")
    climb = given(seconds, "start-up, up the tree and back")
    rank = given(seconds, "at the most that a rank sends")
    added = given(seconds, "of a port that the switches add to")
    rails = given(seconds, "up and down both trees")
    spine = given(seconds, "of a unit's uplinks")

    latency = equation(seconds, climb, "start-up, up the tree and back")
    ports = equation(seconds, largest(added, rank), "S to be added, S/m of results")
    nics = equation(seconds, rails, "S/m on each rail, up and down both trees")
    uplinks = equation(seconds, spine, "a unit hangs on the rest by two edges a tree")
    time = equation(
        seconds,
        select(both(used > 0, both(in_network_share > 0, n > m)), latency + largest(ports, nics, uplinks), infinite),
        "start-up, steps, and the fullest link",
        source=FITTED,
        approximate=CHOICE,
    )


class ExchangeByProtocol(Chapter):
    """All-to-all as sends and receives of one group, all posted at once."""

    at = part(LibraryLevels, shared=True)
    n, m, S = at.n, at.m, at.S
    start = given(seconds, "from the call to the first byte")
    share = given(count, "of a port; 0 where the protocol is not used")
    nic_step = given(seconds, "one step between domains")
    nic_share = given(count, "of a NIC; 0 where the protocol is not used")
    rank_rate = given(bytes_per_second, "what one rank sends at most in a group of several domains")
    own_block = given(count, "cost of a rank's block for itself over that of one sent")

    port = equation(bytes_per_second, at.wire_port * select(share > 0, share, 1), "what a rank attains into its domain")
    nic = equation(
        bytes_per_second, at.nic_per_chip * select(nic_share > 0, nic_share, 1), "what its share of the NICs attains"
    )
    uplink = equation(bytes_per_second, nic / at.unit_oversubscription, "what its share of the unit's uplinks attains")
    slowest_latency = equation(
        seconds,
        select(n > m, nic_step + at.added_latency + at.farther, 0),
        "one step between domains, if there are several",
    )
    begin = equation(seconds, start + at.dispatch_latency, "start-up, and what the host adds")
    blocks = part(DirectByLevels, launch_latency=begin)
    latency = equation(seconds, blocks.latency, "start-up, and a step between domains")
    rank = equation(seconds, select(n > m, (n - 1) * S / (n * rank_rate), 0), "at the most that a rank sends")
    ports = equation(
        seconds,
        largest(blocks.ports + select(n > m, 0, own_block * S / (n * port)), rank),
        "blocks for ranks of the domain",
    )
    nics = equation(seconds, blocks.nics, "blocks for ranks outside")
    uplinks = equation(seconds, blocks.uplinks, "blocks for ranks of other units")
    used = equation(
        count, select(both(share > 0, either(n <= m, nic_share > 0)), 1, 0), "1 where the library uses the protocol"
    )
    time = equation(
        seconds,
        select(used > 0, latency + largest(ports, nics, uplinks), infinite),
        "start-up, and the fullest link",
        source=FITTED,
        approximate=CHOICE,
    )
