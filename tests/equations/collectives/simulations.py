"""How the algorithms of the registry are simulated: (algorithm, operation) -> seconds, from moving real blocks.

A simulation takes the inputs of the closed form by name and gives its time exactly. What needs more than one number for
its shape (tori, routers, demands), and forms that bracket a simulation, are tested in files of their own: see `ELSEWHERE`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace

from tests.simulators import jobs, levels, line, ring, switch, tree
from tests.simulators.jobs import HALVES, WHOLE, Job, carry_out
from tests.simulators.levels import Cluster
from tests.simulators.network import (
    Network,
    Schedule,
    Transfer,
    backwards,
    crossbar,
    free_running,
    lockstep,
    outwards,
    streamed,
    towards,
)

Inputs = SimpleNamespace
Simulation = Callable[[Inputs], Fraction]
Table = dict[tuple[str, str], Simulation]


def ring_of(x: Inputs) -> Network:
    return ring.ring(x.n, x.alpha, x.W)


def path_of(x: Inputs) -> Network:
    return ring.path(x.n, x.alpha, x.W)


def ports_of(x: Inputs) -> Network:
    return crossbar(range(x.n), x.alpha, x.W)


def computing_switch_of(x: Inputs) -> Network:
    return switch.computing_switch(x.n, x.alpha, x.W)


def nodes_of(x: Inputs) -> Network:
    return cluster(x).network()


def cluster(x: Inputs) -> Cluster:
    return Cluster((x.G, x.G * x.M), (x.W_in, x.W_out), (getattr(x, "alpha_in", Fraction(0)), x.alpha_out))


def one(
    job: Callable[..., Job], pieces: Callable[[Inputs], tuple[Fraction, ...]] = lambda _: WHOLE
) -> Callable[[Inputs], Job]:
    """A job for all ranks on the whole payload."""
    return lambda x: job(range(x.n if hasattr(x, "n") else x.G * x.M), x.S, pieces(x))


def run(links, schedule, job, clock=lockstep, **how) -> Simulation:
    return lambda x: carry_out(links(x), schedule(x), job(x), clock, **how)


def gathering(name, links, schedule, pieces=lambda _: WHOLE, clock=lockstep) -> Table:
    """An all-gather, and what follows from running it backwards and twice."""

    def reduction(x: Inputs) -> Schedule:
        return backwards(schedule(x))

    return {
        (name, "all_gather"): run(links, schedule, one(jobs.all_gather, pieces), clock),
        (name, "reduce_scatter"): run(links, reduction, one(jobs.reduce_scatter, pieces), clock),
        (name, "all_reduce"): run(links, lambda x: reduction(x) + schedule(x), one(jobs.all_reduce, pieces), clock),
    }


def at_root(name, links, schedule, pieces=lambda _: WHOLE) -> Table:
    """The gather and scatter that an all-gather holds."""
    return {
        (name, "gather"): run(links, lambda x: towards(schedule(x), 0), one(jobs.gather, pieces)),
        (name, "scatter"): run(links, lambda x: outwards(towards(schedule(x), 0)), one(jobs.scatter, pieces)),
    }


def from_root(name, links, schedule, pieces=lambda _: WHOLE, clock=lockstep, **how) -> Table:
    """A broadcast, and the reduction that it is when run backwards."""
    return {
        (name, "broadcast"): run(links, schedule, one(jobs.broadcast, pieces), clock, **how),
        (name, "reduce"): run(links, lambda x: backwards(schedule(x)), one(jobs.reduction, pieces), clock, **how),
    }


def halves(_: Inputs) -> tuple[Fraction, ...]:
    return HALVES


def chunks(x: Inputs) -> tuple[Fraction, ...]:
    return jobs.even(x.k)


def of_n(schedule: Callable[[int], Schedule]) -> Callable[[Inputs], Schedule]:
    return lambda x: schedule(x.n)


def direct_gather(x: Inputs) -> Schedule:
    """Everybody sends its shard to everybody."""
    return switch.at_once([[Transfer(i, (i + k) % x.n, ((i, 0),)) for i in range(x.n)] for k in range(1, x.n)])


def nvls(*, own_crosses: bool) -> tuple[Callable[[Inputs], Schedule], Callable[[Inputs], Schedule]]:
    return (
        lambda x: switch.sum_in_switch(x.n, own_crosses=own_crosses),
        lambda x: switch.copy_in_switch(x.n, own_crosses=own_crosses),
    )


def in_switch(name: str, *, own_crosses: bool) -> Table:
    """A switch that computes; a port sends and receives at once, and the phases overlap."""
    add, copy = nvls(own_crosses=own_crosses)
    return {
        (name, "reduce_scatter"): run(computing_switch_of, add, one(jobs.reduce_scatter), streamed),
        (name, "all_gather"): run(computing_switch_of, copy, one(jobs.all_gather), streamed),
        (name, "all_reduce"): run(computing_switch_of, lambda x: add(x) + copy(x), one(jobs.all_reduce), streamed),
    }


def in_turn(links, phases, job) -> Simulation:
    """Phases (schedule, clock) one after the other."""

    def simulate(x: Inputs) -> Fraction:
        network, task = links(x), job(x)
        memory = task.memory()
        seconds = sum((clock(network, schedule(x), task.sizes, memory) for schedule, clock in phases), Fraction(0))
        task.verify(memory)
        return seconds

    return simulate


def by_levels(x: Inputs) -> Schedule:
    return levels.gather_by_levels(range(x.G * x.M), (x.G, x.M))


def in_channels(x: Inputs) -> Schedule:
    return levels.gather_in_channels(range(x.G * x.M), x.G)


def scatter_then_gather(x: Inputs) -> Schedule:
    return tree.scatter(x.n) + ring.gather_one_way(x.n)


def in_shards(job: Callable[..., Job]) -> Callable[[Inputs], Job]:
    """A message of the first rank cut into one block a rank, called as an all-gather calls them."""

    def make(x: Inputs) -> Job:
        plain = job(range(x.n), x.S, jobs.even(x.n))

        def renamed(held: dict) -> dict:
            return {(piece, 0): value for (_, piece), value in held.items()}

        first, last = ({rank: renamed(held) for rank, held in side.items()} for side in (plain.first, plain.last))
        return Job(renamed(plain.sizes), first, last)

    return make


def barrier(links, schedule) -> Simulation:
    def simulate(x: Inputs) -> Fraction:
        everybody = jobs.all_gather(range(x.n), Fraction(0))
        return carry_out(links(SimpleNamespace(n=x.n, alpha=x.alpha, W=Fraction(1))), schedule(x), everybody)

    return simulate


SIMULATIONS: Table = {
    **gathering("ring", ring_of, of_n(ring.gather_one_way)),
    **at_root("ring", ring_of, of_n(ring.gather_one_way)),
    ("ring", "all_to_all"): run(ring_of, of_n(ring.exchange_one_way), one(jobs.all_to_all)),
    ("ring", "barrier"): lambda x: carry_out(
        ring_of(x), ring.token_twice_round(x.n), jobs.reduction_to_all(range(x.n), Fraction(0))
    ),
    **gathering("two-way-ring", ring_of, of_n(ring.gather_whole_shards), halves),
    **at_root("two-way-ring", ring_of, of_n(ring.gather_whole_shards), halves),
    ("two-way-ring", "all_to_all"): run(ring_of, of_n(ring.exchange_shortest_way), one(jobs.all_to_all, halves)),
    **gathering("two-way-ring-by-halves", ring_of, of_n(ring.gather_by_halves), halves),
    **gathering("path", path_of, of_n(ring.gather_on_path)),
    **at_root("path", path_of, of_n(ring.gather_on_path)),
    ("chunked-path", "all_reduce"): run(
        path_of, lambda x: ring.reduce_along_path_and_return(x.n, x.k), one(jobs.reduction_to_all, chunks)
    ),
    **gathering("recursive-doubling", ports_of, of_n(switch.gather_by_doubling)),
    ("recursive-doubling", "all_reduce"): run(
        ports_of, of_n(switch.all_reduce_by_doubling), one(jobs.reduction_to_all)
    ),
    ("rabenseifner", "all_reduce"): run(
        ports_of,
        of_n(switch.all_reduce_rabenseifner),
        one(jobs.reduction_to_all, lambda x: jobs.even(switch.largest_power(x.n))),
    ),
    **gathering("bruck", ports_of, of_n(switch.gather_bruck)),
    **gathering("direct", ports_of, direct_gather),
    ("one-shot", "all_reduce"): run(ports_of, of_n(switch.reduce_and_copy_in_one_shot), one(jobs.reduction_to_all)),
    ("two-shot", "all_reduce"): run(ports_of, of_n(switch.reduce_and_copy_in_two_shots), one(jobs.all_reduce)),
    **from_root("binomial", ports_of, of_n(tree.broadcast)),
    ("binomial", "gather"): run(ports_of, of_n(tree.gather), one(jobs.gather)),
    ("binomial", "scatter"): run(ports_of, of_n(tree.scatter), one(jobs.scatter)),
    ("scatter-all-gather", "broadcast"): run(ports_of, scatter_then_gather, in_shards(jobs.broadcast)),
    ("scatter-all-gather", "reduce"): run(
        ports_of, lambda x: backwards(ring.gather_one_way(x.n)) + tree.gather(x.n), in_shards(jobs.reduction)
    ),
    **from_root("chain", path_of, lambda x: ring.chain(x.n, x.k), chunks),
    **from_root("streamed-chain", path_of, lambda x: ring.chain(x.n, x.k), chunks, free_running, pipelined=True),
    ("double-binary-tree", "all_reduce"): run(
        ports_of, lambda x: tree.double_binary_tree(x.n, 1), one(jobs.reduction_to_all, halves), streamed
    ),
    ("pairwise-exchange", "all_to_all"): run(ports_of, of_n(switch.exchange_pairwise), one(jobs.all_to_all)),
    ("direct-exchange", "all_to_all"): run(
        ports_of, lambda x: switch.at_once(switch.exchange_pairwise(x.n)), one(jobs.all_to_all)
    ),
    ("bruck-exchange", "all_to_all"): run(ports_of, of_n(switch.exchange_bruck), one(jobs.all_to_all)),
    **in_switch("nvls", own_crosses=True),
    **in_switch("nvls-without-own-traffic", own_crosses=False),
    ("nvls-in-turn", "all_reduce"): in_turn(
        computing_switch_of, [(phase, streamed) for phase in nvls(own_crosses=True)], one(jobs.all_reduce)
    ),
    ("sharp", "all_reduce"): run(
        computing_switch_of, of_n(switch.sum_and_copy_in_network), one(jobs.reduction_to_all), streamed
    ),
    **gathering("hierarchical", nodes_of, by_levels),
    **gathering("hierarchical-pipelined", nodes_of, by_levels, clock=streamed),
    **gathering("multi-channel-ring", nodes_of, in_channels, lambda x: jobs.even(x.G), streamed),
    ("rail-exchange", "all_to_all"): run(
        nodes_of, lambda x: levels.exchange_on_rails(range(x.G * x.M), x.G), one(jobs.all_to_all), streamed
    ),
    ("dissemination", "barrier"): barrier(ports_of, lambda x: line.dissemination_barrier(x.n)),
    ("store-and-forward", "send_recv"): lambda x: carry_out(
        ring.path(x.h + 1, x.alpha, x.W), line.relay(x.h, 1), jobs.broadcast(range(x.h + 1), x.S)
    ),
}
"""Every entry is exact."""

ELSEWHERE: dict[tuple[str, str], tuple[str, str]] = {
    ("path", "all_to_all"): ("test_bounds", "test_all_to_all_on_a_path"),
    ("pipelined-path", "all_reduce"): ("test_bounds", "test_the_number_of_chunks_is_the_best_one"),
    ("pipelined-chain", "broadcast"): ("test_bounds", "test_the_number_of_chunks_is_the_best_one"),
    ("pipelined-chain", "reduce"): ("test_bounds", "test_the_number_of_chunks_is_the_best_one"),
    ("quantised-two-shot", "all_reduce"): ("test_bounds", "test_fewer_bits_are_a_smaller_payload"),
    ("torus", "all_gather"): ("test_torus", "test_named_placements"),
    ("torus", "reduce_scatter"): ("test_torus", "test_sums_run_backwards"),
    ("torus", "all_reduce"): ("test_torus", "test_sums_run_backwards"),
    ("torus", "all_to_all"): ("test_torus", "test_named_placements"),
    ("evenly-split-torus", "all_gather"): ("test_torus", "test_named_placements"),
    ("evenly-split-torus", "reduce_scatter"): ("test_torus", "test_sums_run_backwards"),
    ("evenly-split-torus", "all_reduce"): ("test_torus", "test_sums_run_backwards"),
    ("axis-by-axis-torus", "all_gather"): ("test_torus", "test_named_placements"),
    ("axis-by-axis-torus", "reduce_scatter"): ("test_torus", "test_sums_run_backwards"),
    ("axis-by-axis-torus", "all_reduce"): ("test_torus", "test_sums_run_backwards"),
    ("skewed-exchange", "all_to_all"): ("test_exchange", "test_any_demand_keeps_the_busiest_port_busy"),
    ("expert-exchange", "dispatch"): ("test_exchange", "test_tokens_go_out_and_come_back"),
    ("expert-exchange", "combine"): ("test_exchange", "test_tokens_go_out_and_come_back"),
    ("nvls-tree", "all_reduce"): ("test_levels", "test_switches_in_nodes_and_trees_between_them"),
    ("sharp-over-nodes", "all_reduce"): ("test_levels", "test_a_network_that_adds_between_nodes"),
    ("fat-tree", "all_gather"): ("test_levels", "test_a_fat_tree_is_no_faster_than_its_slowest_level"),
    ("fat-tree", "reduce_scatter"): ("test_levels", "test_a_fat_tree_is_no_faster_than_its_slowest_level"),
    ("fat-tree", "all_reduce"): ("test_levels", "test_a_fat_tree_is_no_faster_than_its_slowest_level"),
    ("nodes-exchange", "all_to_all"): ("test_levels", "test_blocks_straight_through_leaves"),
    ("multi-slice", "all_gather"): ("test_levels", "test_slices_over_a_data_centre_network"),
    ("multi-slice", "reduce_scatter"): ("test_levels", "test_slices_over_a_data_centre_network"),
    ("multi-slice", "all_reduce"): ("test_levels", "test_slices_over_a_data_centre_network"),
    ("cut-through", "send_recv"): ("test_point_to_point", "test_a_message_streams_through_its_hops"),
    ("host-load", "host_load"): ("test_point_to_point", "test_loading_from_the_host_takes_its_slower_stage"),
}
"""(Algorithm, operation) -> the test module and test that hold it against a simulation."""
