"""Groups on nodes and units: seconds on ports, network cards and uplinks when all groups of an axis run at once."""

from fractions import Fraction
from itertools import pairwise, product

import pytest

from costmodel.generated import group_on_switches_math
from tests.simulators import jobs, levels
from tests.simulators.jobs import carry_out
from tests.simulators.levels import Cluster
from tests.simulators.network import Transfer, backwards, loads, streamed, together

RESOURCES = ("ports", "nics", "uplinks")
S = Fraction(720)
PORT, NIC, OVERSUBSCRIPTION = Fraction(9), Fraction(2), Fraction(3)
LATENCIES = (Fraction(1), Fraction(5), Fraction(8))
LAUNCH = Fraction(100)
SHAPES = [
    (1, 1, 1),
    (2, 1, 1),
    (5, 1, 1),
    (1, 2, 1),
    (1, 3, 1),
    (1, 1, 4),
    (2, 2, 1),
    (4, 3, 1),
    (3, 1, 2),
    (1, 2, 3),
    (2, 2, 2),
    (3, 2, 2),
    (2, 3, 4),
    (4, 2, 2),
]
"""Ranks of the group in a node, such nodes in a unit, such units: one, two, odd numbers and others on each level."""
CASES = list(product(SHAPES, (1, 3)))


def form(shape):
    m, u, n = shape[0], shape[0] * shape[1], shape[0] * shape[1] * shape[2]
    return group_on_switches_math.times(
        n=Fraction(n),
        m=Fraction(m),
        u=Fraction(u),
        S=S,
        launch_latency=LAUNCH,
        domain_kind=0,
        domain_bandwidth=PORT,
        domain_share=Fraction(1),
        domain_latency=LATENCIES[0],
        nics_per_host=1,
        chips_per_host=1,
        nic_bandwidth=NIC,
        nic_share=Fraction(1),
        nic_latency=LATENCIES[1],
        unit_oversubscription=OVERSUBSCRIPTION,
        unit_link_latency=LATENCIES[2],
        unit_levels_below=0,
        switch_latency=0,
        nvls_share=Fraction(0),
        tokens=Fraction(1),
        dispatch_bytes=Fraction(1),
        combine_bytes=Fraction(1),
        experts=Fraction(n),
        chosen=Fraction(1),
        node_limit=Fraction(n, m),
    )


def machine(shape, stride):
    blocks = (shape[0] * stride, shape[0] * shape[1] * stride, shape[0] * shape[1] * shape[2] * stride)
    return Cluster(blocks, (PORT, NIC, NIC / OVERSUBSCRIPTION), LATENCIES)


def groups(cluster, stride):
    return [cluster.ranks[start::stride] for start in range(stride)]


def seconds(cluster, schedule, sizes):
    """On the busiest port, card and uplink."""
    network = cluster.network()
    found = {"ports": Fraction(0), "nics": Fraction(0), "uplinks": Fraction(0)}
    for name, amount in loads(network, schedule, sizes).items():
        kind = {"port": "ports", "card": "nics"}.get(name[1], "uplinks")
        found[kind] = max(found[kind], amount / network.lines[name].bandwidth)
    return found


def hold(found, name, cluster, schedule, job):
    """Check that the schedule does its job, and that the form gives its latency and its load on each resource."""
    weightless = jobs.Job(dict.fromkeys(job.sizes, Fraction(0)), job.first, job.last)
    assert found[f"{name}_latency"] - LAUNCH == carry_out(cluster.network(), schedule, weightless, streamed)
    assert {kind: found[f"{name}_{kind}"] for kind in RESOURCES} == seconds(cluster, schedule, job.sizes)


def gather_job(cluster, stride, pieces=jobs.WHOLE):
    return jobs.side_by_side(jobs.all_gather(group, S, pieces) for group in groups(cluster, stride))


@pytest.mark.parametrize(("shape", "stride"), CASES)
def test_flat_rings(shape, stride):
    cluster = machine(shape, stride)
    schedule = together(*(levels.gather_in_channels(group, shape[0]) for group in groups(cluster, stride)))
    hold(form(shape), "all_gather_ring", cluster, schedule, gather_job(cluster, stride, jobs.even(shape[0])))


