"""How the algorithms of all-gather and reduce-scatter run on the levels of a switched machine."""

from costmodel.equations.collectives.sources import BRUCK, LOWER_BOUND
from costmodel.equations.collectives.sources import ON_LEVELS as COUNTED
from costmodel.equations.collectives.switch import Bruck, Direct
from costmodel.equations.collectives.switch_levels import NCCL_RING, SLOWER, RailsByLevels, RingByLevels, SwitchLevels
from costmodel.symbolic import Chapter, equation, infinite, largest, part, seconds, select


class ShardsOnSwitches(Chapter):
    """All-gather; reduce-scatter is the same run backwards."""

    at = part(SwitchLevels, shared=True)
    n, m, u, S = at.n, at.m, at.u, at.S

    ring = part(RingByLevels)
    ring = equation(
        seconds,
        ring.latency + largest(ring.ports, ring.nics, ring.uplinks),
        "one flat ring in rank order, m channels",
        source=NCCL_RING,
    )

    hierarchical = part(RailsByLevels)
    rails, inside_latency = hierarchical, hierarchical.inside_all_gather_latency
    hierarchical = equation(
        seconds,
        select(
            n > m,
            hierarchical.latency + hierarchical.ports + largest(hierarchical.nics, hierarchical.uplinks),
            infinite,
        ),
        "rings along the rails, then a ring inside the domain, one after the other",
        source=COUNTED,
    )
    pipelined_latency = equation(seconds, rails.latency, "as hierarchical")
    pipelined_ports = equation(seconds, rails.ports, "as hierarchical")
    pipelined_nics = equation(seconds, rails.nics, "as hierarchical")
    pipelined_uplinks = equation(seconds, rails.uplinks, "as hierarchical")
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
        at.launch_latency + inside_latency + long_steps.all_gather_latency,
        "m - 1 steps inside, log2 n/m along the rail",
    )
    hierarchical_log_ports = equation(seconds, rails.ports, "the whole array inside the domain", source=COUNTED)
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
