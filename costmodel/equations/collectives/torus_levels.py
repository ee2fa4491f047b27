"""How one algorithm runs on the levels of a torus machine: what `group_on_torus` is put together from.

Each gives a latency and seconds on each resource: a link of the torus, and the chip's share of the data-centre network.
"""

from costmodel.equations.collectives.all_to_all import EVEN, RoutedTokens
from costmodel.equations.collectives.point_to_point import Dissemination
from costmodel.equations.collectives.ring import Ring
from costmodel.equations.collectives.sources import CABLE_BY_CABLE as COUNTED
from costmodel.equations.collectives.sources import CHOICE_BY_CHOICE
from costmodel.equations.collectives.torus import ORDERS, SUBSETS, AlongAxes
from costmodel.equations.collectives.tree import Binomial, PipelinedChain
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

NO_WORSE = "an upper bound where one axis is much weaker: the root's links alone could be used better"


class TorusLevels(Chapter):
    """What an algorithm sees of the group and its machine."""

    ranks = given(count, "ranks of the group in one slice")
    slices = given(count, "slices that the group spans")
    S = given(bytes_, "the whole gathered or reduced array; of an all-to-all, one rank's send buffer")
    launch_latency = given(seconds, "from the call of a collective to its first byte")
    hop_latency = given(seconds, "one hop inside a slice")
    dcn_latency = given(seconds, "one step between slices")
    link = given(bytes_per_second, "what a link of the torus attains, one way")
    dcn = given(bytes_per_second, "what a chip's share of the data-centre network attains, one way")
    axes = given(count, "axes that the group spreads along")
    hops = given(count, "cables to the farthest rank of the slice")
    stride = given(count, "cables to the farthest neighbour")
    even_load = given(count, "payloads over a link in an all-gather, divided evenly over the rotated orders of axes")
    ordered_load = given(count, "payloads over a link in an all-gather, axis after axis")
    best_load = given(count, "payloads over a link in an all-gather, divided best over the orders of axes")
    blocks = given(count, "payloads over a middle cable in an all-to-all")
    exchange_hops = given(count, "cables to the farthest rank by the shortest way")


class ShardsOnTorus(Chapter):
    """All-gather or reduce-scatter (one pass), all-reduce (two): axes of the torus, and slices for each chip's own share."""

    at = part(TorusLevels, shared=True)
    passes = given(count, "1 for an all-gather or reduce-scatter, 2 for an all-reduce")

    across = part(Ring, n=at.slices, S=at.S / at.ranks, alpha=at.dcn_latency, W=at.dcn)
    start = equation(
        seconds,
        at.launch_latency + passes * (at.hops * at.hop_latency + across.all_gather_latency),
        "hops inside the slices, steps between them",
    )
    own_share = equation(seconds, passes * across.all_gather_bandwidth, "each chip's own share between the slices")

    evenly = part(AlongAxes, share=at.even_load, hops=at.hops, alpha=at.hop_latency, W=at.link)
    equal_split_latency = equation(seconds, start, "hops inside the slices, steps between them")
    equal_split_links = equation(seconds, passes * evenly.all_gather_bandwidth, "what the busiest link carries")
    equal_split_dcn = equation(seconds, own_share, "each chip's own share")
    equal_split = equation(
        seconds,
        equal_split_latency + equal_split_links + equal_split_dcn,
        "all axes at once, the payload divided evenly over their orders; slices before or after",
        source=ORDERS,
    )

    in_turn = part(AlongAxes, share=at.ordered_load, hops=at.hops, alpha=at.hop_latency, W=at.link)
    one_order_latency = equation(seconds, start, "hops inside the slices, steps between them")
    one_order_links = equation(seconds, passes * in_turn.all_gather_bandwidth, "axis after axis")
    one_order_dcn = equation(seconds, own_share, "each chip's own share")
    one_order = equation(
        seconds,
        select(at.axes > 1, one_order_latency + one_order_links + one_order_dcn, infinite),
        "one axis after the other; slices before or after",
        source=ORDERS,
        valid="several axes",
    )

    ideally = part(AlongAxes, share=at.best_load, hops=at.hops, alpha=at.hop_latency, W=at.link)
    best_split_latency = equation(seconds, start, "hops inside the slices, steps between them")
    best_split_links = equation(seconds, passes * ideally.all_gather_bandwidth, "what the busiest link carries")
    best_split_dcn = equation(seconds, own_share, "each chip's own share")
    best_split = equation(
        seconds,
        select(at.axes > 1, best_split_latency + best_split_links + best_split_dcn, infinite),
        "all axes at once, the payload divided best; slices before or after",
        approximate="a lower bound: no compiler is known to divide so on unequal axes",
        source=SUBSETS,
    )


