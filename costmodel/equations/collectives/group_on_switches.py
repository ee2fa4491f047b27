"""A group of ranks on a switched machine: fast domains (NVLink, or a full mesh), NICs, and units below a spine.

The placement of the group comes in as three counts: n ranks, of which m share a fast domain and u a unit.
"""

from costmodel.equations.axes import DISPATCH
from costmodel.equations.collectives.book import CONVENTION, BookNode, BookTree
from costmodel.equations.collectives.fabric import SwitchFabric
from costmodel.equations.collectives.sources import BOOK_GPUS
from costmodel.equations.collectives.switch_blocks import BlocksOnSwitches
from costmodel.equations.collectives.switch_messages import (
    MessageOnSwitches,
    RootOnSwitches,
    SendOnSwitches,
    TokensOnSwitches,
    WaitOnSwitches,
)
from costmodel.equations.collectives.switch_shards import ShardsOnSwitches
from costmodel.equations.collectives.switch_sums import SumsOnSwitches
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


class PlacedOnSwitches(Chapter):
    """What one group attains at each level: its ports, its share of the NICs and of the unit's uplinks, the steps between."""

    n = given(count, "ranks in the group")
    m = given(count, "ranks of the group in one fast domain")
    u = given(count, "ranks of the group in one unit")
    S = given(bytes_, "the whole gathered or reduced array; of an all-to-all, one rank's send buffer")
    launch_latency = given(seconds, "from the call of a collective to its first byte", owner="cluster")
    domain_kind = choice(("switch", "mesh"), "behind switches, or one link to each other rank", owner="cluster")
    domain_bandwidth = given(bytes_per_second, "one rank's port (of a mesh: one link), one way", owner="link")
    domain_share = given(count, "attainable share of it", owner="link")
    domain_latency = given(seconds, "one step inside a fast domain", owner="link")
    nic_per_chip = given(bytes_per_second, "a rank's fair share of its host's NICs, one way")
    nic_share = given(count, "attainable share of it", owner="link")
    nic_latency = given(seconds, "one step between fast domains of a unit", owner="link")
    unit_oversubscription = given(
        count, "bandwidth into a unit's switches over bandwidth out of the unit", owner="cluster"
    )
    unit_latency = given(seconds, "one step between units")
    nvls_share = given(
        count, "attainable share of a port when the domain's switches add; 0 where they cannot", owner="link"
    )

    link = equation(bytes_per_second, domain_bandwidth * domain_share, "what a port (of a mesh: a link) attains")
    port = equation(
        bytes_per_second,
        choose(domain_kind, {"switch": link, "mesh": link * largest(m - 1, 1)}),
        "what a rank attains into its fast domain, one way",
    )
    nic = equation(bytes_per_second, nic_per_chip * nic_share, "what a rank's fair share of the NICs attains, one way")
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


class SwitchGroup(Chapter):
    """Every collective by every algorithm, for one group.

    Names are `<operation>_<algorithm>`, with `_latency` and one `_<resource>` each (ports, nics, uplinks), and
    `<operation>` for the fastest. What does not apply is infinite; one rank alone takes no time.
    """

    placed = part(PlacedOnSwitches, shared=True)
    n = placed.n

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
        select(n > 1, smallest(all_to_all.direct, all_to_all.relayed, all_to_all.pairwise, all_to_all.bruck), 0),
        "by the fastest algorithm",
    )

    send_recv = part(SendOnSwitches)
    send_recv = equation(
        seconds, select(n > 1, send_recv.direct, 0), "from each rank to the next, over the slowest link between"
    )


class TokensInGroupOnSwitches(Chapter):
    """Dispatch of tokens to experts on a group, by the way that copies are made."""

    dispatch_by = choice(DISPATCH, "of what a token is sent one copy to")
    tokens = given(count, "tokens of a rank")
    token_bytes = given(bytes_, "one token on the wire")
    placed = part(PlacedOnSwitches, shared=True, S=tokens * token_bytes)
    sent = part(TokensOnSwitches, S=tokens * token_bytes)
    exchange = equation(
        seconds,
        select(
            placed.n > 1,
            choose(dispatch_by, {"expert": sent.per_expert, "rank": sent.per_rank, "node": sent.per_node}),
            0,
        ),
        "tokens to their experts, or results back",
    )
    wire = equation(
        seconds,
        select(
            placed.n > 1,
            exchange
            - choose(
                dispatch_by,
                {
                    "expert": sent.per_expert_latency,
                    "rank": sent.per_rank_latency,
                    "node": sent.per_node_latency,
                },
            ),
            0,
        ),
        "of this, the bytes at what the fullest of the links attains",
    )


