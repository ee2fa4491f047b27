"""How one algorithm runs on the levels of a switched machine: what `group_on_switches` is put together from.

Each gives a latency and seconds on each resource: the rank's port into its fast domain, its share of the NICs, and its share
of the unit's uplinks. All groups of the same axis are taken to run at once, which is what makes the fair share of the NICs
the bandwidth that a rank has.
"""

from costmodel.equations.collectives.all_to_all import BruckExchange
from costmodel.equations.collectives.ring import Ring
from costmodel.equations.collectives.sources import BRUCK, LOWER_BOUND, THAKUR
from costmodel.equations.collectives.switch import Bruck, Direct
from costmodel.symbolic import (
    Chapter,
    both,
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
)

COUNTED = "counted on lists of ranks, all groups of an axis at once"
NCCL_RING = "NCCL 2.30, src/graph/search.cc: rings on channels; counted on lists of ranks"
SLOWER = "every step and byte is charged at the slowest level that the group spans"


class SwitchLevels(Chapter):
    """What an algorithm sees of the group and its machine."""

    n = given(count, "ranks in the group")
    m = given(count, "ranks of the group in one fast domain")
    u = given(count, "ranks of the group in one unit")
    S = given(bytes_, "the whole gathered or reduced array; of an all-to-all, one rank's send buffer")
    launch_latency = given(seconds, "from the call of a collective to its first byte")
    domain_latency = given(seconds, "one step inside a fast domain")
    nic_latency = given(seconds, "one step between fast domains of a unit")
    unit_latency = given(seconds, "one step between units")
    port = given(bytes_per_second, "what a rank attains into its fast domain, one way")
    nic = given(bytes_per_second, "what a rank's fair share of the NICs attains, one way")
    uplink = given(bytes_per_second, "what a rank's fair share of its unit's uplinks attains, one way")
    rail_latency = given(seconds, "one step between the farthest ranks of a rail")
    slowest_latency = given(seconds, "one step at the slowest level that the group spans")
    slowest_bandwidth = given(bytes_per_second, "what a rank attains at the slowest level that the group spans")


