"""A group of ranks on a torus (a TPU slice), or on several slices joined by a data-centre network.

The placement of the group comes in as, for each axis of the torus, its size, its stride and whether it closes to a ring.
"""

from costmodel.equations.collectives.torus import TorusLoads
from costmodel.equations.collectives.torus_levels import BlocksOnTorus, SendOnTorus, ShardsOnTorus
from costmodel.symbolic import (
    Chapter,
    bytes_,
    bytes_per_second,
    count,
    equation,
    given,
    part,
    seconds,
    select,
    smallest,
)


class TorusGroup(Chapter):
    """Every collective by every algorithm, for one group.

    Names are `<operation>_<algorithm>`, with `_latency` and one `_<resource>` each (links, dcn), and `<operation>` for the
    fastest that is known to be in use. What does not apply is infinite; one rank alone takes no time.
    """

    slices = given(count, "slices that the group spans")
    S = given(bytes_, "the whole gathered or reduced array; of an all-to-all, one rank's send buffer")
    launch_latency = given(seconds, "from the call of a collective to its first byte", owner="cluster")
    link_bandwidth = given(bytes_per_second, "one link of the torus, one way", owner="link")
    link_share = given(count, "attainable share of it", owner="link")
    hop_latency = given(seconds, "one hop inside a slice", owner="link")
    dcn_bandwidth = given(bytes_per_second, "a chip's fair share of the data-centre network, one way", owner="link")
    dcn_share = given(count, "attainable share of it", owner="link")
    dcn_latency = given(seconds, "one step between slices", owner="link")

    loads = part(TorusLoads, shared=True)
    n = equation(count, loads.ranks * slices, "ranks in the group")
    link = equation(bytes_per_second, link_bandwidth * link_share, "what a link of the torus attains, one way")
    dcn = equation(bytes_per_second, dcn_bandwidth * dcn_share, "what a chip's share of the network attains, one way")

    all_gather = part(ShardsOnTorus, passes=1)
    all_gather = equation(
        seconds, select(n > 1, smallest(all_gather.equal_split, all_gather.one_order), 0), "by the fastest algorithm"
    )
    reduce_scatter = part(ShardsOnTorus, passes=1)
    reduce_scatter = equation(
        seconds,
        select(n > 1, smallest(reduce_scatter.equal_split, reduce_scatter.one_order), 0),
        "by the fastest algorithm",
    )
    all_reduce = part(ShardsOnTorus, passes=2)
    all_reduce = equation(
        seconds, select(n > 1, smallest(all_reduce.equal_split, all_reduce.one_order), 0), "by the fastest algorithm"
    )
    all_to_all = part(BlocksOnTorus)
    all_to_all = equation(seconds, select(n > 1, all_to_all.direct, 0), "by the fastest algorithm")
    send_recv = part(SendOnTorus)
    send_recv = equation(
        seconds, select(n > 1, send_recv.direct, 0), "from each rank to the next, over the slowest link between"
    )