class BlocksOnTorus(Chapter):
    """All-to-all: blocks for the own slice over the torus, blocks for other slices straight over the network."""

    at = part(TorusLevels, shared=True)

    direct_latency = equation(
        seconds,
        at.launch_latency + largest(at.exchange_hops * at.hop_latency, select(at.slices > 1, at.dcn_latency, 0)),
        "to the farthest rank, or one step between slices",
    )
    direct_links = equation(
        seconds,
        at.blocks * at.S / (at.slices * at.link),
        "blocks of the own slice over the middle cables",
        source=COUNTED,
    )
    direct_dcn = equation(seconds, (1 - 1 / at.slices) * at.S / at.dcn, "blocks for other slices", source=COUNTED)
    direct = equation(
        seconds,
        direct_latency + largest(direct_links, direct_dcn),
        "shortest ways, averaged over the orders of axes",
        source=COUNTED,
    )


class SendOnTorus(Chapter):
    """Every rank sends to the next of its group at once, as pipeline stages do: the slowest of the links decides."""

    at = part(TorusLevels, shared=True)

    direct_latency = equation(
        seconds,
        at.launch_latency + largest(at.stride * at.hop_latency, select(at.slices > 1, at.dcn_latency, 0)),
        "to the next rank of the axis, or one step between slices",
    )
    direct_links = equation(
        seconds, at.stride * at.S / at.link, "the groups in between send over the same cables", source=COUNTED
    )
    direct_dcn = equation(seconds, select(at.slices > 1, at.S / at.dcn, 0), "to a rank of another slice")
    direct = equation(seconds, direct_latency + largest(direct_links, direct_dcn), "one message a rank", source=COUNTED)


class MessageOnTorus(Chapter):
    """Broadcast; reduce is the same run backwards."""

    at = part(TorusLevels, shared=True)
    link, dcn = at.link, at.dcn

    inside = part(PipelinedChain, n=at.hops + 1, alpha=at.hop_latency, W=link / largest(at.stride, 1))
    tree_latency = equation(seconds, at.launch_latency + inside.broadcast_latency, "to the farthest rank")
    tree_links = equation(seconds, inside.broadcast_bandwidth, "chunk after chunk over every link of the tree")
    tree = equation(
        seconds,
        select(at.slices > 1, infinite, tree_latency + tree_links),
        "down a tree that takes axis after axis, in the best number of chunks",
        valid="one slice",
        source=COUNTED,
    )

    across = part(Binomial, n=at.slices, S=at.S / at.ranks, alpha=at.dcn_latency, W=dcn)
    shards = part(AlongAxes, share=smallest(at.even_load, at.ordered_load), hops=at.hops, alpha=at.hop_latency, W=link)
    scatter_all_gather_latency = equation(
        seconds, at.launch_latency + shards.all_reduce_latency + across.broadcast_latency, "scatter, slices, all-gather"
    )
    scatter_all_gather_links = equation(
        seconds, shards.all_reduce_bandwidth, "a scatter loads the root's links as an all-gather loads all"
    )
    scatter_all_gather_dcn = equation(
        seconds, across.broadcast_bandwidth, "each chip of the first slice sends its share on"
    )
    scatter_all_gather = equation(
        seconds,
        scatter_all_gather_latency + scatter_all_gather_links + scatter_all_gather_dcn,
        "scattered, passed on to the slices, gathered",
        source=COUNTED,
    )


