"""Fast domains joined by slower links: nodes with NICs, fat trees, slices over a data-centre network."""

from costmodel.equations.collectives.backwards import ThereAndBack
from costmodel.equations.collectives.fabric import SliceShare
from costmodel.equations.collectives.ring import Ring
from costmodel.equations.collectives.sources import BOOK_GPUS, LOWER_BOUND
from costmodel.equations.collectives.sources import LINK_BY_LINK as COUNTED
from costmodel.equations.collectives.switch_levels import DirectByLevels, RailsByLevels, RelayedByLevels, RingByLevels
from costmodel.symbolic import (
    Chapter,
    bytes_,
    bytes_per_second,
    count,
    equation,
    given,
    infinite,
    largest,
    part,
    seconds,
    select,
    smallest,
)

GORDIC = "Gordic 2026, Inside TPU and GPU Clusters: The Anatomy of Collective Communication"


class Hierarchical(Chapter):
    """M nodes of G ranks, each rank with a NIC: rings inside the nodes and along the rails, one after the other.

    Exact for every G and M when the phases run in sequence. Along a rail each rank carries its own S/G only.
    """

    G = given(count, "ranks in a node")
    M = given(count, "nodes")
    S = given(bytes_, "the whole gathered or reduced array")
    alpha_in = given(seconds, "latency of one step inside a node")
    W_in = given(bytes_per_second, "one port inside a node, one way")
    alpha_out = given(seconds, "latency of one step between nodes")
    W_out = given(bytes_per_second, "one rank's NIC, one way")

    n = equation(count, G * M, "ranks in the group")
    at = part(
        RailsByLevels,
        m=G,
        u=n,
        launch_latency=0,
        domain_latency=alpha_in,
        nic_latency=alpha_out,
        unit_latency=alpha_out,
        port=W_in,
        nic=W_out,
        uplink=W_out,
    )

    all_gather_latency = equation(seconds, at.latency, "both levels", source=COUNTED)
    all_gather_bandwidth = equation(seconds, at.ports + at.nics, "both levels in turn", source=COUNTED)
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "along the rails, then inside", source=COUNTED
    )

    back = part(ThereAndBack, shared=True)


class HierarchicalPipelined(Chapter):
    """`Hierarchical` with both levels busy all the time, as when chunks follow each other without end: the slower decides."""

    in_turn = part(Hierarchical)
    all_gather_latency = equation(seconds, in_turn.all_gather_latency, "both levels")
    all_gather_bandwidth = equation(
        seconds,
        largest(in_turn.at_ports, in_turn.at_nics),
        "the slower level",
        approximate=LOWER_BOUND,
    )
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "both levels at once", approximate=LOWER_BOUND
    )

    reduce_scatter_latency = equation(seconds, all_gather_latency, "both levels")
    reduce_scatter_bandwidth = equation(seconds, all_gather_bandwidth, "the slower level", approximate=LOWER_BOUND)
    reduce_scatter = equation(
        seconds, reduce_scatter_latency + reduce_scatter_bandwidth, "both levels at once", approximate=LOWER_BOUND
    )

    all_reduce_latency = equation(seconds, 2 * all_gather_latency, "both levels, there and back")
    all_reduce_bandwidth = equation(seconds, 2 * all_gather_bandwidth, "the slower level", approximate=LOWER_BOUND)
    all_reduce = equation(
        seconds, all_reduce_latency + all_reduce_bandwidth, "both levels at once", approximate=LOWER_BOUND
    )


class MultiChannelRing(Chapter):
    """Flat rings through all ranks, node after node, G of them; ring c leaves every node on NIC c (NCCL's Ring).

    Port and NIC work at once. The NIC carries (n - 1)/(n - G) times what `Hierarchical` does: 1.9 at two nodes of eight.
    """

    G = given(count, "ranks in a node")
    M = given(count, "nodes")
    S = given(bytes_, "the whole gathered or reduced array")
    alpha_in = given(seconds, "latency of one step inside a node")
    W_in = given(bytes_per_second, "one port inside a node, one way")
    alpha_out = given(seconds, "latency of one step between nodes")
    W_out = given(bytes_per_second, "one rank's NIC, one way")

    n = equation(count, G * M, "ranks in the group")
    at = part(
        RingByLevels,
        m=G,
        u=n,
        launch_latency=0,
        domain_latency=alpha_in,
        nic_latency=alpha_out,
        unit_latency=alpha_out,
        port=W_in,
        nic=W_out,
        uplink=W_out,
    )

    all_gather_latency = equation(seconds, at.latency, "n - 1 steps")
    all_gather_bandwidth = equation(seconds, largest(at.ports, at.nics), "port and NIC at once", source=COUNTED)
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "once round, less one step", source=COUNTED
    )

    back = part(ThereAndBack, shared=True)


