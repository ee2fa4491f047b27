"""Several levels at once: switches that add and trees, fat trees, leaves, slices over a data-centre network."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.equations.collectives.drawn import bandwidths, cases, evaluate, latencies, payloads, same
from tests.simulators import jobs, levels, tree
from tests.simulators.jobs import Job, carry_out
from tests.simulators.levels import Cluster
from tests.simulators.network import Network, Transfer, backwards, lockstep, longest, streamed, together

SHAPES = [(1, 1), (1, 2), (2, 1), (3, 1), (2, 2), (4, 2), (3, 5), (2, 7), (4, 4)]


def computing_nodes(x):
    """Nodes of G ranks whose switches add and copy, and a network between them that adds and copies for each rail."""
    cluster = Cluster((x["G"], x["G"] * x["M"]), (x["W_in"], x["W_out"]), (x["alpha_in"], x["alpha_out"]))
    plain = cluster.network()

    def route(transfer):
        for end, way in ((transfer.target, "out"), (transfer.source, "in")):
            if isinstance(end, tuple):
                rank = transfer.source if way == "out" else transfer.target
                return [(way, "port" if end[0] == "node" else "card", rank)]
        return plain.route(transfer)

    return Network(plain.lines, route)


def shards(G, M, S, pieces):
    """An all-reduce of one shard a rail: block (rail, piece)."""
    ranks = range(G * M)
    sizes = {(rail, piece): S / G / pieces for rail in range(G) for piece in range(pieces)}
    first = {rank: {block: frozenset([rank]) for block in sizes} for rank in ranks}
    last = {rank: {block: frozenset(ranks) for block in sizes} for rank in ranks}
    return Job(sizes, first, last)


def add_in_nodes(G, M, pieces):
    """Each node's switch adds the shards and gives them to the ranks of their rails."""
    up = [
        Transfer(node * G + i, ("node", node, "add"), ((rail, piece),), True)
        for node in range(M)
        for i in range(G)
        for rail in range(G)
        for piece in range(pieces)
    ]
    down = [
        Transfer(("node", node, "add"), node * G + rail, ((rail, piece),))
        for node in range(M)
        for rail in range(G)
        for piece in range(pieces)
    ]
    return [up, down] if G > 1 else []


def copy_in_nodes(G, M, pieces):
    blocks = [(rail, piece) for rail in range(G) for piece in range(pieces)]
    up = [Transfer(node * G + b[0], ("node", node, "copy"), (b,)) for node in range(M) for b in blocks]
    down = [Transfer(("node", node, "copy"), node * G + i, tuple(blocks)) for node in range(M) for i in range(G)]
    return [up, down] if G > 1 else []


@pytest.mark.parametrize(("G", "M"), SHAPES)
@settings(max_examples=5)
@given(data=st.data())
def test_switches_in_nodes_and_trees_between_them(G, M, data):
    x = data.draw(cases("nvls-tree", G=G, M=M))
    trees = [
        [
            Transfer(t.source * G + rail, t.target * G + rail, tuple((rail, piece) for _, piece in t.blocks), t.combine)
            for t in step
            for rail in range(G)
        ]
        for step in tree.double_binary_tree(M, 1)
    ]
    schedule = add_in_nodes(G, M, 2) + trees + copy_in_nodes(G, M, 2)
    run = carry_out(computing_nodes(x), schedule, shards(G, M, x["S"], 2), streamed)
    assert same(evaluate("nvls-tree", x)["all_reduce"], run)


