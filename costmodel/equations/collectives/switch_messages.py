"""How messages, operations with a root, the barrier, and tokens sent to experts run on the levels of a switched machine."""

from costmodel.equations.collectives.all_to_all import RoutedTokens
from costmodel.equations.collectives.point_to_point import Dissemination
from costmodel.equations.collectives.sources import CHOICE_BY_CHOICE, HENSGEN, SMALL_CHUNKS, THAKUR
from costmodel.equations.collectives.sources import ON_LEVELS as COUNTED
from costmodel.equations.collectives.switch_levels import NCCL_RING, SLOWER, SwitchLevels
from costmodel.equations.collectives.tree import Binomial, PipelinedChain, ScatterAllGather
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


class SendOnSwitches(Chapter):
    """Every rank sends to the next of its group at once, as pipeline stages do: the slowest of the links decides."""

    at = part(SwitchLevels, shared=True)
    n, m, u, S = at.n, at.m, at.u, at.S
    link = given(bytes_per_second, "what a port (of a mesh: a link) attains")

    direct_latency = equation(seconds, at.launch_latency + at.slowest_latency, "one step")
    direct_ports = equation(seconds, select(n > m, 0, S / link), "to a rank of the same domain")
    direct_nics = equation(seconds, select(n > m, S / at.nic, 0), "to a rank of another domain")
    direct_uplinks = equation(
        seconds, select(n > u, S / (u * at.uplink), 0), "to a rank of another unit, one of each u", source=COUNTED
    )
    direct = equation(
        seconds,
        direct_latency + largest(direct_ports, direct_nics, direct_uplinks),
        "one message a rank",
        source=COUNTED,
    )


class MessageOnSwitches(Chapter):
    """Broadcast; reduce is the same run backwards."""

    at = part(SwitchLevels, shared=True)
    n, m, u, S = at.n, at.m, at.u, at.S
    around = given(seconds, "launch and once round in rank order, less one step")
    nvls_share = given(count, "attainable share of a port when the domain's switches add; 0 where they cannot")
    nvls_port = given(bytes_per_second, "what a port attains when the domain's switches add")

    ring_latency = equation(seconds, around, "down the chain of all ranks")
    ring_ports = equation(seconds, S / at.port, "the whole message, in m channels", source=COUNTED)
    ring_nics = equation(seconds, select(n > m, S / (m * at.nic), 0), "a channel for each NIC", source=COUNTED)
    ring_uplinks = equation(seconds, select(n > u, S / (u * at.uplink), 0), "one way into a unit", source=COUNTED)
    ring = equation(
        seconds,
        ring_latency + largest(ring_ports, ring_nics, ring_uplinks),
        "streamed down a chain in rank order, m channels",
        approximate=SMALL_CHUNKS,
        source=NCCL_RING,
    )

    flat_chain = part(PipelinedChain, alpha=at.slowest_latency, W=at.slowest_bandwidth)
    chain_latency = equation(
        seconds, at.launch_latency + flat_chain.broadcast_latency, "n - 1 steps", approximate=SLOWER
    )
    chain_slowest = equation(seconds, flat_chain.broadcast_bandwidth, "chunk after chunk", approximate=SLOWER)
    chain = equation(
        seconds,
        chain_latency + chain_slowest,
        "down a chain in the best number of chunks",
        approximate=SLOWER,
        source=COUNTED,
    )

    flat_tree = part(Binomial, alpha=at.slowest_latency, W=at.slowest_bandwidth)
    binomial_latency = equation(
        seconds, at.launch_latency + flat_tree.broadcast_latency, "log2 n steps", approximate=SLOWER
    )
    binomial_slowest = equation(seconds, flat_tree.broadcast_bandwidth, "the whole message in each", approximate=SLOWER)
    binomial = equation(
        seconds, binomial_latency + binomial_slowest, "a binomial tree", approximate=SLOWER, source=THAKUR
    )

    two_phases = part(ScatterAllGather, alpha=at.slowest_latency, W=at.slowest_bandwidth)
    scatter_all_gather_latency = equation(
        seconds, at.launch_latency + two_phases.broadcast_latency, "log2 n steps, then n - 1", approximate=SLOWER
    )
    scatter_all_gather_slowest = equation(
        seconds, two_phases.broadcast_bandwidth, "every byte twice", approximate=SLOWER
    )
    scatter_all_gather = equation(
        seconds,
        scatter_all_gather_latency + scatter_all_gather_slowest,
        "scatter, then ring all-gather",
        approximate=SLOWER,
        source=THAKUR,
    )

    nvls_latency = equation(seconds, at.launch_latency + at.domain_latency, "one phase")
    nvls_ports = equation(seconds, S / nvls_port, "copied, or added, by the switches", source=COUNTED)
    nvls = equation(
        seconds,
        select(both(nvls_share > 0, n <= m), nvls_latency + nvls_ports, infinite),
        "one multicast, or one addition, in the domain's switches",
        valid="one domain",
        source=COUNTED,
    )


