"""All-to-all of any demand, and what a router of experts sends."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.equations.collectives.all_to_all import RoutedTokens
from costmodel.symbolic.write_math import compile_math
from tests.equations.collectives.drawn import bandwidths, evaluate, latencies
from tests.simulators import experts, jobs, switch
from tests.simulators.jobs import carry_out
from tests.simulators.network import crossbar

routed = compile_math(RoutedTokens.system)
demands = st.integers(1, 8).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 30), min_size=n, max_size=n), min_size=n, max_size=n)
)


@given(demands, latencies, bandwidths)
def test_any_demand_keeps_the_busiest_port_busy(demand, alpha, W):
    n = len(demand)
    schedule, sizes = switch.exchange_demand(demand)
    run = carry_out(crossbar(range(n), alpha, W), schedule, jobs.exchange(range(n), sizes))
    rows = [sum(row) - row[i] for i, row in enumerate(demand)]
    columns = [sum(column) - column[i] for i, column in enumerate(zip(*demand, strict=True))]
    for i in range(n):
        assert sum(size for block, size in sizes.items() if block[0] == i) == rows[i], "all of it is sent"
    inputs = {"sent": max(rows), "received": max(columns), "rounds": len(schedule), "alpha": alpha, "W": W}
    assert evaluate("skewed-exchange", inputs)["all_to_all"] == run


def routers():
    """Small enough to list every choice: nodes, ranks of a node, experts of a rank, experts of a token, node limit."""
    for nodes, ranks, on_rank in [(1, 1, 3), (1, 4, 2), (2, 2, 2), (3, 1, 3), (4, 2, 1), (2, 3, 1)]:
        for limit in range(1, nodes + 1):
            for chosen in range(1, min(4, limit * ranks * on_rank) + 1):
                yield nodes, ranks, on_rank, chosen, limit


@pytest.mark.parametrize(("nodes", "ranks", "on_rank", "chosen", "limit"), list(routers()))
def test_routed_tokens_are_counted_choice_by_choice(nodes, ranks, on_rank, chosen, limit):
    everything = nodes * ranks * on_rank
    tokens, width = 10, Fraction(7)

    def mean(count, size, **which):
        return count(experts.choices(everything, chosen, nodes, limit), size, **which)

    found = routed(
        tokens=Fraction(tokens),
        token_bytes=width,
        experts=Fraction(everything),
        chosen=Fraction(chosen),
        ranks=Fraction(nodes * ranks),
        nodes=Fraction(nodes),
        node_limit=Fraction(limit),
    )
    on_node = on_rank * ranks
    assert found["ranks_reached"] == mean(experts.distinct_places, on_rank)
    assert found["nodes_reached"] == mean(experts.distinct_places, on_node)
    # By symmetry it does not matter on which rank the token starts: the first stands for all.
    leaves = {
        "per_expert": mean(experts.copies, on_rank, besides=0),
        "per_expert_off_node": mean(experts.copies, on_node, besides=0),
        "per_rank": mean(experts.distinct_places, on_rank, besides=0),
        "per_node_off_node": mean(experts.distinct_places, on_node, besides=0),
    }
    for name, copies in leaves.items():
        assert found[name] == tokens * width * copies, name


def test_counts_of_a_well_known_router():
    """256 experts, 8 a token, on 8 nodes of 8 ranks: 7.68 ranks and 5.29 nodes; of at most 4 nodes, 3.63."""
    common = {"tokens": 1, "token_bytes": 1, "experts": 256, "chosen": 8, "ranks": 64, "nodes": 8}
    free, limited = (routed(**common, node_limit=limit) for limit in (8, 4))
    assert free["ranks_reached"] == pytest.approx(7.676, abs=1e-3)
    assert free["nodes_reached"] == pytest.approx(5.295, abs=1e-3)
    assert limited["nodes_reached"] == pytest.approx(3.63, abs=1e-2)


@settings(max_examples=20)
@given(st.integers(1, 9), st.integers(0, 9), latencies, bandwidths)
def test_tokens_go_out_and_come_back(n, copies, alpha, W):
    """Every rank sends as many copies to each other rank: one step of direct sends."""
    sizes = {(i, j, 0): Fraction(copies) for i in range(n) for j in range(n) if i != j}
    schedule = switch.at_once(switch.exchange_pairwise(n))
    run = carry_out(crossbar(range(n), alpha, W), schedule, jobs.exchange(range(n), sizes))
    leaves = copies * (n - 1)
    found = evaluate("expert-exchange", {"n": n, "alpha": alpha, "W": W, "sent": leaves, "returned": leaves})
    assert found["dispatch"] == found["combine"] == run
