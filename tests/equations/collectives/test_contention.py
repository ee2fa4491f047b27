"""Collectives on shared links: laws, and link loads counted on transfers of both."""

from collections import Counter
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from costmodel.generated import collectives_math
from tests.equations.collectives.drawn import at_most, latencies, payloads, same
from tests.simulators import ring

seconds = latencies


@st.composite
def loads(draw):
    found = {"groups": draw(st.integers(1, 5)), "same_fast_links": draw(st.integers(0, 1))}
    for which in ("one", "other"):
        parts = {name: draw(seconds) for name in ("fast", "nics", "uplinks")}
        latency = draw(seconds)
        found |= {f"{which}_{name}": value for name, value in parts.items()}
        # At least as long as its fullest link, at most as long as all in turn.
        most, total = max(parts.values()), sum(parts.values())
        time = latency + most + (total - most) * draw(st.integers(0, 4)) / 4
        found |= {f"{which}_latency": latency, f"{which}_time": time + Fraction(1, 1000)}
    return found


NOTHING = {f"other_{name}": Fraction(0) for name in ("latency", "fast", "nics", "uplinks", "time")}


@given(loads())
def test_one_group_with_nothing_beside_it_takes_as_long_as_alone(known):
    found = collectives_math.shared_links(**(known | NOTHING | {"groups": 1}))
    assert same(found["together"], known["one_time"])
    assert same(found["slower"], 1)


@given(loads())
def test_never_faster_than_the_slower_and_more_groups_never_faster(known):
    found = collectives_math.shared_links(**known)
    assert at_most(
        max(known["one_time"] - known["one_latency"], known["other_time"] - known["other_latency"]), found["together"]
    )
    more = collectives_math.shared_links(**(known | {"groups": known["groups"] + 1}))
    assert at_most(found["together"], more["together"])
    apart = collectives_math.shared_links(**(known | {"same_fast_links": 0}))
    assert at_most(apart["together"], found["together"])


@given(loads())
def test_of_two_it_does_not_matter_which_is_named_first(known):
    known = known | {"groups": 1}
    turned = {
        name.replace("one_", "x_").replace("other_", "one_").replace("x_", "other_"): value
        for name, value in known.items()
    }
    assert same(collectives_math.shared_links(**known)["together"], collectives_math.shared_links(**turned)["together"])


@given(st.integers(2, 9), payloads, payloads, st.integers(1, 3))
def test_bytes_on_every_link_of_a_ring_add(n, first, second, groups):
    """Transfers of two all-gathers on one ring, counted cable by cable: the fullest carries the sum of the two closed forms."""
    carried: Counter = Counter()
    for payload, times in ((first, groups), (second, 1)):
        for step in ring.gather_one_way(n):
            for transfer in step:
                carried[transfer.source, transfer.target] += times * len(transfer.blocks) * payload / n
    one, other = (collectives_math.ring(n=n, S=payload, alpha=0, W=Fraction(1)) for payload in (first, second))
    known = NOTHING | {
        "groups": groups,
        "same_fast_links": 1,
        "one_latency": 0,
        "one_nics": 0,
        "one_uplinks": 0,
        "one_fast": one["all_gather"],
        "one_time": one["all_gather"] + 1,
        "other_fast": other["all_gather"],
        "other_time": other["all_gather"],
    }
    assert same(collectives_math.shared_links(**known)["fast"], max(carried.values()))