class RootOnSwitches(Chapter):
    """Gather; scatter is the same run backwards."""

    at = part(SwitchLevels, shared=True)
    n, m, S = at.n, at.m, at.S

    direct_latency = equation(seconds, at.launch_latency + at.slowest_latency, "all sends posted at once")
    direct_ports = equation(seconds, (m - 1) * S / (n * at.port), "shards of the root's domain", source=COUNTED)
    direct_nics = equation(
        seconds, (n - m) * S / (n * at.nic), "other shards, over the root's share of the NICs", source=COUNTED
    )
    direct = equation(
        seconds,
        direct_latency + largest(direct_ports, direct_nics),
        "every shard straight to or from the root",
        source=COUNTED,
    )

    flat_tree = part(Binomial, alpha=at.slowest_latency, W=at.slowest_bandwidth)
    binomial_latency = equation(
        seconds, at.launch_latency + flat_tree.gather_latency, "log2 n steps", approximate=SLOWER
    )
    binomial_slowest = equation(seconds, flat_tree.gather_bandwidth, "all other shards", approximate=SLOWER)
    binomial = equation(
        seconds, binomial_latency + binomial_slowest, "a binomial tree", approximate=SLOWER, source=THAKUR
    )


class WaitOnSwitches(Chapter):
    """Barrier."""

    at = part(SwitchLevels, shared=True)
    n, m = at.n, at.m

    flat = part(Dissemination, alpha=at.slowest_latency)
    dissemination_latency = equation(
        seconds, at.launch_latency + flat.barrier_latency, "log2 n steps", approximate=SLOWER
    )
    dissemination = equation(
        seconds, dissemination_latency, "signals to ranks 1, 2, 4, ... further on", approximate=SLOWER, source=HENSGEN
    )

    inside = part(Dissemination, n=m, alpha=at.domain_latency)
    across = part(Dissemination, n=n / m, alpha=at.rail_latency)
    hierarchical_latency = equation(
        seconds,
        at.launch_latency + inside.barrier_latency + across.barrier_latency,
        "log2 m steps inside the domain, log2 n/m along the rail",
    )
    hierarchical = equation(
        seconds, hierarchical_latency, "first inside the domain, then along the rail", source=HENSGEN
    )


class TokensOnSwitches(Chapter):
    """Dispatch of tokens to experts on the n ranks; combine is the same run backwards."""

    at = part(SwitchLevels, shared=True)
    n, m, u = at.n, at.m, at.u
    token_bytes = given(bytes_, "one token on the wire")
    routed = part(RoutedTokens, ranks=n, nodes=n / m)
    beyond = equation(
        count, select(n > u, (n - u) / largest(n - m, 1), 0), "share of what leaves a domain that leaves the unit too"
    )
    start = equation(seconds, at.launch_latency + at.slowest_latency, "all sends posted at once")

    per_expert_latency = equation(seconds, start, "one step")
    per_expert_ports = equation(
        seconds, (routed.per_expert - routed.per_expert_off_node) / at.port, "to experts in the domain", source=COUNTED
    )
    per_expert_nics = equation(seconds, routed.per_expert_off_node / at.nic, "to experts outside", source=COUNTED)
    per_expert_uplinks = equation(seconds, beyond * routed.per_expert_off_node / at.uplink, "to experts of other units")
    per_expert = equation(
        seconds,
        per_expert_latency + largest(per_expert_ports, per_expert_nics, per_expert_uplinks),
        "one copy of a token for each of its experts",
        source=CHOICE_BY_CHOICE,
    )

    per_rank_latency = equation(seconds, start, "one step")
    per_rank_ports = equation(
        seconds, (routed.per_rank - routed.per_rank_off_node) / at.port, "to ranks of the domain", source=COUNTED
    )
    per_rank_nics = equation(seconds, routed.per_rank_off_node / at.nic, "to ranks outside", source=COUNTED)
    per_rank_uplinks = equation(seconds, beyond * routed.per_rank_off_node / at.uplink, "to ranks of other units")
    per_rank = equation(
        seconds,
        per_rank_latency + largest(per_rank_ports, per_rank_nics, per_rank_uplinks),
        "one copy of a token for each rank with experts of its",
        source=CHOICE_BY_CHOICE,
    )

    per_node_latency = equation(seconds, start + select(n > m, at.domain_latency, 0), "one step out, one inside")
    per_node_ports = equation(
        seconds, routed.per_node_fan_out / at.port, "passed on inside the domains", source=COUNTED
    )
    per_node_nics = equation(seconds, routed.per_node_off_node / at.nic, "to domains outside", source=COUNTED)
    per_node_uplinks = equation(seconds, beyond * routed.per_node_off_node / at.uplink, "to domains of other units")
    per_node = equation(
        seconds,
        per_node_latency + largest(per_node_ports, per_node_nics, per_node_uplinks),
        "one copy of a token for each domain, passed on there",
        source="DeepSeek-V3 technical report 2024, section 3.2.2",
    )