@pytest.mark.parametrize(("G", "M"), SHAPES)
@settings(max_examples=5)
@given(data=st.data())
def test_a_network_that_adds_between_nodes(G, M, data):
    """Rings inside the nodes, one after the other with sums on the way through the network for every rail."""
    x = data.draw(cases("sharp-over-nodes", G=G, M=M))
    network = computing_nodes(x)
    inside = [
        [Transfer(t.source, t.target, tuple((block[0] % G, 0) for block in t.blocks)) for t in step]
        for step in together(*(levels.gather_by_levels(range(node * G, (node + 1) * G), (G,)) for node in range(M)))
    ]
    sums = []
    if M > 1:
        up = [Transfer(rank, ("rail", rank % G), ((rank % G, 0),), True) for rank in range(G * M)]
        sums = [up, [Transfer(("rail", rank % G), rank, ((rank % G, 0),)) for rank in range(G * M)]]
    job = shards(G, M, x["S"], 1)
    memory = job.memory()
    run = Fraction(0)
    for schedule, clock in ((backwards(inside), lockstep), (sums, streamed), (inside, lockstep)):
        run += clock(network, schedule, job.sizes, memory)
    job.verify(memory)
    assert same(evaluate("sharp-over-nodes", x)["all_reduce"], run)


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), payloads, st.tuples(bandwidths, bandwidths, bandwidths))
def test_a_fat_tree_is_no_faster_than_its_slowest_level(ranks, nodes, units, S, W):
    """The form counts what a block receives from its siblings; what comes from farther away passes the same lines."""
    blocks = (ranks, ranks * nodes, ranks * nodes * units)
    shares = (W[0], W[1] / ranks, W[2] / (ranks * nodes))
    cluster = Cluster(blocks, shares, (Fraction(0),) * 3)
    job = jobs.all_gather(cluster.ranks, S)
    schedule = levels.gather_by_levels(cluster.ranks, (ranks, nodes, units))
    carry_out(cluster.network(), schedule, job)
    busiest = longest(cluster.network(), schedule, job.sizes)
    degrees = {"D_1": ranks, "D_2": nodes, "D_3": units}
    found = evaluate("fat-tree", {"S": S, "alpha": 0, **degrees, "W_1": W[0], "W_2": W[1], "W_3": W[2]})
    assert found["all_gather_bandwidth"] <= busiest
    if units == 1:
        assert found["all_gather_bandwidth"] == busiest
    assert found["all_reduce"] == found["all_gather"] + found["reduce_scatter"]


@settings(max_examples=30)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 8), st.data())
def test_blocks_straight_through_leaves(G, on_leaf, leaves, oversubscription, data):
    M, k = on_leaf * leaves, G * on_leaf
    x = data.draw(cases("nodes-exchange", G=G, M=M, k=k, o=oversubscription))
    shares = (x["W_in"], x["W_out"], x["W_out"] / oversubscription)
    cluster = Cluster((G, k, G * M), shares, (x["alpha_out"],) * 3)
    job = jobs.all_to_all(cluster.ranks, x["S"])
    run = carry_out(cluster.network(), levels.exchange_directly(cluster.ranks), job, streamed)
    assert same(evaluate("nodes-exchange", x)["all_to_all"], run)


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3), payloads, latencies, st.data())
def test_slices_over_a_data_centre_network(P, hosts, chips_per_host, S, alpha, data):
    """Slices taken as rings inside; the chips of a host share its network card, and each has its own link to the host."""
    C = hosts * chips_per_host
    inside, host, link = (data.draw(bandwidths) for _ in range(3))
    share = min(host / chips_per_host, link)
    cluster = Cluster((C, C * P), (inside, share), (alpha / 2, alpha), cards=hosts)
    schedule = levels.gather_by_levels(cluster.ranks, (C, P))
    gathered = carry_out(cluster.network(), schedule, jobs.all_gather(cluster.ranks, S))
    back = backwards(schedule)
    reduced = carry_out(cluster.network(), back + schedule, jobs.all_reduce(cluster.ranks, S))
    inputs = {
        "P": P,
        "C": C,
        "S": S,
        "inside_latency": (C - 1) * alpha / 2,
        "inside_bandwidth": (C - 1) * S / (C * inside),
        "alpha": alpha,
        "host_bandwidth": host,
        "chips_per_host": chips_per_host,
        "host_link": link,
    }
    found = evaluate("multi-slice", inputs)
    assert found["all_gather"] == found["reduce_scatter"] == gathered
    assert found["all_reduce"] == reduced
