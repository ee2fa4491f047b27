"""How the algorithms of all-reduce run on the levels of a switched machine."""

from costmodel.equations.collectives.in_network import Nvls, Sharp
from costmodel.equations.collectives.sources import LOWER_BOUND, NCCL, RABENSEIFNER, SHARP, SMALL_CHUNKS, THAKUR
from costmodel.equations.collectives.sources import ON_LEVELS as COUNTED
from costmodel.equations.collectives.switch import OneShot, Rabenseifner, RecursiveDoubling, TwoShot
from costmodel.equations.collectives.switch_levels import NCCL_RING, SLOWER, SwitchLevels
from costmodel.equations.collectives.switch_shards import ShardsOnSwitches
from costmodel.equations.collectives.tree import DoubleBinaryTree
from costmodel.symbolic import (
    Chapter,
    both,
    bytes_per_second,
    count,
    equation,
    given,
    infinite,
    largest,
    part,
    seconds,
    select,
)


class SumsOnSwitches(Chapter):
    """All-reduce: reduce-scatter and all-gather in a row, and algorithms of its own."""

    at = part(SwitchLevels, shared=True)
    n, m, u, S = at.n, at.m, at.u, at.S
    nvls_share = given(count, "attainable share of a port when the domain's switches add; 0 where they cannot")
    nvls_port = given(bytes_per_second, "what a port attains when the domain's switches add")

    half = part(ShardsOnSwitches)
    ring_latency = equation(seconds, 2 * half.ring_latency - at.launch_latency, "2 (n - 1) steps")
    ring_ports = equation(seconds, 2 * half.ring_ports, "reduce-scatter and all-gather")
    ring_nics = equation(seconds, 2 * half.ring_nics, "reduce-scatter and all-gather")
    ring_uplinks = equation(seconds, 2 * half.ring_uplinks, "reduce-scatter and all-gather")
    ring = equation(
        seconds,
        ring_latency + largest(ring_ports, ring_nics, ring_uplinks),
        "one flat ring in rank order, m channels",
        source=NCCL_RING,
    )

    hierarchical_latency = equation(seconds, 2 * half.hierarchical_latency - at.launch_latency, "there and back")
    hierarchical_ports = equation(
        seconds, 2 * half.hierarchical_ports, "reduce-scatter and all-gather inside the domain"
    )
    hierarchical_nics = equation(seconds, 2 * half.hierarchical_nics, "all-reduce of S/m along the rails")
    hierarchical_uplinks = equation(seconds, 2 * half.hierarchical_uplinks, "all-reduce of S/m along the rails")
    hierarchical = equation(
        seconds,
        select(
            n > m,
            hierarchical_latency + hierarchical_ports + largest(hierarchical_nics, hierarchical_uplinks),
            infinite,
        ),
        "reduce-scatter inside, rings along the rails, all-gather inside, one after the other",
        source=COUNTED,
    )
    pipelined_latency = equation(seconds, hierarchical_latency, "as hierarchical")
    pipelined_ports = equation(seconds, hierarchical_ports, "as hierarchical")
    pipelined_nics = equation(seconds, hierarchical_nics, "as hierarchical")
    pipelined_uplinks = equation(seconds, hierarchical_uplinks, "as hierarchical")
    pipelined = equation(
        seconds,
        select(n > m, pipelined_latency + largest(pipelined_ports, pipelined_nics, pipelined_uplinks), infinite),
        "as hierarchical, both levels busy all the time",
        approximate=LOWER_BOUND,
        source=COUNTED,
    )

    long_steps = part(Rabenseifner, n=n / m, S=S / m, alpha=at.rail_latency, W=at.nic)
    hierarchical_log_latency = equation(
        seconds,
        at.launch_latency + half.hierarchical_inside_all_reduce_latency + long_steps.all_reduce_latency,
        "2 (m - 1) steps inside, 2 log2 n/m along the rail",
    )
    hierarchical_log_ports = equation(seconds, hierarchical_ports, "reduce-scatter and all-gather inside the domain")
    hierarchical_log_nics = equation(seconds, long_steps.all_reduce_bandwidth, "all-reduce of S/m along each rail")
    hierarchical_log_uplinks = equation(
        seconds,
        select(n > u, 2 * (1 / u - 1 / n) * S / at.uplink, 0),
        "the long steps come when there is least to send",
    )
    hierarchical_log = equation(
        seconds,
        select(
            n > m,
            hierarchical_log_latency
            + hierarchical_log_ports
            + largest(hierarchical_log_nics, hierarchical_log_uplinks),
            infinite,
        ),
        "as hierarchical, with Rabenseifner's steps along the rails",
        source=RABENSEIFNER,
    )

    across = part(DoubleBinaryTree, n=n / m, S=S / m, alpha=at.rail_latency, W=at.nic)
    tree_latency = equation(
        seconds,
        at.launch_latency + 2 * (m - 1) * at.domain_latency + across.all_reduce_latency,
        "along a domain's chain and up the tree, and back",
        source=NCCL,
    )
    tree_ports = equation(
        seconds, select(m > 2, 2, m - 1) * S / at.port, "a rank within the chain passes on sums and results"
    )
    tree_nics = equation(seconds, across.all_reduce_bandwidth, "S/m on each rail, up and down both trees")
    tree_uplinks = equation(
        seconds, select(n > u, 2 * S / (u * at.uplink), 0), "a unit hangs on the rest by two edges a tree"
    )
    tree = equation(
        seconds,
        tree_latency + largest(tree_ports, tree_nics, tree_uplinks),
        "chains inside the domains, double binary trees across them",
        source=NCCL,
        approximate=SMALL_CHUNKS,
    )

    in_switch = part(Nvls, n=m, alpha=at.domain_latency, W=nvls_port)
    has_nvls = nvls_share > 0
    nvls_latency = equation(seconds, at.launch_latency + in_switch.all_reduce_latency, "reduce, then multicast")
    nvls_ports = equation(seconds, in_switch.all_reduce_bandwidth, "S to be added, S/n of results")
    nvls = equation(
        seconds,
        select(both(has_nvls, n <= m), nvls_latency + nvls_ports, infinite),
        "added and copied by the domain's switches",
        valid="one domain; floating-point sums",
        source=COUNTED,
    )

    nvls_tree_latency = equation(
        seconds,
        at.launch_latency + in_switch.all_reduce_latency + across.all_reduce_latency,
        "up and down the tree",
        source=NCCL,
    )
    nvls_tree_ports = equation(seconds, in_switch.all_reduce_bandwidth, "S to be added, S/m of results")
    nvls_tree_nics = equation(seconds, tree_nics, "S/m on each rail, up and down both trees")
    nvls_tree_uplinks = equation(seconds, tree_uplinks, "a unit hangs on the rest by two edges a tree")
    nvls_tree = equation(
        seconds,
        select(
            both(has_nvls, n > m),
            nvls_tree_latency + largest(nvls_tree_ports, nvls_tree_nics, nvls_tree_uplinks),
            infinite,
        ),
        "added and copied by the switches inside the domains, double binary trees across them",
        source=NCCL,
        approximate=SMALL_CHUNKS,
    )

    in_network = part(Sharp, n=n / m, S=S / m, alpha=at.rail_latency, W=at.nic)
    sharp_latency = equation(
        seconds,
        at.launch_latency + half.hierarchical_inside_all_reduce_latency + in_network.all_reduce_latency,
        "inside, once up and down, inside",
    )
    sharp_ports = equation(
        seconds, half.hierarchical_inside_all_reduce_bandwidth, "reduce-scatter and all-gather inside the domain"
    )
    sharp_nics = equation(seconds, in_network.all_reduce_bandwidth, "S/m up and down once")
    sharp = equation(
        seconds,
        select(n > m, sharp_latency + sharp_ports + sharp_nics, infinite),
        "reduce-scatter inside, sums in the network's switches, all-gather inside",
        valid="the network adds: InfiniBand with SHARP in use",
        source=SHARP,
    )

    rabenseifner_flat = part(Rabenseifner, alpha=at.slowest_latency, W=at.slowest_bandwidth)
    rabenseifner_latency = equation(seconds, at.launch_latency + rabenseifner_flat.all_reduce_latency, "2 log2 n steps")
    rabenseifner_slowest = equation(
        seconds, rabenseifner_flat.all_reduce_bandwidth, "every byte twice", approximate=SLOWER
    )
    rabenseifner = equation(
        seconds,
        rabenseifner_latency + rabenseifner_slowest,
        "halving, then doubling",
        approximate=SLOWER,
        source=RABENSEIFNER,
    )

    doubling_flat = part(RecursiveDoubling, alpha=at.slowest_latency, W=at.slowest_bandwidth)
    recursive_doubling_latency = equation(seconds, at.launch_latency + doubling_flat.all_reduce_latency, "log2 n steps")
    recursive_doubling_slowest = equation(
        seconds, doubling_flat.all_reduce_bandwidth, "whole vectors", approximate=SLOWER
    )
    recursive_doubling = equation(
        seconds,
        recursive_doubling_latency + recursive_doubling_slowest,
        "whole vectors exchanged",
        approximate=SLOWER,
        source=THAKUR,
    )

    one = part(OneShot, alpha=at.domain_latency, W=at.port)
    one_shot_latency = equation(seconds, at.launch_latency + one.all_reduce_latency, "one step")
    one_shot_ports = equation(seconds, one.all_reduce_bandwidth, "all other vectors")
    one_shot = equation(
        seconds,
        select(n > m, infinite, one_shot_latency + one_shot_ports),
        "every rank reads all vectors",
        valid="one domain",
        source=COUNTED,
    )

    two = part(TwoShot, alpha=at.domain_latency, W=at.port)
    two_shot_latency = equation(seconds, at.launch_latency + two.all_reduce_latency, "two steps")
    two_shot_ports = equation(seconds, two.all_reduce_bandwidth, "every byte twice, less the own share")
    two_shot = equation(
        seconds,
        select(n > m, infinite, two_shot_latency + two_shot_ports),
        "direct reduce-scatter and all-gather",
        valid="one domain",
        source=COUNTED,
    )
