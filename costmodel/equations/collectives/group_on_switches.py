"""A group of ranks on a switched machine: fast domains (NVLink, or a full mesh), NICs, and units below a spine.

The placement of the group comes in as three counts: n ranks, of which m share a fast domain and u a unit.
"""

from costmodel.equations.collectives.switch_levels import (
    BlocksOnSwitches,
    SendOnSwitches,
    ShardsOnSwitches,
    SumsOnSwitches,
)
from costmodel.symbolic import (
    Chapter,
    bytes_,
    bytes_per_second,
    choice,
    choose,
    count,
    equation,
    given,
    largest,
    part,
    seconds,
    select,
    smallest,
)


class SwitchGroup(Chapter):
    """Every collective by every algorithm, for one group.

    Names are `<operation>_<algorithm>`, with `_latency` and one `_<resource>` each (ports, nics, uplinks), and
    `<operation>` for the fastest. What does not apply is infinite; one rank alone takes no time.
    """

    n = given(count, "ranks in the group")
    m = given(count, "ranks of the group in one fast domain")
    u = given(count, "ranks of the group in one unit")
    S = given(bytes_, "the whole gathered or reduced array; of an all-to-all, one rank's send buffer")
    launch_latency = given(seconds, "from the call of a collective to its first byte", owner="cluster")
    domain_kind = choice(("switch", "mesh"), "behind switches, or one link to each other rank", owner="cluster")
    domain_bandwidth = given(bytes_per_second, "one rank's port (of a mesh: one link), one way", owner="link")
    domain_share = given(count, "attainable share of it", owner="link")
    domain_latency = given(seconds, "one step inside a fast domain", owner="link")
    nic_bandwidth = given(bytes_per_second, "a rank's fair share of its host's NICs, one way", owner="link")
    nic_share = given(count, "attainable share of it", owner="link")
    nic_latency = given(seconds, "one step between fast domains of a unit", owner="link")
    unit_oversubscription = given(
        count, "bandwidth into a unit's switches over bandwidth out of the unit", owner="cluster"
    )
    unit_latency = given(seconds, "one step between units", owner="cluster")
    nvls_share = given(
        count, "attainable share of a port when the domain's switches add; 0 where they cannot", owner="link"
    )

    link = equation(bytes_per_second, domain_bandwidth * domain_share, "what a port (of a mesh: a link) attains")
    port = equation(
        bytes_per_second,
        choose(domain_kind, {"switch": link, "mesh": link * largest(m - 1, 1)}),
        "what a rank attains into its fast domain, one way",
    )
    nic = equation(bytes_per_second, nic_bandwidth * nic_share, "what a rank's fair share of the NICs attains, one way")
    uplink = equation(
        bytes_per_second, nic / unit_oversubscription, "what its fair share of the unit's uplinks attains, one way"
    )
    nvls_port = equation(
        bytes_per_second,
        domain_bandwidth * select(nvls_share > 0, nvls_share, 1),
        "what a port attains when the domain's switches add",
    )
    rail_latency = equation(
        seconds, select(n > u, unit_latency, nic_latency), "one step between the farthest ranks of a rail"
    )
    slowest_latency = equation(
        seconds, select(n > m, rail_latency, domain_latency), "one step at the slowest level spanned"
    )
    slowest_bandwidth = equation(
        bytes_per_second,
        select(n > m, select(n > u, uplink, nic), port),
        "what a rank attains at the slowest level spanned",
    )

    all_gather = part(ShardsOnSwitches)
    all_gather = equation(
        seconds,
        select(
            n > 1,
            smallest(
                all_gather.ring,
                all_gather.hierarchical,
                all_gather.hierarchical_log,
                all_gather.bruck,
                all_gather.direct,
            ),
            0,
        ),
        "by the fastest algorithm",
    )

    reduce_scatter = part(ShardsOnSwitches)
    reduce_scatter = equation(
        seconds,
        select(
            n > 1,
            smallest(
                reduce_scatter.ring,
                reduce_scatter.hierarchical,
                reduce_scatter.hierarchical_log,
                reduce_scatter.bruck,
                reduce_scatter.direct,
            ),
            0,
        ),
        "by the fastest algorithm",
    )

    all_reduce = part(SumsOnSwitches)
    all_reduce = equation(
        seconds,
        select(
            n > 1,
            smallest(
                all_reduce.ring,
                all_reduce.hierarchical,
                all_reduce.hierarchical_log,
                all_reduce.tree,
                all_reduce.nvls,
                all_reduce.nvls_tree,
                all_reduce.rabenseifner,
                all_reduce.recursive_doubling,
                all_reduce.one_shot,
                all_reduce.two_shot,
            ),
            0,
        ),
        "by the fastest algorithm",
    )

    all_to_all = part(BlocksOnSwitches)
    all_to_all = equation(
        seconds,
        select(n > 1, smallest(all_to_all.direct, all_to_all.relayed, all_to_all.pairwise), 0),
        "by the fastest algorithm",
    )

    send_recv = part(SendOnSwitches)
    send_recv = equation(
        seconds, select(n > 1, send_recv.direct, 0), "from each rank to the next, over the slowest link between"
    )
