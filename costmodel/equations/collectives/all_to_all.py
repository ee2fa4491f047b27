"""All-to-all on a non-blocking switch: even, skewed, and by the choices of a router of experts."""

from costmodel.equations.collectives.sources import BRUCK, CHOICE_BY_CHOICE
from costmodel.equations.collectives.sources import PORT_BY_PORT as COUNTED
from costmodel.symbolic import (
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_log2,
    count,
    equation,
    given,
    largest,
    none_drawn,
    ones_below,
    seconds,
    select,
)

THAKUR = "Thakur, Rabenseifner, Gropp 2005, Optimization of Collective Communication Operations in MPICH, section 4.2"
EVEN = "every set of experts is taken to be chosen equally often"


class PairwiseExchange(Chapter):
    """Rounds in which everybody exchanges one block with one partner. Exact for every n."""

    n = given(count, "ranks in the group")
    S = given(bytes_, "one rank's send buffer, the block for itself included")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    all_to_all_latency = equation(seconds, (n - 1) * alpha, "n - 1 rounds", source=THAKUR)
    all_to_all_bandwidth = equation(seconds, (n - 1) * S / (n * W), "one block a round", source=THAKUR)
    all_to_all = equation(
        seconds, all_to_all_latency + all_to_all_bandwidth, "one partner after the other", source=THAKUR
    )


class DirectExchange(Chapter):
    """All sends posted at once: one step. Exact for every n."""

    n = given(count, "ranks in the group")
    S = given(bytes_, "one rank's send buffer, the block for itself included")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    all_to_all_latency = equation(seconds, select(n > 1, alpha, 0), "one step", source=COUNTED)
    all_to_all_bandwidth = equation(seconds, (n - 1) * S / (n * W), "all blocks but the own", source=COUNTED)
    all_to_all = equation(seconds, all_to_all_latency + all_to_all_bandwidth, "everybody to everybody", source=COUNTED)


class BruckExchange(Chapter):
    """Blocks travel the binary digits of their distance, sharing messages on the way: the fewest steps, for small blocks.

    Exact for every n. S log2(n)/2, as usually printed, holds at powers of two; rounding its logarithm up elsewhere is up to
    1.5 times too slow.
    """

    n = given(count, "ranks in the group")
    S = given(bytes_, "one rank's send buffer, the block for itself included")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    all_to_all_latency = equation(seconds, ceil_log2(n) * alpha, "log2 n steps, rounded up", source=BRUCK)
    all_to_all_bandwidth = equation(
        seconds, ones_below(n) * S / (n * W), "each block once for each one in its distance", source=BRUCK
    )
    all_to_all = equation(
        seconds, all_to_all_latency + all_to_all_bandwidth, "by the digits of the distance", source=BRUCK
    )


class SkewedExchange(Chapter):
    """All-to-all of any demand, in rounds of one partner each: the busiest port decides.

    Rounds exist that keep it busy all the time (Birkhoff). Blocks for oneself are left out of both sums.
    """

    sent = given(bytes_, "the most that one rank sends to others: the largest sum of a row")
    received = given(bytes_, "the most that one rank receives: the largest sum of a column")
    rounds = given(count, "rounds")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")

    all_to_all_latency = equation(seconds, rounds * alpha, "every round", source=COUNTED)
    all_to_all_bandwidth = equation(seconds, largest(sent, received) / W, "the busiest port", source=COUNTED)
    all_to_all = equation(
        seconds, all_to_all_latency + all_to_all_bandwidth, "the busiest port is never idle", source=COUNTED
    )


class RoutedTokens(Chapter):
    """What a router of experts makes a rank send: each token to `chosen` of the experts, which lie evenly on ranks and nodes.

    A token may be confined to the experts of `node_limit` nodes, first drawn; without a limit that is the number of nodes.
    Sending one copy to each rank, or to each node, saves what several experts in one place would need.
    """

    tokens = given(count, "tokens of a rank")
    token_bytes = given(bytes_, "one token: hidden size times bytes of an element, with its scales")
    experts = given(count, "routed experts")
    chosen = given(count, "experts of a token (top-k)")
    ranks = given(count, "ranks that the experts lie on")
    nodes = given(count, "nodes that the ranks lie on")
    node_limit = given(count, "nodes that one token may go to; the number of nodes when there is no limit")

    pool = equation(count, experts * node_limit / nodes, "experts among which a token's are drawn")
    nodes_reached = equation(
        count,
        node_limit * (1 - none_drawn(pool, experts / nodes, chosen)),
        "different nodes of a token",
        source=CHOICE_BY_CHOICE,
        approximate=EVEN,
    )
    ranks_reached = equation(
        count,
        node_limit * ranks / nodes * (1 - none_drawn(pool, experts / ranks, chosen)),
        "different ranks of a token",
        source=CHOICE_BY_CHOICE,
        approximate=EVEN,
    )

    per_expert = equation(
        bytes_,
        tokens * token_bytes * chosen * (ranks - 1) / ranks,
        "leaves a rank with one copy for each expert",
        approximate=EVEN,
    )
    per_expert_off_node = equation(
        bytes_,
        tokens * token_bytes * chosen * (nodes - 1) / nodes,
        "leaves its node, one copy for each expert",
        approximate=EVEN,
    )
    per_rank = equation(
        bytes_,
        tokens * token_bytes * ranks_reached * (ranks - 1) / ranks,
        "leaves a rank, one copy for each rank",
        approximate=EVEN,
    )
    per_rank_off_node = equation(
        bytes_,
        tokens * token_bytes * ranks_reached * (nodes - 1) / nodes,
        "leaves its node, one copy for each rank",
        approximate=EVEN,
    )
    per_node_off_node = equation(
        bytes_,
        tokens * token_bytes * nodes_reached * (nodes - 1) / nodes,
        "leaves its node, one copy for each node",
        approximate=EVEN,
    )
    per_node_fan_out = equation(
        bytes_,
        tokens * token_bytes * ranks_reached * (ranks - nodes) / ranks,
        "is passed on inside the nodes from the ranks where the copies arrive",
        approximate=EVEN,
    )


class ExpertExchange(Chapter):
    """Dispatch of tokens to their experts and the way back (combine), by one step of direct sends, on one switch."""

    n = given(count, "ranks in the group")
    alpha = given(seconds, "latency of one step")
    W = given(bytes_per_second, "one port, one way")
    sent = given(bytes_, "what leaves a rank when tokens go out")
    returned = given(bytes_, "what comes back to it")

    dispatch_latency = equation(seconds, select(n > 1, alpha, 0), "one step", source=COUNTED)
    dispatch_bandwidth = equation(seconds, sent / W, "tokens out", source=COUNTED)
    dispatch = equation(seconds, dispatch_latency + dispatch_bandwidth, "tokens to their experts", source=COUNTED)

    combine_latency = equation(seconds, select(n > 1, alpha, 0), "one step", source=COUNTED)
    combine_bandwidth = equation(seconds, returned / W, "results back", source=COUNTED)
    combine = equation(seconds, combine_latency + combine_bandwidth, "results to their tokens", source=COUNTED)
