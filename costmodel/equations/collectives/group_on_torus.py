"""A group of ranks on a torus (a TPU slice), or on several slices joined by a data-centre network.

The placement of the group comes in as, for each axis of the torus, its size, its stride and whether it closes to a ring.
"""

from costmodel.equations.axes import DISPATCH
from costmodel.equations.collectives.book import CONVENTION, BookTorus
from costmodel.equations.collectives.fabric import TorusFabric
from costmodel.equations.collectives.sources import BOOK_SHARDING
from costmodel.equations.collectives.torus import TorusLoads
from costmodel.equations.collectives.torus_levels import (
    BlocksOnTorus,
    BookOnTorus,
    MessageOnTorus,
    RootOnTorus,
    SendOnTorus,
    ShardsOnTorus,
    TokensOnTorus,
    WaitOnTorus,
)
from costmodel.symbolic import (
    Chapter,
    bytes_,
    bytes_per_second,
    choice,
    choose,
    count,
    equal,
    equation,
    given,
    holds,
    largest,
    part,
    seconds,
    select,
    smallest,
)


class PlacedOnTorus(Chapter):
    """What one group attains: the links that it has along each axis, its share of the network between slices."""

    slices = given(count, "slices that the group spans")
    S = given(bytes_, "the whole gathered or reduced array; of an all-to-all, one rank's send buffer")
    launch_latency = given(seconds, "from the call of a collective to its first byte", owner="cluster")
    link_bandwidth = given(bytes_per_second, "one link of the torus, one way", owner="link")
    link_share = given(count, "attainable share of it", owner="link")
    hop_latency = given(seconds, "one hop inside a slice", owner="link")
    dcn_out_of_slice = given(bytes_per_second, "what a chip can send to other slices, one way")
    dcn_share = given(count, "attainable share of it", owner="link")
    dcn_latency = given(seconds, "one step between slices", owner="link")

    twisted_chips = given(count, "chips of a twisted slice; 0 of a plain one")
    size_x = given(count, "ranks of the group along X")
    size_y = given(count, "ranks of the group along Y")
    size_z = given(count, "ranks of the group along Z")
    twisted = equation(
        count,
        holds(equal(size_x * size_y * size_z, twisted_chips)),
        "1 when the ranks are all chips of a twisted slice",
    )
    loads = part(TorusLoads, shared=True)
    n = equation(count, loads.ranks * slices, "ranks in the group")
    link = equation(bytes_per_second, link_bandwidth * link_share, "what a link of the torus attains, one way")
    dcn = equation(
        bytes_per_second, dcn_out_of_slice * dcn_share, "what a chip's share of the network attains, one way"
    )


class TorusGroup(Chapter):
    """Every collective by every algorithm, for one group.

    Names are `<operation>_<algorithm>`, with `_latency` and one `_<resource>` each (links, dcn), and `<operation>` for the
    fastest that is known to be in use. What does not apply is infinite; one rank alone takes no time.
    """

    placed = part(PlacedOnTorus, shared=True)
    n = placed.n

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


class TokensInGroupOnTorus(Chapter):
    """Dispatch of tokens to experts on a group, by the way that copies are made; on a torus every chip is its own node."""

    dispatch_by = choice(DISPATCH, "of what a token is sent one copy to")
    tokens = given(count, "tokens of a rank")
    token_bytes = given(bytes_, "one token on the wire")
    placed = part(PlacedOnTorus, shared=True, S=tokens * token_bytes)
    n = placed.n
    sent = part(TokensOnTorus, S=tokens * token_bytes)
    exchange = equation(
        seconds,
        select(
            n > 1,
            choose(dispatch_by, {"expert": sent.per_expert, "rank": sent.per_rank, "node": sent.per_rank}),
            0,
        ),
        "tokens to their experts, or results back",
    )
    wire = equation(
        seconds,
        select(
            n > 1,
            exchange
            - choose(
                dispatch_by,
                {
                    "expert": sent.per_expert_latency,
                    "rank": sent.per_rank_latency,
                    "node": sent.per_rank_latency,
                },
            ),
            0,
        ),
        "of this, the bytes at what the fullest of the links attains",
    )