@pytest.mark.parametrize(("shape", "stride"), CASES)
def test_rings_along_rails_and_inside(shape, stride):
    cluster = machine(shape, stride)
    factors = (shape[0], shape[1] * shape[2])
    schedule = together(*(levels.gather_by_levels(group, factors) for group in groups(cluster, stride)))
    found = form(shape)
    hold(found, "all_gather_hierarchical", cluster, schedule, gather_job(cluster, stride))
    both = jobs.side_by_side(jobs.all_reduce(group, S) for group in groups(cluster, stride))
    hold(found, "all_reduce_hierarchical", cluster, backwards(schedule) + schedule, both)


@pytest.mark.parametrize(("shape", "stride"), CASES)
def test_all_to_all(shape, stride):
    cluster = machine(shape, stride)
    found, job = form(shape), jobs.side_by_side(jobs.all_to_all(group, S) for group in groups(cluster, stride))
    directly = together(*(levels.exchange_directly(group) for group in groups(cluster, stride)))
    on_rails = together(*(levels.exchange_on_rails(group, cluster.blocks[0]) for group in groups(cluster, stride)))
    if len(groups(cluster, stride)[0]) > 1:
        hold(found, "all_to_all_direct", cluster, directly, job)
        hold(found, "all_to_all_relayed", cluster, on_rails, job)
    rounds = together(*(levels.exchange_in_rounds(group, shape) for group in groups(cluster, stride)))
    assert found["all_to_all_pairwise"] - LAUNCH == carry_out(cluster.network(), rounds, job)


@pytest.mark.parametrize(("shape", "stride"), CASES)
def test_messages_to_the_next_rank(shape, stride):
    """The form tells of the slowest links only; what else is sent inside domains takes no longer."""
    cluster, found = machine(shape, stride), form(shape)
    pairs = [pair for group in groups(cluster, stride) for pair in pairwise(group)]
    schedule = [[Transfer(a, b, ((a, b, 0),)) for a, b in pairs]]
    if pairs:
        loaded = seconds(cluster, schedule, {(a, b, 0): S for a, b in pairs})
        assert loaded["nics"] == found["send_recv_direct_nics"]
        assert loaded["uplinks"] == found["send_recv_direct_uplinks"]
        slowest = max(found[f"send_recv_direct_{kind}"] for kind in RESOURCES)
        assert max(loaded.values()) == slowest
        farthest = max(LATENCIES[cluster.climb(a, b)] for a, b in pairs)
        assert found["send_recv_direct"] == LAUNCH + farthest + slowest


@pytest.mark.parametrize("shape", [(1, 2, 1), (2, 4, 1), (1, 2, 2), (3, 2, 4), (2, 1, 4)])
def test_doubling_along_rails(shape):
    """Powers of two: far partners first, when there is least to send, then rings inside."""
    cluster, found = machine(shape, 1), form(shape)
    m, rails = shape[0], shape[1] * shape[2]
    schedule = levels.gather_along_rails_by_doubling(cluster.ranks, m) + together(
        *(
            levels.ring_gather(
                cluster.ranks[node * m : (node + 1) * m],
                {rank: tuple(range(rank % m, rails * m, m)) for rank in cluster.ranks},
            )
            for node in range(rails)
        )
    )
    job = gather_job(cluster, 1)
    carry_out(cluster.network(), schedule, job)
    assert {kind: found[f"all_gather_hierarchical_log_{kind}"] for kind in RESOURCES} == seconds(
        cluster, schedule, job.sizes
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_a_message_in_channels(shape):
    """A broadcast down a chain in rank order, a channel for each rank of a node."""
    cluster, found = machine(shape, 1), form(shape)
    m = shape[0]
    if len(cluster.ranks) == 1:
        return
    schedule = levels.chains_in_channels(cluster.ranks, m)
    job = jobs.broadcast(cluster.ranks, S, jobs.even(m))
    carry_out(cluster.network(), schedule, job)
    loaded = seconds(cluster, schedule, job.sizes)
    assert loaded["nics"] == found["broadcast_ring_nics"]
    assert loaded["uplinks"] == found["broadcast_ring_uplinks"]
    assert loaded["ports"] <= found["broadcast_ring_ports"]


@pytest.mark.parametrize("shape", SHAPES)
def test_shards_straight_to_the_root(shape):
    cluster, found = machine(shape, 1), form(shape)
    schedule = [[Transfer(rank, 0, ((rank, 0),)) for rank in cluster.ranks[1:]]]
    job = jobs.gather(cluster.ranks, S)
    carry_out(cluster.network(), schedule, job)
    loaded = seconds(cluster, schedule, job.sizes)
    assert loaded["ports"] == found["gather_direct_ports"]
    assert loaded["nics"] == found["gather_direct_nics"]