class RootOnTorus(Chapter):
    """Gather; scatter is the same run backwards."""

    at = part(TorusLevels, shared=True)

    shards = part(
        AlongAxes, share=smallest(at.even_load, at.ordered_load), hops=at.hops, alpha=at.hop_latency, W=at.link
    )
    across = part(Binomial, n=at.slices, S=at.S / at.ranks, alpha=at.dcn_latency, W=at.dcn)
    along_axes_latency = equation(
        seconds,
        at.launch_latency + shards.all_gather_latency + across.gather_latency,
        "hops inside the slice, steps between slices",
    )
    along_axes_links = equation(seconds, shards.all_gather_bandwidth, "the root's links", approximate=NO_WORSE)
    along_axes_dcn = equation(seconds, across.gather_bandwidth, "each chip of the root's slice collects its share")
    along_axes = equation(
        seconds,
        along_axes_latency + along_axes_links + along_axes_dcn,
        "between the slices, then along all axes to or from the root",
        approximate=NO_WORSE,
        source=COUNTED,
    )


class WaitOnTorus(Chapter):
    """Barrier."""

    at = part(TorusLevels, shared=True)

    across = part(Dissemination, n=at.slices, alpha=at.dcn_latency)
    tree_latency = equation(
        seconds,
        at.launch_latency + 2 * at.hops * at.hop_latency + across.barrier_latency,
        "to one rank and back, between the slices",
    )
    tree = equation(seconds, tree_latency, "signals to the middle of the slice and back", source=COUNTED)


class TokensOnTorus(Chapter):
    """Dispatch of tokens to experts on the ranks; combine is the same run backwards.

    Tokens go to all ranks alike, so that this is an all-to-all of a payload that holds each token once for each copy.
    """

    at = part(TorusLevels, shared=True)
    n = given(count, "ranks in the group")
    tokens = given(count, "tokens of a rank")
    token_bytes = given(bytes_, "one token on the wire")
    chosen = given(count, "experts of a token")
    routed = part(RoutedTokens, ranks=n, nodes=1, node_limit=1)

    copies = part(BlocksOnTorus, S=tokens * token_bytes * chosen)
    per_expert_latency = equation(seconds, copies.direct_latency, "to the farthest rank")
    per_expert_links = equation(seconds, copies.direct_links, "over the middle cables", approximate=EVEN)
    per_expert_dcn = equation(seconds, copies.direct_dcn, "to other slices", approximate=EVEN)
    per_expert = equation(
        seconds, copies.direct, "one copy of a token for each of its experts", approximate=EVEN, source=CHOICE_BY_CHOICE
    )

    fewer = part(BlocksOnTorus, S=tokens * token_bytes * routed.ranks_reached)
    per_rank_latency = equation(seconds, fewer.direct_latency, "to the farthest rank")
    per_rank_links = equation(seconds, fewer.direct_links, "over the middle cables", approximate=EVEN)
    per_rank_dcn = equation(seconds, fewer.direct_dcn, "to other slices", approximate=EVEN)
    per_rank = equation(
        seconds,
        fewer.direct,
        "one copy of a token for each rank with experts of its",
        approximate=EVEN,
        source=CHOICE_BY_CHOICE,
    )


class BookOnTorus(Chapter):
    """The scaling book's max(): of latency and bandwidth, only the larger shows. Its forms know one slice."""

    slices = given(count, "slices that the group spans")
    latency = given(seconds, "latency of the book's form")
    bandwidth = given(seconds, "bandwidth term of the book's form")

    shown_latency = equation(seconds, select(latency > bandwidth, latency, 0), "where it is the larger")
    shown_bandwidth = equation(seconds, select(latency > bandwidth, 0, bandwidth), "where it is the larger")
    time = equation(
        seconds, select(slices > 1, infinite, shown_latency + shown_bandwidth), "the larger", valid="one slice"
    )