class FatTree(Chapter):
    """Three levels of switches, all busy at once: a block of level i joins D_i blocks, each with W_i towards the others.

    Level 1 joins ranks to nodes, level 2 nodes to units, level 3 units; a level that is not there has D = 1.
    """

    S = given(bytes_, "the whole gathered or reduced array")
    alpha = given(seconds, "latency of one step")
    D_1 = given(count, "ranks in a node")
    D_2 = given(count, "nodes in a unit")
    D_3 = given(count, "units")
    W_1 = given(bytes_per_second, "one rank into its node, one way")
    W_2 = given(bytes_per_second, "one node into its unit, one way")
    W_3 = given(bytes_per_second, "one unit into the spine, one way")

    all_gather_latency = equation(
        seconds, (D_1 + D_2 + D_3 - 3) * alpha, "a ring on each level", approximate="the book leaves latency out"
    )
    all_gather_bandwidth = equation(
        seconds,
        S * largest((D_1 - 1) / (D_1 * W_1), (D_2 - 1) / (D_2 * W_2), (D_3 - 1) / (D_3 * W_3)),
        "what a block of the slowest level receives",
        source=BOOK_GPUS,
        approximate=LOWER_BOUND,
    )
    all_gather = equation(
        seconds,
        all_gather_latency + all_gather_bandwidth,
        "the slowest level decides",
        source=BOOK_GPUS,
        approximate=LOWER_BOUND,
    )

    gather_rate = equation(
        bytes_per_second,
        select(
            D_1 * D_2 * D_3 > 1,
            1 / largest((D_1 - 1) / (D_1 * W_1), (D_2 - 1) / (D_2 * W_2), (D_3 - 1) / (D_3 * W_3)),
            infinite,
        ),
        "payload over time of a long all-gather",
        source=BOOK_GPUS,
        approximate=LOWER_BOUND,
    )

    reduce_scatter_latency = equation(seconds, all_gather_latency, "the all-gather run backwards")
    reduce_scatter_bandwidth = equation(
        seconds, all_gather_bandwidth, "the all-gather run backwards", source=BOOK_GPUS, approximate=LOWER_BOUND
    )
    reduce_scatter = equation(
        seconds,
        reduce_scatter_latency + reduce_scatter_bandwidth,
        "the slowest level decides",
        source=BOOK_GPUS,
        approximate=LOWER_BOUND,
    )

    all_reduce_latency = equation(seconds, 2 * all_gather_latency, "there and back")
    all_reduce_bandwidth = equation(
        seconds, 2 * all_gather_bandwidth, "there and back", source=BOOK_GPUS, approximate=LOWER_BOUND
    )
    all_reduce = equation(
        seconds,
        all_reduce_latency + all_reduce_bandwidth,
        "the slowest level decides",
        source=BOOK_GPUS,
        approximate=LOWER_BOUND,
    )


class SwitchLevel(Chapter):
    """What one level of switches can carry, from the switches' side and from that of the blocks on it."""

    switches = given(count, "switches of the level")
    ports = given(count, "ports of a switch towards the blocks")
    port_bandwidth = given(bytes_per_second, "one port, one way")
    blocks = given(count, "blocks (ranks, nodes, units) on the level")
    block_bandwidth = given(bytes_per_second, "one block, one way")
    apart = given(count, "blocks on the smaller side of a cut")

    switch_side = equation(
        bytes_per_second, switches * ports * port_bandwidth, "what the switches can carry", source=BOOK_GPUS
    )
    block_side = equation(bytes_per_second, blocks * block_bandwidth, "what the blocks can send", source=BOOK_GPUS)
    capacity = equation(
        bytes_per_second, smallest(switch_side, block_side), "what the level can carry", source=BOOK_GPUS
    )
    per_block = equation(bytes_per_second, switch_side / blocks, "a block's share of the switches", source=BOOK_GPUS)
    cut = equation(bytes_per_second, apart * block_bandwidth, "across a cut, one way", source=GORDIC)
    cut_both_ways = equation(bytes_per_second, 2 * cut, "across a cut, both ways", source=GORDIC)
    gather_rate = equation(
        bytes_per_second,
        select(blocks > 1, block_bandwidth * blocks / (blocks - 1), infinite),
        "payload over time of a long all-gather that this level binds",
        source=BOOK_GPUS,
    )


