"""Algorithms on ranks behind three levels of switches, level by level: fast domains, units of them, and a spine.

n ranks, of which m share a domain and u a unit. Each form gives a latency, which starts with `launch_latency`, and what it
loads: the rank's port into its domain, its share of the NICs, and its share of the unit's uplinks. All groups of the same
axis are taken to run at once, which is what makes the fair share of the NICs the bandwidth that a rank has.

The textbook forms of `hierarchical` are these without a third level, a group of a machine has them as they are.
"""

from costmodel.equations.collectives.ring import Ring
from costmodel.equations.collectives.sources import ON_LEVELS as COUNTED
from costmodel.symbolic import Chapter, both, bytes_, bytes_per_second, count, equation, given, part, seconds, select

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


class RingByLevels(Chapter):
    """An all-gather by flat rings in rank order, m of them; ring c leaves every domain on NIC c."""

    n = given(count, "ranks in the group")
    m = given(count, "ranks of the group in one fast domain")
    u = given(count, "ranks of the group in one unit")
    S = given(bytes_, "the whole gathered or reduced array")
    launch_latency = given(seconds, "from the call of a collective to its first byte")
    domain_latency = given(seconds, "one step inside a fast domain")
    nic_latency = given(seconds, "one step between fast domains of a unit")
    unit_latency = given(seconds, "one step between units")
    port = given(bytes_per_second, "what a rank attains into its fast domain, one way")
    nic = given(bytes_per_second, "what a rank's fair share of the NICs attains, one way")
    uplink = given(bytes_per_second, "what a rank's fair share of its unit's uplinks attains, one way")

    unit_steps = equation(
        count, select(n > u, select(u > 1, n / u, n - 1), 0), "steps of a ring in rank order between units"
    )
    domain_steps = equation(
        count,
        select(n > m, select(m > 1, n / m, n - 1), 0) - unit_steps,
        "steps of a ring in rank order between domains of a unit",
    )
    latency = equation(
        seconds,
        launch_latency
        + (n - 1 - domain_steps - unit_steps) * domain_latency
        + domain_steps * nic_latency
        + unit_steps * unit_latency,
        "n - 1 steps, each at the latency of the level that it crosses",
    )
    ports = equation(
        seconds,
        (n - 1) * S / (n * port) * select(n > m, (m - 1) / m, 1),
        "m channels, each leaving the domain from another rank",
        source=COUNTED,
    )
    nics = equation(seconds, select(n > m, (n - 1) * S / (n * m * nic), 0), "a channel for each NIC", source=COUNTED)
    uplinks = equation(
        seconds, select(n > u, (n - 1) * S / (n * u * uplink), 0), "one way out of a unit", source=COUNTED
    )


class RailsByLevels(Chapter):
    """An all-gather by rings along the rails, on each the S/m of its rank of a domain, and rings inside the domains."""

    n = given(count, "ranks in the group")
    m = given(count, "ranks of the group in one fast domain")
    u = given(count, "ranks of the group in one unit")
    S = given(bytes_, "the whole gathered or reduced array")
    launch_latency = given(seconds, "from the call of a collective to its first byte")
    domain_latency = given(seconds, "one step inside a fast domain")
    nic_latency = given(seconds, "one step between fast domains of a unit")
    unit_latency = given(seconds, "one step between units")
    port = given(bytes_per_second, "what a rank attains into its fast domain, one way")
    nic = given(bytes_per_second, "what a rank's fair share of the NICs attains, one way")
    uplink = given(bytes_per_second, "what a rank's fair share of its unit's uplinks attains, one way")

    inside = part(Ring, n=m, alpha=domain_latency, W=port)
    rails = part(Ring, n=n / m, S=S / m, alpha=nic_latency, W=nic)
    latency = equation(
        seconds,
        launch_latency
        + inside.all_gather_latency
        + rails.all_gather_latency
        + select(n > u, n / u - select(u > m, 0, 1), 0) * (unit_latency - nic_latency),
        "m - 1 steps inside, n/m - 1 along the rail",
    )
    ports = equation(seconds, inside.all_gather_bandwidth, "the whole array inside the domain", source=COUNTED)
    nics = equation(seconds, rails.all_gather_bandwidth, "S/m along each rail", source=COUNTED)
    uplinks = equation(
        seconds,
        select(n > u, (1 - m / n) * S / (u * uplink), 0),
        "each rail's ring leaves a unit once",
        source=COUNTED,
    )


class DirectByLevels(Chapter):
    """All-to-all, every block of S/n straight to its rank, all at once."""

    n = given(count, "ranks in the group")
    m = given(count, "ranks of the group in one fast domain")
    u = given(count, "ranks of the group in one unit")
    S = given(bytes_, "one rank's send buffer, the block for itself included")
    launch_latency = given(seconds, "from the call of a collective to its first byte")
    slowest_latency = given(seconds, "one step at the slowest level that the group spans")
    port = given(bytes_per_second, "what a rank attains into its fast domain, one way")
    nic = given(bytes_per_second, "what a rank's fair share of the NICs attains, one way")
    uplink = given(bytes_per_second, "what a rank's fair share of its unit's uplinks attains, one way")

    latency = equation(seconds, launch_latency + slowest_latency, "all sends posted at once")
    ports = equation(seconds, (m - 1) * S / (n * port), "blocks for ranks of the domain", source=COUNTED)
    nics = equation(seconds, (1 - m / n) * S / nic, "blocks for ranks outside", source=COUNTED)
    uplinks = equation(seconds, (1 - u / n) * S / uplink, "blocks for ranks of other units", source=COUNTED)


class RelayedByLevels(Chapter):
    """All-to-all over the fast domain to the rank on the right rail, then out (PXN): no block changes rail on the way."""

    straight = part(DirectByLevels)
    n, m, S = straight.n, straight.m, straight.S
    domain_latency = given(seconds, "one step inside a fast domain")

    latency = equation(
        seconds,
        straight.latency + select(both(n > m, m > 1), domain_latency, 0),
        "one step more, inside the domain",
    )
    ports = equation(
        seconds, (m - 1) * S / (m * straight.port), "all blocks first to the rank on the right rail", source=COUNTED
    )
    nics = equation(seconds, straight.nics, "blocks for ranks outside", source=COUNTED)
    uplinks = equation(seconds, straight.uplinks, "blocks for ranks of other units; none changes rail", source=COUNTED)
