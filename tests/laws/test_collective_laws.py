"""What every form of every collective obeys, law by law, numbered so that a failure can be spoken of.

A law runs over the whole registry, and what it does not hold for is listed with the reason. Law 13, that the fastest is
the fastest, and those on machines are in `test_group_laws`; law 21, on what is sent and received, in
`test_simulator_laws`; law 22, that forms equal simulations, is `tests/equations/collectives`.
"""

from fractions import Fraction
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.symbolic import bytes_, bytes_per_second, seconds
from tests.equations.collectives.drawn import (
    BY_NAME,
    INFINITE,
    at_most,
    bandwidths,
    cases,
    evaluate,
    inputs_in,
    latencies,
    payloads,
    same,
)

factors = st.integers(6, 48).map(lambda sixths: Fraction(sixths, 6))
few = settings(max_examples=settings.default.max_examples // 6)


def algorithms(excluded=()):
    """Every algorithm but those that a law does not hold for."""
    return pytest.mark.parametrize("algorithm", [name for name in BY_NAME if name not in excluded])


def times(algorithm, inputs):
    """The time of each operation that the algorithm implements."""
    found = evaluate(algorithm, inputs)
    return {operation: found[operation] for operation in BY_NAME[algorithm].operations}


@algorithms()
@few
@given(data=st.data())
def test_1_no_time_is_negative_or_endless(algorithm, data):
    inputs = data.draw(cases(algorithm))
    found = evaluate(algorithm, inputs)
    for operation in BY_NAME[algorithm].operations:
        time, latency, bandwidth = (found[name] for name in BY_NAME[algorithm].equations(operation))
        if time == INFINITE:
            assert BY_NAME[algorithm].needs.startswith("a power of two")
            assert inputs["n"] & (inputs["n"] - 1)
        else:
            assert min(latency, bandwidth) >= 0
            assert same(time, latency + bandwidth)


NOT_A_GROUP = {
    "skewed-exchange": "its size is in the demand",
    "expert-exchange": "its size is in what is sent",
    "host-load": "one chip, one host",
    "cut-through": "a message has at least one link",
    "store-and-forward": "a message has at least one link",
}
ONE_RANK = ("n", "G", "M", "P", "C", "D_1", "D_2", "D_3", "size_x", "size_y", "size_z")


@algorithms(NOT_A_GROUP)
@few
@given(data=st.data())
def test_2_one_rank_takes_no_time(algorithm, data):
    alone = dict.fromkeys(ONE_RANK, 1) | {"inside_latency": Fraction(0), "inside_bandwidth": Fraction(0)}
    assert set(times(algorithm, data.draw(cases(algorithm, **alone))).values()) == {0}


@algorithms()
@few
@given(data=st.data())
def test_3_nothing_sent_costs_only_latency(algorithm, data):
    nothing = dict.fromkeys(inputs_in(algorithm, bytes_), Fraction(0)) | {"inside_bandwidth": Fraction(0)}
    found = evaluate(algorithm, data.draw(cases(algorithm, **nothing)))
    for operation in BY_NAME[algorithm].operations:
        assert same(found[operation], found[f"{operation}_latency"])


@algorithms()
@few
@given(data=st.data(), factor=factors)
def test_4_to_6_and_23_more_to_send_is_slower_and_more_bandwidth_anywhere_faster(algorithm, data, factor):
    inputs = data.draw(cases(algorithm))
    before = times(algorithm, inputs)
    for unit in (bytes_, seconds, bytes_per_second):
        for name in inputs_in(algorithm, unit):
            after = times(algorithm, inputs | {name: inputs[name] * factor})
            for operation, time in before.items():
                if unit == bytes_per_second:
                    assert at_most(after[operation], time), name
                else:
                    assert at_most(time, after[operation]), name


def scaled(algorithm, inputs, *, clock=Fraction(1), payload=Fraction(1)):
    factor = {seconds: clock, bytes_: payload, bytes_per_second: payload / clock}
    units = {e.name: e.unit for e in BY_NAME[algorithm].chapter.system.inputs()}
    return {name: value * factor.get(units[name], 1) for name, value in inputs.items()}


@algorithms()
@few
@given(data=st.data(), factor=factors)
def test_7_a_slower_clock_slows_everything_alike(algorithm, data, factor):
    inputs = data.draw(cases(algorithm))
    slower = times(algorithm, scaled(algorithm, inputs, clock=factor))
    for operation, time in times(algorithm, inputs).items():
        assert same(slower[operation], factor * time)


@algorithms()
@few
@given(data=st.data(), factor=factors)
def test_8_larger_bytes_on_wider_links_take_as_long(algorithm, data, factor):
    """Those that choose their chunks stop at single bytes where a step has no latency: there the law does not hold."""
    inputs = data.draw(cases(algorithm))
    if "chunks" in evaluate(algorithm, inputs) and not inputs["alpha"]:
        inputs["alpha"] = Fraction(1)
    wider = times(algorithm, scaled(algorithm, inputs, payload=factor))
    for operation, time in times(algorithm, inputs).items():
        assert same(wider[operation], time)


OWN_ALL_REDUCE = {
    "recursive-doubling": "its all-reduce exchanges whole vectors",
    "nvls": "the phases overlap",
    "nvls-without-own-traffic": "the phases overlap",
}
SHARDED = [name for name in BY_NAME if "all_gather" in BY_NAME[name].operations]
SUMMED = [name for name in SHARDED if "all_reduce" in BY_NAME[name].operations]


@pytest.mark.parametrize("algorithm", SUMMED)
@few
@given(data=st.data())
def test_9_all_reduce_is_reduce_scatter_and_all_gather(algorithm, data):
    found = evaluate(algorithm, data.draw(cases(algorithm)))
    two_phases = found["reduce_scatter"] + found["all_gather"]
    if algorithm not in OWN_ALL_REDUCE:
        assert found["all_reduce"] == two_phases
    elif algorithm != "recursive-doubling":
        assert found["all_reduce"] <= two_phases


def into_a_rank(algorithm, inputs):
    """Bytes a second into the rank that is served worst, over all lines that end at it."""
    if algorithm.startswith("two-way-ring"):
        return inputs["W"] * (2 if inputs["n"] > 2 else 1)
    if algorithm.endswith("torus"):
        found = evaluate(algorithm, inputs)
        return inputs["W"] * sum(found[f"{axis}_links"] for axis in "xyz")
    if algorithm == "fat-tree":
        node, unit = inputs["D_1"], inputs["D_1"] * inputs["D_2"]
        return inputs["W_1"] + inputs["W_2"] / node + inputs["W_3"] / unit
    return inputs["W"] if "W" in inputs else inputs["W_in"] + inputs["W_out"]


def ranks_in(inputs):
    sizes = [inputs[name] for name in ONE_RANK if name in inputs]
    return prod(sizes)


FEWER_BYTES = {
    "nvls": "the switch adds: law 20",
    "nvls-without-own-traffic": "the switch adds and copies: law 20",
    "nvls-tree": "the switch adds: law 20",
    "sharp": "the network adds: law 20",
    "sharp-over-nodes": "the network adds: law 20",
    "chunked-path": "sums go one way while results come back: half of two phases",
    "pipelined-path": "sums go one way while results come back: half of two phases",
    "quantised-two-shot": "sends fewer bytes for a byte of payload",
    "multi-slice": "what is inside a slice is given as a time",
}
GATHERING = {"all_gather": 1, "reduce_scatter": 1, "all_reduce": 2}


@pytest.mark.parametrize(
    "algorithm",
    [name for name in BY_NAME if set(BY_NAME[name].operations) & set(GATHERING) and name not in FEWER_BYTES],
)
@few
@given(data=st.data())
def test_10_every_rank_receives_the_shards_of_the_others(algorithm, data):
    inputs = data.draw(cases(algorithm))
    n = ranks_in(inputs)
    if n > 1:
        shards = Fraction(n - 1, n) * inputs["S"] / into_a_rank(algorithm, inputs)
        found = evaluate(algorithm, inputs)
        for operation in set(BY_NAME[algorithm].operations) & set(GATHERING):
            assert at_most(GATHERING[operation] * shards, found[f"{operation}_bandwidth"])


@pytest.mark.parametrize(
    ("algorithm", "limit"),
    [
        ("ring", 2),
        ("two-way-ring", 1),
        ("two-way-ring-by-halves", 1),
        ("path", 2),
        ("rabenseifner", 2),
        ("two-shot", 2),
        ("double-binary-tree", 2),
        ("nvls", 1),
        ("sharp", 1),
    ],
)
def test_11_bandwidth_of_many_ranks(algorithm, limit):
    """All-reduce tends to this many payloads over a link, within a few parts in n."""
    n = 2**20
    found = evaluate(algorithm, {"n": n, "S": 1, "alpha": 0, "W": 1})["all_reduce_bandwidth"]
    assert abs(found - limit) <= Fraction(4, n)


@pytest.mark.parametrize("n", [*range(4, 34), 1000, 4096, 16385])
def test_12_trees_have_less_latency_than_rings(n):
    inputs = {"n": n, "S": 1, "alpha": 1, "W": 1}
    ring = evaluate("ring", inputs)
    for algorithm in ("double-binary-tree", "rabenseifner", "recursive-doubling"):
        assert evaluate(algorithm, inputs)["all_reduce_latency"] <= ring["all_reduce_latency"]
    assert evaluate("bruck", inputs)["all_gather_latency"] <= ring["all_gather_latency"]
    assert evaluate("binomial", inputs)["gather_latency"] <= ring["gather_latency"]
    assert evaluate("dissemination", inputs)["barrier"] <= ring["barrier"]


def two_levels(**fixed):
    return cases("hierarchical", **fixed)


@few
@given(two_levels(M=1))
def test_14_one_node_is_a_flat_group(inputs):
    flat = {"n": inputs["G"], "S": inputs["S"], "alpha": inputs["alpha_in"], "W": inputs["W_in"]}
    ring = evaluate("ring", flat)
    for algorithm in ("hierarchical", "hierarchical-pipelined", "multi-channel-ring"):
        found = evaluate(algorithm, inputs)
        assert all(same(found[operation], ring[operation]) for operation in GATHERING)
    assert evaluate("sharp-over-nodes", inputs)["all_reduce"] == ring["all_reduce"]
    assert evaluate("nvls-tree", inputs)["all_reduce"] == evaluate("nvls", flat)["all_reduce"]
    assert evaluate("rail-exchange", inputs)["all_to_all"] == evaluate("direct-exchange", flat)["all_to_all"]


@few
@given(two_levels(G=1))
def test_14_nodes_of_one_rank_are_a_flat_group(inputs):
    flat = {"n": inputs["M"], "S": inputs["S"], "alpha": inputs["alpha_out"], "W": inputs["W_out"]}
    ring = evaluate("ring", flat)
    for algorithm in ("hierarchical", "hierarchical-pipelined", "multi-channel-ring"):
        found = evaluate(algorithm, inputs)
        assert all(same(found[operation], ring[operation]) for operation in GATHERING)
    assert evaluate("sharp-over-nodes", inputs)["all_reduce"] == evaluate("sharp", flat)["all_reduce"]
    assert evaluate("rail-exchange", inputs)["all_to_all"] == evaluate("direct-exchange", flat)["all_to_all"]


@few
@given(two_levels())
def test_14_equal_levels_cost_what_a_flat_ring_does(inputs):
    """Over one kind of link, levels move the same bytes in fewer steps."""
    inputs = inputs | {"alpha_out": inputs["alpha_in"], "W_out": inputs["W_in"]}
    flat = {"n": inputs["G"] * inputs["M"], "S": inputs["S"], "alpha": inputs["alpha_in"], "W": inputs["W_in"]}
    ring, found = evaluate("ring", flat), evaluate("hierarchical", inputs)
    for operation in GATHERING:
        assert same(found[f"{operation}_bandwidth"], ring[f"{operation}_bandwidth"])
        assert found[f"{operation}_latency"] <= ring[f"{operation}_latency"]


@few
@given(two_levels())
def test_15_levels_in_turn_take_longer_than_each(inputs):
    inside, across = (
        evaluate(
            "ring", {"n": inputs[size], "S": payload, "alpha": inputs[f"alpha_{where}"], "W": inputs[f"W_{where}"]}
        )
        for size, payload, where in (("G", inputs["S"], "in"), ("M", inputs["S"] / inputs["G"], "out"))
    )
    turns, both = evaluate("hierarchical", inputs), evaluate("hierarchical-pipelined", inputs)
    for operation in GATHERING:
        assert at_most(max(inside[operation], across[operation]), both[operation])
        assert at_most(both[operation], turns[operation])
        assert same(turns[operation], inside[operation] + across[operation])


flat = st.fixed_dictionaries({"n": st.integers(1, 17), "S": payloads, "alpha": latencies, "W": bandwidths})


@few
@given(flat)
def test_16_one_chunk_is_not_pipelined(inputs):
    n, step = inputs["n"], inputs["alpha"] + inputs["S"] / inputs["W"]
    whole = inputs | {"k": 1}
    assert evaluate("chain", whole)["broadcast"] == evaluate("chain", whole)["reduce"] == (n - 1) * step
    assert evaluate("streamed-chain", whole)["broadcast"] == (n - 1) * step
    assert evaluate("store-and-forward", inputs | {"h": n - 1})["send_recv"] == (n - 1) * step
    assert evaluate("chunked-path", whole)["all_reduce"] == 2 * (n - 1) * step
    for best, chunked, operation in (
        ("pipelined-chain", "chain", "broadcast"),
        ("pipelined-path", "chunked-path", "all_reduce"),
    ):
        for k in range(1, 20):
            if inputs["alpha"]:
                assert at_most(evaluate(best, inputs)[operation], evaluate(chunked, inputs | {"k": k})[operation])


@few
@given(flat)
def test_17_all_but_the_own_block_leaves_a_rank(inputs):
    leaves = Fraction(inputs["n"] - 1, inputs["n"]) * inputs["S"] / inputs["W"]
    for algorithm in ("pairwise-exchange", "direct-exchange"):
        assert evaluate(algorithm, inputs)["all_to_all_bandwidth"] == leaves
    for algorithm in ("ring", "path", "bruck-exchange"):
        assert evaluate(algorithm, inputs)["all_to_all_bandwidth"] >= leaves
    two_ways = 2 if inputs["n"] > 2 else 1
    assert evaluate("two-way-ring", inputs)["all_to_all_bandwidth"] >= leaves / two_ways


DUAL = (("broadcast", "reduce"), ("scatter", "gather"), ("all_gather", "reduce_scatter"), ("dispatch", "combine"))


@algorithms()
@few
@given(data=st.data())
def test_18_run_backwards_it_costs_the_same(algorithm, data):
    inputs = data.draw(cases(algorithm))
    found = evaluate(algorithm, inputs | {"returned": inputs["sent"]} if "returned" in inputs else inputs)
    for forth, back in DUAL:
        assert (forth in BY_NAME[algorithm].operations) == (back in BY_NAME[algorithm].operations)
        if forth in BY_NAME[algorithm].operations:
            assert found[forth] == found[back]


ROTATIONS = ("xyz", "yzx", "zxy")
RENAMED = {
    "torus": (*ROTATIONS, "xzy", "zyx", "yxz"),
    "axis-by-axis-torus": (*ROTATIONS, "xzy", "zyx", "yxz"),
    "evenly-split-torus": ROTATIONS,  # an even division over rotated orders is another one when two axes are swapped
}


@pytest.mark.parametrize("algorithm", RENAMED)
@few
@given(data=st.data())
def test_19_axes_can_be_renamed_and_one_alone_is_a_ring(algorithm, data):
    inputs = data.draw(cases(algorithm))
    described = ("size", "stride", "ring")
    for order in RENAMED[algorithm]:
        moved = {
            f"{what}_{new}": inputs[f"{what}_{old}"]
            for what in described
            for old, new in zip("xyz", order, strict=True)
        }
        assert times(algorithm, inputs | moved) == times(algorithm, inputs)
    alone = dict.fromkeys(("size_y", "size_z", "stride_x"), 1) | {"ring_x": 1}
    ring = evaluate("two-way-ring", inputs | {"n": inputs["size_x"]})
    for operation, time in times(algorithm, inputs | alone).items():
        assert time == ring[operation]


@few
@given(flat)
def test_20_a_network_that_adds_saves_up_to_half_and_no_more(inputs):
    ring, least = evaluate("ring", inputs)["all_reduce_bandwidth"], inputs["S"] / inputs["W"]
    if inputs["n"] > 1:
        for algorithm in ("sharp", "nvls", "nvls-without-own-traffic"):
            assert evaluate(algorithm, inputs)["all_reduce_bandwidth"] >= least
        for algorithm in ("sharp", "nvls-without-own-traffic", *(["nvls"] if inputs["n"] > 2 else [])):
            assert at_most(evaluate(algorithm, inputs)["all_reduce_bandwidth"], ring)
        assert at_most(ring, evaluate("nvls-in-turn", inputs)["all_reduce_bandwidth"])
