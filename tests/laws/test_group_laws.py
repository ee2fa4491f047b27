"""What the collectives of a group on a machine obey, by every algorithm and for every operation.

The laws are those of `test_collective_laws`; here they run over groups on nodes and units, and on slices.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.equations.collectives.group_on_switches import CollectivesOnSwitches
from costmodel.equations.collectives.group_on_torus import CollectivesOnTorus
from costmodel.equations.collectives.library_group import CollectivesByLibrary
from costmodel.generated import group_on_switches_by_library_math, group_on_switches_math, group_on_torus_math
from costmodel.symbolic import bytes_, bytes_per_second, seconds
from tests.equations.collectives.drawn import INFINITE, at_most, bandwidths, latencies, payloads, same

few = settings(max_examples=settings.default.max_examples // 3)
factors = st.integers(6, 48).map(lambda sixths: Fraction(sixths, 6))
shares = st.integers(1, 10).map(lambda tenths: Fraction(tenths, 10))
small = st.integers(1, 4)
lengths = st.integers(1, 5)


@st.composite
def on_switches(draw, members=small, nodes=small, units=small):
    """A group that fills its blocks: members of a node, nodes of a unit, units; latencies grow from level to level."""
    m, in_unit, in_all = draw(members), draw(nodes), draw(units)
    inside, node, unit = sorted(draw(latencies) for _ in range(3))
    experts = draw(small) * m * in_unit * in_all
    limit = draw(st.integers(1, in_unit * in_all))
    mesh = draw(st.integers(0, 1))
    # A mesh has no switches that could add.
    adding = Fraction(0) if mesh else draw(st.one_of(st.just(Fraction(0)), shares))
    return {
        "n": m * in_unit * in_all,
        "m": m,
        "u": m * in_unit,
        "S": draw(payloads),
        "launch_latency": draw(latencies),
        "domain_kind": mesh,
        "domain_bandwidth": draw(bandwidths),
        "domain_share": draw(shares),
        "domain_latency": inside,
        "nic_bandwidth": draw(bandwidths),
        "nic_share": draw(shares),
        "nics_per_host": draw(small),
        "chips_per_host": draw(small),
        "nic_latency": node,
        "unit_oversubscription": draw(small),
        "unit_link_latency": unit,
        "unit_levels_below": draw(small),
        "switch_latency": draw(latencies),
        "nvls_share": adding,
        **tokens(draw, experts, experts * limit // (in_unit * in_all)),
        "node_limit": limit,
    }


PROTOCOLS = ("ll", "ll128", "simple")


@st.composite
def by_library(draw, members=small, nodes=small, units=small):
    """A group on switches and constants of a library, of which whole chunks are always in use."""
    sometimes = st.one_of(st.just(Fraction(0)), shares)
    constants = {
        "dispatch_latency": draw(latencies),
        "added_latency": draw(latencies),
        "ll_rank_rate": draw(bandwidths),
    }
    for protocol in PROTOCOLS:
        for what in ("start", "step", "overhead", "ring_step", "tree_step"):
            constants[f"{protocol}_{what}"] = draw(latencies)
        for what in ("share", "nic_share"):
            constants[f"{protocol}_{what}"] = draw(shares if protocol == "simple" else sometimes)
    for what in ("in_network_start", "exchange_ll_start", "exchange_start"):
        constants[what] = draw(latencies)
    for what in ("exchange_share", "exchange_nic_share", "pair_share"):
        constants[what] = draw(shares)
    for what in ("in_network_share", "exchange_ll_share", "own_shard", "own_block"):
        constants[what] = draw(sometimes)
    known = draw(on_switches(members, nodes, units)) | constants
    return {
        name: value for name, value in known.items() if name in group_on_switches_by_library_math.times.__annotations__
    }


@st.composite
def on_torus(draw, sizes=lengths, slices=small):
    axes = {f"size_{axis}": draw(sizes) for axis in "xyz"}
    axes |= {f"stride_{axis}": draw(st.sampled_from([1, 1, 2, 4])) for axis in "xyz"}
    axes |= {f"ring_{axis}": draw(st.integers(0, 1)) for axis in "xyz"}
    twist, side = draw(st.sampled_from([0, 0, 0, 1, 2])), 1
    if twist and sizes is lengths:
        # All chips of a twisted slice, whose short axes are open.
        side = draw(st.integers(3, 4))
        box = draw(st.permutations([side, side if twist == 1 else 2 * side, 2 * side]))
        axes |= {f"size_{axis}": length for axis, length in zip("xyz", box, strict=True)}
        axes |= {f"stride_{axis}": 1 for axis in "xyz"}
        axes |= {f"ring_{axis}": int(length > side) for axis, length in zip("xyz", box, strict=True)}
    else:
        twist = 0
    spanned = draw(slices)
    experts = draw(small) * axes["size_x"] * axes["size_y"] * axes["size_z"] * spanned
    return {
        **axes,
        "slices": spanned,
        "S": draw(payloads),
        "launch_latency": draw(latencies),
        "link_bandwidth": draw(bandwidths),
        "link_share": draw(shares),
        "hop_latency": draw(latencies),
        "dcn_links_per_host": draw(small),
        "dcn_bandwidth": draw(bandwidths),
        "chips_per_host": draw(small),
        "host_link_bandwidth": draw(bandwidths),
        "dcn_share": draw(shares),
        "dcn_latency": draw(latencies),
        "twist": twist,
        "twist_side": side,
        **tokens(draw, experts, experts),
    }


def tokens(draw, experts, pool):
    return {
        "tokens": draw(st.integers(0, 1000)),
        "dispatch_bytes": draw(payloads),
        "combine_bytes": draw(payloads),
        "experts": experts,
        "chosen": draw(st.integers(1, min(pool, 8))),
    }


@dataclass(frozen=True)
class Kind:
    module: ModuleType
    system: object
    drawing: Callable[..., st.SearchStrategy]

    @property
    def drawn(self):
        return self.drawing()

    def __call__(self, inputs):
        return self.module.times(
            **{name: Fraction(value) if name != "domain_kind" else value for name, value in inputs.items()}
        )

    def units(self):
        return {e.name: e.unit for e in self.system.inputs() if e.name in self.names}

    @property
    def names(self):
        return self.module.times.__annotations__

    def algorithms(self):
        return [
            (operation, f"{operation}_{name}") for operation, names in self.module.ALGORITHMS.items() for name in names
        ]


KINDS = {
    "switches": Kind(group_on_switches_math, CollectivesOnSwitches.system, on_switches),
    "torus": Kind(group_on_torus_math, CollectivesOnTorus.system, on_torus),
    "switches by library": Kind(group_on_switches_by_library_math, CollectivesByLibrary.system, by_library),
}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


@kinds
@few
@given(data=st.data())
def test_1_times_are_not_negative_and_one_algorithm_applies(kind, data):
    found = kind(data.draw(kind.drawn))
    for operation, name in kind.algorithms():
        assert found[name] >= 0
        assert found[f"{name}_latency"] >= 0
        assert 0 <= found[operation] < INFINITE


@kinds
@few
@given(data=st.data())
def test_2_one_rank_takes_no_time(kind, data):
    one = st.just(1)
    found = kind(data.draw(kind.drawing(one, one) if kind is KINDS["torus"] else kind.drawing(one, one, one)))
    assert {found[operation] for operation in kind.module.ALGORITHMS} == {0}


@kinds
@few
@given(data=st.data())
def test_3_nothing_sent_costs_only_latency(kind, data):
    found = kind(data.draw(kind.drawn) | {"S": Fraction(0), "tokens": 0})
    for _, name in kind.algorithms():
        assert found[name] == INFINITE or same(found[name], found[f"{name}_latency"]), name


@kinds
@few
@given(data=st.data(), factor=factors)
def test_4_to_6_and_23_more_to_send_is_slower_and_more_bandwidth_anywhere_faster(kind, data, factor):
    inputs = data.draw(kind.drawn)
    before, units = kind(inputs), kind.units()
    for grown in inputs:
        if units[grown] in (bytes_, seconds, bytes_per_second) or grown == "tokens":
            after = kind(inputs | {grown: inputs[grown] * factor})
            for operation, name in (
                *kind.algorithms(),
                *((operation, operation) for operation in kind.module.ALGORITHMS),
            ):
                slow, fast = (before, after) if units[grown] == bytes_per_second else (after, before)
                assert at_most(fast[name], slow[name]), (operation, name, grown)


@kinds
@few
@given(data=st.data(), factor=factors)
def test_7_a_slower_clock_slows_everything_alike(kind, data, factor):
    inputs = data.draw(kind.drawn)
    units = kind.units()
    scale = {seconds: factor, bytes_per_second: 1 / factor}
    before = kind(inputs)
    after = kind(
        {name: value * scale[units[name]] if units[name] in scale else value for name, value in inputs.items()}
    )
    for _, name in kind.algorithms():
        assert same(after[name], factor * before[name] if before[name] != INFINITE else INFINITE), name


CHOOSES_CHUNKS = ("broadcast_chain", "reduce_chain", "broadcast_tree", "reduce_tree")
"""They stop at single bytes where a step has no latency: there larger bytes make a difference."""


@kinds
@few
@given(data=st.data(), factor=factors)
def test_8_larger_bytes_on_wider_links_take_as_long(kind, data, factor):
    inputs = data.draw(kind.drawn)
    units = kind.units()
    scale = {bytes_: factor, bytes_per_second: factor}
    before = kind(inputs)
    after = kind(
        {name: value * scale[units[name]] if units[name] in scale else value for name, value in inputs.items()}
    )
    for _, name in kind.algorithms():
        assert name in CHOOSES_CHUNKS or same(after[name], before[name]), name


@kinds
@few
@given(data=st.data())
def test_13_the_fastest_is_the_least_of_those_that_compete(kind, data):
    found = kind(data.draw(kind.drawn))
    for operation, names in kind.module.ALGORITHMS.items():
        competing = [found[f"{operation}_{name}"] for name, facts in names.items() if facts["competes"]]
        assert found[operation] in (min(competing), 0)


@few
@given(on_switches())
def test_15_levels_in_turn_take_longer_than_each(inputs):
    found = KINDS["switches"](inputs)
    for operation in ("all_gather", "reduce_scatter", "all_reduce"):
        in_turn, at_once = found[f"{operation}_hierarchical"], found[f"{operation}_pipelined"]
        assert at_most(at_once, in_turn)
        for resource in ("ports", "nics", "uplinks"):
            assert at_most(found[f"{operation}_hierarchical_{resource}"], at_once)


@few
@given(on_switches(members=st.just(1)))
def test_14_nodes_of_one_rank_have_one_ring(inputs):
    found = KINDS["switches"](inputs)
    if inputs["n"] > 1:
        for operation in ("all_gather", "reduce_scatter", "all_reduce"):
            assert same(found[f"{operation}_hierarchical"], found[f"{operation}_ring"])


@few
@given(on_torus())
def test_15_the_best_division_of_the_bytes_is_the_best(inputs):
    found = KINDS["torus"](inputs)
    for operation in ("all_gather", "reduce_scatter", "all_reduce"):
        assert at_most(found[f"{operation}_best_split_links"], found[f"{operation}_equal_split_links"])
        assert at_most(found[f"{operation}_best_split_links"], found[f"{operation}_one_order_links"])


@kinds
@few
@given(data=st.data())
def test_18_run_backwards_it_costs_the_same(kind, data):
    inputs = data.draw(kind.drawn)
    found = kind(inputs | {"combine_bytes": inputs["dispatch_bytes"]})
    for forth, back in (
        ("broadcast", "reduce"),
        ("scatter", "gather"),
        ("all_gather", "reduce_scatter"),
        ("dispatch", "combine"),
    ):
        assert {f"{back}_{name}": found[f"{back}_{name}"] for name in kind.module.ALGORITHMS[back]} == {
            f"{back}_{name}": found[f"{forth}_{name}"] for name in kind.module.ALGORITHMS[forth]
        }


@few
@given(on_torus())
def test_19_axes_can_be_rotated(inputs):
    kind = KINDS["torus"]
    turned = dict(inputs)
    for what in ("size", "stride", "ring"):
        turned |= {f"{what}_{new}": inputs[f"{what}_{old}"] for old, new in zip("xyz", "yzx", strict=True)}
    before, after = kind(inputs), kind(turned)
    assert all(same(after[name], before[name]) for _, name in kind.algorithms())


@few
@given(on_switches(members=st.integers(3, 9), nodes=st.just(1), units=st.just(1)))
def test_20_switches_that_add_save_up_to_half_and_no_more(inputs):
    found = KINDS["switches"](inputs | {"nvls_share": inputs["domain_share"], "domain_kind": 0})
    assert at_most(found["all_reduce_nvls_ports"], found["all_reduce_ring_ports"])
    assert at_most(found["all_reduce_ring_ports"] / 2, found["all_reduce_nvls_ports"])