class CollectivesOnTorus(Chapter):
    """`TorusGroup` with the operations that training does not use, and with the scaling book's own forms."""

    fabric = part(TorusFabric, shared=True)
    group = part(TorusGroup, shared=True)
    n, S, slices = group.n, group.S, group.slices
    tokens = given(count, "tokens of a rank", owner="workload")
    dispatch_bytes = given(bytes_, "one token on its way to an expert", owner="workload")
    combine_bytes = given(bytes_, "one token's result on its way back", owner="workload")
    experts = given(count, "routed experts", owner="model")
    chosen = given(count, "experts of a token", owner="model")

    broadcast = part(MessageOnTorus)
    broadcast = equation(
        seconds, select(n > 1, smallest(broadcast.tree, broadcast.scatter_all_gather), 0), "by the fastest algorithm"
    )
    reduce = part(MessageOnTorus)
    reduce = equation(
        seconds, select(n > 1, smallest(reduce.tree, reduce.scatter_all_gather), 0), "by the fastest algorithm"
    )
    gather = part(RootOnTorus)
    gather = equation(seconds, select(n > 1, gather.along_axes, 0), "by the fastest algorithm")
    scatter = part(RootOnTorus)
    scatter = equation(seconds, select(n > 1, scatter.along_axes, 0), "by the fastest algorithm")
    barrier = part(WaitOnTorus)
    barrier = equation(seconds, select(n > 1, barrier.tree, 0), "by the fastest algorithm")
    dispatch = part(TokensOnTorus, token_bytes=dispatch_bytes)
    dispatch = equation(
        seconds, select(n > 1, smallest(dispatch.per_expert, dispatch.per_rank), 0), "by the fastest algorithm"
    )
    combine = part(TokensOnTorus, token_bytes=combine_bytes)
    combine = equation(
        seconds, select(n > 1, smallest(combine.per_expert, combine.per_rank), 0), "by the fastest algorithm"
    )

    all_to_all_twist_gain = equation(
        count,
        select(group.twisted > 0, group.box_blocks / group.blocks, 1),
        "load of the busiest cable in an all-to-all on the plain torus over that on a twisted slice",
    )

    book = part(
        BookTorus,
        V=S,
        W=2 * group.link_bandwidth,
        axes=select(n > slices, (group.x_links + group.y_links + group.z_links) / 2, 1),
        longest=largest(group.size_x, group.size_y, group.size_z),
    )
    book_exchange = part(
        BookTorus,
        V=n * S,
        W=2 * group.link_bandwidth,
        axes=select(n > slices, (group.x_links + group.y_links + group.z_links) / 2, 1),
        longest=largest(group.size_x, group.size_y, group.size_z),
    )
    for_shards = part(BookOnTorus, latency=book.all_gather_latency, bandwidth=book.all_gather_bandwidth)
    for_blocks = part(
        BookOnTorus, latency=book_exchange.all_to_all_latency, bandwidth=book_exchange.all_to_all_bandwidth
    )
    all_gather_book_latency = equation(seconds, for_shards.shown_latency, "where it is the larger")
    all_gather_book_links = equation(seconds, for_shards.shown_bandwidth, "where it is the larger")
    all_gather_book = equation(
        seconds, for_shards.time, "the larger of latency and bandwidth", source=BOOK_SHARDING, approximate=CONVENTION
    )
    reduce_scatter_book_latency = equation(seconds, all_gather_book_latency, "as an all-gather")
    reduce_scatter_book_links = equation(seconds, all_gather_book_links, "as an all-gather")
    reduce_scatter_book = equation(
        seconds, all_gather_book, "as an all-gather", source=BOOK_SHARDING, approximate=CONVENTION
    )
    all_reduce_book_latency = equation(seconds, 2 * all_gather_book_latency, "twice an all-gather")
    all_reduce_book_links = equation(seconds, 2 * all_gather_book_links, "twice an all-gather")
    all_reduce_book = equation(
        seconds, 2 * all_gather_book, "twice an all-gather", source=BOOK_SHARDING, approximate=CONVENTION
    )
    all_to_all_book_latency = equation(seconds, for_blocks.shown_latency, "where it is the larger")
    all_to_all_book_links = equation(seconds, for_blocks.shown_bandwidth, "where it is the larger")
    all_to_all_book = equation(
        seconds, for_blocks.time, "the larger of latency and bandwidth", source=BOOK_SHARDING, approximate=CONVENTION
    )


ALGORITHMS_ON_TORUS = {
    "all_gather": ("equal_split", "one_order", "best_split", "book"),
    "reduce_scatter": ("equal_split", "one_order", "best_split", "book"),
    "all_reduce": ("equal_split", "one_order", "best_split", "book"),
    "all_to_all": ("direct", "book"),
    "broadcast": ("tree", "scatter_all_gather"),
    "reduce": ("tree", "scatter_all_gather"),
    "gather": ("along_axes",),
    "scatter": ("along_axes",),
    "send_recv": ("direct",),
    "dispatch": ("per_expert", "per_rank"),
    "combine": ("per_expert", "per_rank"),
    "barrier": ("tree",),
}
"""The algorithms of each operation; those that the equation of the operation leaves out are bounds and other conventions."""