class CollectivesOnSwitches(Chapter):
    """`SwitchGroup` with the operations that training does not use, and with the scaling book's own forms."""

    fabric = part(SwitchFabric, shared=True)
    group = part(SwitchGroup, shared=True)
    n, m, S = group.n, group.m, group.S
    tokens = given(count, "tokens of a rank", owner="workload")
    dispatch_bytes = given(bytes_, "one token on its way to an expert", owner="workload")
    combine_bytes = given(bytes_, "one token's result on its way back", owner="workload")
    experts = given(count, "routed experts", owner="model")
    chosen = given(count, "experts of a token", owner="model")
    node_limit = given(count, "domains that one token may go to; n/m when there is no limit", owner="model")

    broadcast = part(MessageOnSwitches, around=group.all_gather_ring_latency)
    broadcast = equation(
        seconds,
        select(
            n > 1,
            smallest(broadcast.ring, broadcast.chain, broadcast.binomial, broadcast.scatter_all_gather, broadcast.nvls),
            0,
        ),
        "by the fastest algorithm",
    )
    reduce = part(MessageOnSwitches, around=group.all_gather_ring_latency)
    reduce = equation(
        seconds,
        select(n > 1, smallest(reduce.ring, reduce.chain, reduce.binomial, reduce.scatter_all_gather, reduce.nvls), 0),
        "by the fastest algorithm",
    )
    gather = part(RootOnSwitches)
    gather = equation(seconds, select(n > 1, smallest(gather.direct, gather.binomial), 0), "by the fastest algorithm")
    scatter = part(RootOnSwitches)
    scatter = equation(
        seconds, select(n > 1, smallest(scatter.direct, scatter.binomial), 0), "by the fastest algorithm"
    )
    barrier = part(WaitOnSwitches)
    barrier = equation(
        seconds, select(n > 1, smallest(barrier.dissemination, barrier.hierarchical), 0), "by the fastest algorithm"
    )
    dispatch = part(TokensOnSwitches, token_bytes=dispatch_bytes)
    dispatch = equation(
        seconds,
        select(n > 1, smallest(dispatch.per_expert, dispatch.per_rank, dispatch.per_node), 0),
        "by the fastest algorithm",
    )
    combine = part(TokensOnSwitches, token_bytes=combine_bytes)
    combine = equation(
        seconds,
        select(n > 1, smallest(combine.per_expert, combine.per_rank, combine.per_node), 0),
        "by the fastest algorithm",
    )

    book = part(BookTree, V=S, M=n / m, D_node=m, Y=1, W_gpu=group.domain_bandwidth, W_node=m * group.nic_per_chip)
    book_exchange = part(BookNode, V=n * S, N=n, W=group.domain_bandwidth, k=n)
    book_exchange_across = part(
        BookTree, V=n * S, M=n / m, D_node=m, Y=1, W_gpu=group.domain_bandwidth, W_node=m * group.nic_per_chip
    )
    all_gather_book_latency = equation(seconds, 0, "left out by the book")
    all_gather_book_ports = equation(seconds, book.exact_node_level, "at full bandwidth", source=BOOK_GPUS)
    all_gather_book_nics = equation(seconds, book.exact_network_level, "at full bandwidth", source=BOOK_GPUS)
    all_gather_book = equation(
        seconds, book.exact_all_gather, "the slower level", source=BOOK_GPUS, approximate=CONVENTION
    )
    reduce_scatter_book_latency = equation(seconds, 0, "left out by the book")
    reduce_scatter_book_ports = equation(seconds, all_gather_book_ports, "at full bandwidth", source=BOOK_GPUS)
    reduce_scatter_book_nics = equation(seconds, all_gather_book_nics, "at full bandwidth", source=BOOK_GPUS)
    reduce_scatter_book = equation(
        seconds, all_gather_book, "the slower level", source=BOOK_GPUS, approximate=CONVENTION
    )
    all_reduce_book_latency = equation(seconds, 0, "left out by the book")
    all_reduce_book_ports = equation(seconds, 2 * all_gather_book_ports, "at full bandwidth", source=BOOK_GPUS)
    all_reduce_book_nics = equation(seconds, 2 * all_gather_book_nics, "at full bandwidth", source=BOOK_GPUS)
    all_reduce_book = equation(
        seconds, 2 * all_gather_book, "twice an all-gather", source=BOOK_GPUS, approximate=CONVENTION
    )
    all_to_all_book_latency = equation(seconds, 0, "left out by the book")
    all_to_all_book_ports = equation(
        seconds, select(n > m, 0, book_exchange.all_to_all), "at full bandwidth, inside one domain", source=BOOK_GPUS
    )
    all_to_all_book_nics = equation(
        seconds,
        select(n > m, book_exchange_across.all_to_all, 0),
        "at full bandwidth, between domains",
        source=BOOK_GPUS,
    )
    all_to_all_book = equation(
        seconds,
        all_to_all_book_ports + all_to_all_book_nics,
        "blocks over the slowest level",
        source=BOOK_GPUS,
        approximate=CONVENTION,
    )


ALGORITHMS_ON_SWITCHES = {
    "all_gather": ("ring", "hierarchical", "pipelined", "hierarchical_log", "bruck", "direct", "book"),
    "reduce_scatter": ("ring", "hierarchical", "pipelined", "hierarchical_log", "bruck", "direct", "book"),
    "all_reduce": (
        *("ring", "hierarchical", "pipelined", "hierarchical_log", "tree", "nvls", "nvls_tree", "sharp"),
        *("rabenseifner", "recursive_doubling", "one_shot", "two_shot", "book"),
    ),
    "all_to_all": ("direct", "relayed", "pairwise", "bruck", "book"),
    "broadcast": ("ring", "chain", "binomial", "scatter_all_gather", "nvls"),
    "reduce": ("ring", "chain", "binomial", "scatter_all_gather", "nvls"),
    "gather": ("direct", "binomial"),
    "scatter": ("direct", "binomial"),
    "send_recv": ("direct",),
    "dispatch": ("per_expert", "per_rank", "per_node"),
    "combine": ("per_expert", "per_rank", "per_node"),
    "barrier": ("dissemination", "hierarchical"),
}
"""The algorithms of each operation; those that the equation of the operation leaves out are bounds and other conventions."""
