"""A group of ranks on a switched machine, its collectives as a library runs them."""

from costmodel.equations.collectives.fabric import SwitchFabric
from costmodel.equations.collectives.group_on_switches import SwitchGroup
from costmodel.equations.collectives.library import LibraryLevels
from costmodel.equations.collectives.library_messages import (
    MessageByLibrary,
    RootByLibrary,
    SendByLibrary,
    TokensByLibrary,
    WaitByLibrary,
)
from costmodel.equations.collectives.library_on_switches import BlocksByLibrary, ShardsByLibrary, SumsByLibrary
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

LIBRARIES = ("none", "nccl")


class LibraryGroup(Chapter):
    """Every collective by every algorithm and protocol of the library, for one group.

    Names are as in `SwitchGroup`. What does not apply is infinite, and everything where nothing is known of the library on a
    link that the group spans; one rank alone takes no time.
    """

    n = given(count, "ranks in the group")
    m = given(count, "ranks of the group in one fast domain")
    domain_kind = choice(("switch", "mesh"), "behind switches, or one link to each other rank", owner="cluster")
    domain_bandwidth = given(bytes_per_second, "one rank's port (of a mesh: one link), one way", owner="link")
    nic_per_chip = given(bytes_per_second, "a rank's fair share of its host's NICs, one way")

    wire_port = equation(
        bytes_per_second,
        choose(domain_kind, {"switch": domain_bandwidth, "mesh": domain_bandwidth * largest(m - 1, 1)}),
        "a rank's links into its fast domain, all together, one way",
    )
    at = part(LibraryLevels, shared=True)
    S = at.S

    all_gather = part(ShardsByLibrary, passes=1)
    all_gather = equation(
        seconds,
        select(n > 1, smallest(all_gather.ring_ll, all_gather.ring_ll128, all_gather.ring_simple), 0),
        "by the fastest protocol",
    )
    reduce_scatter = part(ShardsByLibrary, passes=1)
    reduce_scatter = equation(
        seconds,
        select(n > 1, smallest(reduce_scatter.ring_ll, reduce_scatter.ring_ll128, reduce_scatter.ring_simple), 0),
        "by the fastest protocol",
    )
    all_reduce = part(SumsByLibrary)
    all_reduce = equation(
        seconds,
        select(
            n > 1,
            smallest(
                all_reduce.ring_ll,
                all_reduce.ring_ll128,
                all_reduce.ring_simple,
                all_reduce.tree_ll,
                all_reduce.tree_ll128,
                all_reduce.tree_simple,
                all_reduce.nvls,
                all_reduce.nvls_tree,
            ),
            0,
        ),
        "by the fastest algorithm and protocol",
    )
    all_to_all = part(BlocksByLibrary)
    all_to_all = equation(
        seconds,
        select(n > 1, smallest(all_to_all.direct_ll, all_to_all.direct_simple), 0),
        "by the fastest protocol",
    )
    send_recv = part(SendByLibrary, link=domain_bandwidth)
    send_recv = equation(
        seconds,
        select(n > 1, smallest(send_recv.direct_ll, send_recv.direct_simple), 0),
        "from each rank to the next, over the slowest link between",
    )


class CollectivesByLibrary(Chapter):
    """`LibraryGroup` with the operations that training does not use."""

    fabric = part(SwitchFabric, shared=True)
    group = part(LibraryGroup, shared=True)
    n = group.n
    dispatch_bytes = given(bytes_, "one token on its way to an expert", owner="workload")
    combine_bytes = given(bytes_, "one token's result on its way back", owner="workload")

    broadcast = part(MessageByLibrary)
    broadcast = equation(
        seconds,
        select(n > 1, smallest(broadcast.ring_ll, broadcast.ring_ll128, broadcast.ring_simple), 0),
        "by the fastest protocol",
    )
    reduce = part(MessageByLibrary)
    reduce = equation(
        seconds,
        select(n > 1, smallest(reduce.ring_ll, reduce.ring_ll128, reduce.ring_simple), 0),
        "by the fastest protocol",
    )
    gather = part(RootByLibrary)
    gather = equation(seconds, select(n > 1, gather.direct_simple, 0), "grouped sends")
    scatter = part(RootByLibrary)
    scatter = equation(seconds, select(n > 1, scatter.direct_simple, 0), "grouped sends")
    dispatch = part(TokensByLibrary, token_bytes=dispatch_bytes)
    dispatch = equation(
        seconds,
        select(n > 1, smallest(dispatch.per_expert, dispatch.per_rank, dispatch.per_node), 0),
        "by the fewest copies",
    )
    combine = part(TokensByLibrary, token_bytes=combine_bytes)
    combine = equation(
        seconds,
        select(n > 1, smallest(combine.per_expert, combine.per_rank, combine.per_node), 0),
        "by the fewest copies",
    )
    barrier = part(WaitByLibrary)
    barrier = equation(
        seconds,
        select(n > 1, smallest(barrier.ring_ll, barrier.tree_ll, barrier.ring_simple, barrier.tree_simple), 0),
        "an all-reduce of nothing",
    )


ALGORITHMS_OF_LIBRARY = {
    "all_gather": ("ring_ll", "ring_ll128", "ring_simple"),
    "reduce_scatter": ("ring_ll", "ring_ll128", "ring_simple"),
    "all_reduce": (
        *("ring_ll", "ring_ll128", "ring_simple", "tree_ll", "tree_ll128", "tree_simple"),
        *("nvls", "nvls_tree"),
    ),
    "all_to_all": ("direct_ll", "direct_simple"),
    "broadcast": ("ring_ll", "ring_ll128", "ring_simple"),
    "reduce": ("ring_ll", "ring_ll128", "ring_simple"),
    "gather": ("direct_simple",),
    "scatter": ("direct_simple",),
    "send_recv": ("direct_ll", "direct_simple"),
    "dispatch": ("per_expert", "per_rank", "per_node"),
    "combine": ("per_expert", "per_rank", "per_node"),
    "barrier": ("ring_ll", "tree_ll", "ring_simple", "tree_simple"),
}
"""The algorithms of each operation, each by a protocol."""


class GroupAsRun(Chapter):
    """The collectives of training for one group: as the library of the machine runs them, or as the hardware would."""

    library = choice(LIBRARIES, "what runs the collectives; none: as fast as the links allow", owner="cluster")

    ideal = part(SwitchGroup)
    run = part(LibraryGroup)
    all_gather = equation(
        seconds, choose(library, {"none": ideal.all_gather, "nccl": run.all_gather}), "by the fastest algorithm"
    )
    reduce_scatter = equation(
        seconds,
        choose(library, {"none": ideal.reduce_scatter, "nccl": run.reduce_scatter}),
        "by the fastest algorithm",
    )
    all_reduce = equation(
        seconds, choose(library, {"none": ideal.all_reduce, "nccl": run.all_reduce}), "by the fastest algorithm"
    )
    all_to_all = equation(
        seconds, choose(library, {"none": ideal.all_to_all, "nccl": run.all_to_all}), "by the fastest algorithm"
    )
    send_recv = equation(
        seconds,
        choose(library, {"none": ideal.send_recv, "nccl": run.send_recv}),
        "from each rank to the next, over the slowest link between",
    )
