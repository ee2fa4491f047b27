"""Places of a machine and the messages between them, on hand-made machines with round numbers."""

import inspect

import pytest

from costmodel.generated import collectives_math
from costmodel.topology.machine import parse_machine
from costmodel.topology.places import pairs
from tests.topology.hand_made import CATALOG


def places(on, slices=1):
    return pairs(parse_machine(on, slices, CATALOG))


def sent(pair, size=0):
    return getattr(collectives_math, pair.function)(S=size, **pair.inputs)


@pytest.mark.parametrize(
    ("on", "slices", "names"),
    [
        ("dgx-h100:1024", 1, ["domain", "leaf", "spine", "host"]),
        ("dgx-h100:256", 1, ["domain", "leaf", "host"]),
        ("workstation", 1, ["domain", "host"]),
        ("tpu-v5p:4x4x8", 1, ["neighbour", "farthest", "host"]),
        ("tpu-v5p:4x4x8", 2, ["neighbour", "farthest", "dcn", "host"]),
        ("tpu-v5p:4x4x8_twisted", 2, ["neighbour", "farthest", "dcn", "host"]),
    ],
)
def test_places_near_to_far(on, slices, names):
    assert list(places(on, slices)) == names


@pytest.mark.parametrize("on", ["dgx-h100:1024", "mi300x:8", "tpu-v5e:4x8", "trainium2"])
def test_a_pair_has_every_input_of_its_function(on):
    for pair in places(on).values():
        wanted = set(inspect.signature(getattr(collectives_math, pair.function)).parameters)
        assert set(pair.inputs) | {"S"} == wanted


def test_each_level_of_switches_adds_a_way_up_and_down():
    found = places("tighter:512")
    latencies = [sent(found[name])["send_recv_latency"] for name in ("leaf", "spine", "core")]
    assert latencies == pytest.approx([2e-6 + 2e-6 + 2 * levels * 0.25e-6 for levels in range(3)])


@pytest.mark.parametrize(
    ("on", "hops", "paths"),
    [("tpu-v5p:4x4x8", 2 + 2 + 4, 6), ("tpu-v5e:4x8", 3 + 7, 2), ("tpu-v5e:2x2", 2, 2), ("trainium2", 4, 4)],
)
def test_the_farthest_chips(on, hops, paths):
    """Half way round an even ring there are two ways of the same length, on an open axis one."""
    values = sent(places(on)["farthest"])
    assert (values["hops"], values["paths"]) == (hops, paths)


def test_the_farthest_chips_of_a_twisted_slice_are_nearer():
    plain, twisted = (sent(places(f"tpu-v5p:4x8x8{ending}")["farthest"]) for ending in ("", "_twisted"))
    assert (plain["hops"], twisted["hops"]) == (10, 6)
    assert (plain["paths"], twisted["paths"]) == (6, 6)