class NodesExchange(Chapter):
    """All-to-all over M nodes of G ranks, each rank with a NIC; a leaf switch joins k NICs and is oversubscribed o to 1.

    Ports, NICs and uplinks work at once. With one leaf for all (k = n), or o = 1, the uplinks never decide.
    """

    G = given(count, "ranks in a node")
    M = given(count, "nodes")
    k = given(count, "NICs on a leaf switch")
    o = given(count, "bandwidth into a leaf over bandwidth out of it")
    S = given(bytes_, "one rank's send buffer, the block for itself included")
    alpha_out = given(seconds, "latency of one step between nodes")
    W_in = given(bytes_per_second, "one port inside a node, one way")
    W_out = given(bytes_per_second, "one rank's NIC, one way")

    n = equation(count, G * M, "ranks in the group")
    at = part(
        DirectByLevels,
        m=G,
        u=smallest(k, n),
        launch_latency=0,
        slowest_latency=select(n > 1, alpha_out, 0),
        port=W_in,
        nic=W_out,
        uplink=W_out / o,
    )

    all_to_all_latency = equation(seconds, at.latency, "all sends posted at once", valid="two nodes or more")
    all_to_all_bandwidth = equation(
        seconds,
        largest(at.ports, at.nics, at.uplinks),
        "blocks inside the node, out of the node, out of the leaf",
        source=COUNTED,
    )
    all_to_all = equation(
        seconds, all_to_all_latency + all_to_all_bandwidth, "every block straight to its rank", source=COUNTED
    )


class RailExchange(Chapter):
    """All-to-all over M nodes with rails: blocks go over the fast domain to the rank on the right rail, then out (PXN).

    No traffic reaches the spine while every rail's leaf holds all nodes.
    """

    G = given(count, "ranks in a node")
    M = given(count, "nodes")
    S = given(bytes_, "one rank's send buffer, the block for itself included")
    alpha_in = given(seconds, "latency of one step inside a node")
    alpha_out = given(seconds, "latency of one step between nodes")
    W_in = given(bytes_per_second, "one port inside a node, one way")
    W_out = given(bytes_per_second, "one rank's NIC, one way")

    n = equation(count, G * M, "ranks in the group")
    at = part(
        RelayedByLevels,
        m=G,
        u=n,
        launch_latency=0,
        domain_latency=alpha_in,
        slowest_latency=select(M > 1, alpha_out, select(G > 1, alpha_in, 0)),
        port=W_in,
        nic=W_out,
        uplink=W_out,
    )

    all_to_all_latency = equation(seconds, at.latency, "to the rail, then along it")
    all_to_all_bandwidth = equation(
        seconds,
        largest(at.ports, at.nics),
        "all blocks for other rails inside, all blocks for other nodes out",
        source=COUNTED,
    )
    all_to_all = equation(
        seconds,
        all_to_all_latency + all_to_all_bandwidth,
        "inside to the rail, then along it",
        source="NVIDIA 2022, Doubling all2all performance with NCCL 2.12",
    )


class MultiSlice(Chapter):
    """P slices of C chips: reduce-scatter inside, each chip's own S/C between the slices, all-gather inside.

    The time inside a slice comes in from the form of its torus. A host's network card is shared by its chips, and what a
    chip sends passes the host's link first.
    """

    P = given(count, "slices")
    C = given(count, "chips of the group in a slice")
    S = given(bytes_, "the whole gathered or reduced array")
    inside_latency = given(seconds, "latency of the all-gather inside a slice")
    inside_bandwidth = given(seconds, "bandwidth term of the all-gather inside a slice")
    alpha = given(seconds, "latency of one step between slices")
    host_bandwidth = given(bytes_per_second, "one host's network cards, one way")
    chips_per_host = given(count, "chips of a host")
    host_link = given(bytes_per_second, "one chip's link to its host, one way")

    share = part(SliceShare, links_per_host=1, link_bandwidth=host_bandwidth, host_link_bandwidth=host_link)
    across = part(Ring, n=P, S=S / C, W=share.out_of_slice)

    all_gather_latency = equation(seconds, inside_latency + across.all_gather_latency, "both levels")
    all_gather_bandwidth = equation(
        seconds, inside_bandwidth + across.all_gather_bandwidth, "both levels in turn", source=COUNTED
    )
    all_gather = equation(
        seconds, all_gather_latency + all_gather_bandwidth, "between the slices, then inside", source=COUNTED
    )

    back = part(ThereAndBack, shared=True)