class ShardsOnSwitches(Chapter):
    """All-gather; reduce-scatter is the same run backwards."""

    at = part(SwitchLevels, shared=True)
    n, m, u, S = at.n, at.m, at.u, at.S

    unit_steps = equation(
        count, select(n > u, select(u > 1, n / u, n - 1), 0), "steps of a ring in rank order between units"
    )
    domain_steps = equation(
        count,
        select(n > m, select(m > 1, n / m, n - 1), 0) - unit_steps,
        "steps of a ring in rank order between domains of a unit",
    )
    ring_latency = equation(
        seconds,
        at.launch_latency
        + (n - 1 - domain_steps - unit_steps) * at.domain_latency
        + domain_steps * at.nic_latency
        + unit_steps * at.unit_latency,
        "n - 1 steps, each at the latency of the level that it crosses",
    )
    ring_ports = equation(
        seconds,
        (n - 1) * S / (n * at.port) * select(n > m, (m - 1) / m, 1),
        "m channels, each leaving the domain from another rank",
        source=COUNTED,
    )
    ring_nics = equation(
        seconds, select(n > m, (n - 1) * S / (n * m * at.nic), 0), "a channel for each NIC", source=COUNTED
    )
    ring_uplinks = equation(
        seconds, select(n > u, (n - 1) * S / (n * u * at.uplink), 0), "one way out of a unit", source=COUNTED
    )
    ring = equation(
        seconds,
        ring_latency + largest(ring_ports, ring_nics, ring_uplinks),
        "one flat ring in rank order, m channels",
        source=NCCL_RING,
    )

    inside = part(Ring, n=m, alpha=at.domain_latency, W=at.port)
    rails = part(Ring, n=n / m, S=S / m, alpha=at.nic_latency, W=at.nic)
    hierarchical_latency = equation(
        seconds,
        at.launch_latency
        + inside.all_gather_latency
        + rails.all_gather_latency
        + select(n > u, n / u - select(u > m, 0, 1), 0) * (at.unit_latency - at.nic_latency),
        "m - 1 steps inside, n/m - 1 along the rail",
    )
    hierarchical_ports = equation(
        seconds, inside.all_gather_bandwidth, "the whole array inside the domain", source=COUNTED
    )
    hierarchical_nics = equation(seconds, rails.all_gather_bandwidth, "S/m along each rail", source=COUNTED)
    hierarchical_uplinks = equation(
        seconds,
        select(n > u, (1 - m / n) * S / (u * at.uplink), 0),
        "each rail's ring leaves a unit once",
        source=COUNTED,
    )
    hierarchical = equation(
        seconds,
        select(
            n > m,
            hierarchical_latency + hierarchical_ports + largest(hierarchical_nics, hierarchical_uplinks),
            infinite,
        ),
        "rings along the rails, then a ring inside the domain, one after the other",
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

    long_steps = part(Bruck, n=n / m, S=S / m, alpha=at.rail_latency, W=at.nic)
    hierarchical_log_latency = equation(
        seconds,
        at.launch_latency + inside.all_gather_latency + long_steps.all_gather_latency,
        "m - 1 steps inside, log2 n/m along the rail",
    )
    hierarchical_log_ports = equation(seconds, hierarchical_ports, "the whole array inside the domain", source=COUNTED)
    hierarchical_log_nics = equation(seconds, long_steps.all_gather_bandwidth, "S/m along each rail", source=COUNTED)
    hierarchical_log_uplinks = equation(
        seconds,
        select(n > u, (1 / u - 1 / n) * S / at.uplink, 0),
        "the long steps come first, when there is least to send",
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
        "as hierarchical, with log2 n/m steps along the rails",
        source="Jeaugey 2025, PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
        valid="NCCL has it for one rank a node",
    )

    flat = part(Bruck, alpha=at.slowest_latency, W=at.slowest_bandwidth)
    bruck_latency = equation(seconds, at.launch_latency + flat.all_gather_latency, "log2 n steps", approximate=SLOWER)
    bruck_slowest = equation(
        seconds, flat.all_gather_bandwidth, "all other shards at the slowest level", approximate=SLOWER
    )
    bruck = equation(
        seconds, bruck_latency + bruck_slowest, "the shards doubled in each step", approximate=SLOWER, source=BRUCK
    )

    at_once = part(Direct, alpha=at.domain_latency, W=at.port)
    direct_latency = equation(seconds, at.launch_latency + at_once.all_gather_latency, "one step")
    direct_ports = equation(seconds, at_once.all_gather_bandwidth, "all other shards")
    direct = equation(
        seconds,
        select(n > m, infinite, direct_latency + direct_ports),
        "everybody to everybody at once",
        valid="one domain",
        source=COUNTED,
    )


class BlocksOnSwitches(Chapter):
    """All-to-all: every rank has a block of S/n for every rank. No placement saves traffic, it only moves it."""

    at = part(SwitchLevels, shared=True)
    n, m, u, S = at.n, at.m, at.u, at.S

    direct_latency = equation(seconds, at.launch_latency + at.slowest_latency, "all sends posted at once")
    direct_ports = equation(seconds, (m - 1) * S / (n * at.port), "blocks for ranks of the domain", source=COUNTED)
    direct_nics = equation(seconds, (1 - m / n) * S / at.nic, "blocks for ranks outside", source=COUNTED)
    direct_uplinks = equation(seconds, (1 - u / n) * S / at.uplink, "blocks for ranks of other units", source=COUNTED)
    direct = equation(
        seconds,
        direct_latency + largest(direct_ports, direct_nics, direct_uplinks),
        "every block straight to its rank",
        source=COUNTED,
    )

    relayed_latency = equation(
        seconds,
        direct_latency + select(both(n > m, m > 1), at.domain_latency, 0),
        "one step more, inside the domain",
    )
    relayed_ports = equation(
        seconds, (m - 1) * S / (m * at.port), "all blocks first to the rank on the right rail", source=COUNTED
    )
    relayed_nics = equation(seconds, direct_nics, "blocks for ranks outside", source=COUNTED)
    relayed_uplinks = equation(
        seconds, direct_uplinks, "blocks for ranks of other units; none changes rail", source=COUNTED
    )
    relayed = equation(
        seconds,
        relayed_latency + largest(relayed_ports, relayed_nics, relayed_uplinks),
        "over the fast domain to the right rail, then out (PXN)",
        source="NVIDIA 2022, Doubling all2all performance with NCCL 2.12",
    )

    pairwise_latency = equation(
        seconds,
        at.launch_latency + (m - 1) * at.domain_latency + (u - m) * at.nic_latency + (n - u) * at.unit_latency,
        "n - 1 rounds, one partner each",
    )
    pairwise_ports = equation(seconds, direct_ports, "rounds inside the domain", source=COUNTED)
    pairwise_nics = equation(seconds, (u - m) * S / (n * at.nic), "rounds between domains of the unit")
    pairwise_uplinks = equation(seconds, (n - u) * S / (n * at.uplink), "rounds between units")
    pairwise = equation(
        seconds,
        pairwise_latency + pairwise_ports + pairwise_nics + pairwise_uplinks,
        "one partner after the other, in step",
        source=THAKUR,
    )

    flat = part(BruckExchange, alpha=at.slowest_latency, W=at.slowest_bandwidth)
    bruck_latency = equation(seconds, at.launch_latency + flat.all_to_all_latency, "log2 n steps", approximate=SLOWER)
    bruck_slowest = equation(
        seconds, flat.all_to_all_bandwidth, "each block once for each one in its distance", approximate=SLOWER
    )
    bruck = equation(
        seconds, bruck_latency + bruck_slowest, "blocks share messages on the way", approximate=SLOWER, source=BRUCK
    )
