"""Overlays: published and hand-checked goodput factors, limits in round numbers, and laws."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Number, Overlay
from costmodel.equations.collectives.overlay import EqualCostPaths
from costmodel.symbolic import compile_math
from costmodel.topology.overlay import behind, encapsulations
from tests.topology.hand_made import link

CONSTANTS = Catalog.open().assumptions("networks")
CLEAN = link("nic", 50e9, 2e-6, 0.9)


def overlaid(framing="tcp", *encapsulation, **limits):
    """Every quantity of a link of 50 GB/s and 2 us."""
    facts = {name: Number(value, "", "made up", "guess") for name, value in limits.items()}
    return behind(replace(CLEAN, overlay=Overlay(framing, encapsulation, facts)), CONSTANTS)


@pytest.mark.parametrize(
    ("framing", "encapsulation", "mtu", "payload", "wire"),
    [
        ("tcp", [], 1500, 1460, 1538),  # 94.9%
        ("tcp", [], 9000, 8960, 9038),  # 99.1%
        ("tcp", ["vxlan"], 1500, 1410, 1538),  # 91.7%
        ("tcp", ["vxlan"], 9000, 8910, 9038),  # 98.6%
        ("tcp", ["geneve"], 1500, 1410, 1538),
        ("tcp", ["vlan"], 1500, 1460, 1542),
        ("tcp", ["macsec"], 1500, 1460, 1570),
        ("tcp", ["ipsec"], 1500, 1406, 1538),  # 1446 B of inner packet, as routers report for AES-GCM
        ("tcp", ["wireguard"], 1500, 1400, 1538),  # 1440 B of inner packet over IPv4
        ("tcp", ["vxlan", "ipsec"], 1500, 1356, 1538),
        ("tcp-timestamps", [], 1500, 1448, 1538),
        ("roce-v2", [], 4200, 4096, 4178),  # 98.0%
        ("roce-v2", [], 1500, 1024, 1106),  # 92.6%
        ("roce-v2", ["vxlan"], 1500, 1024, 1156),
        ("roce-v2", ["vxlan"], 1100, 512, 644),  # the next power of two no longer has room
        ("infiniband", [], 4096, 4096, 4122),  # 99.4%
    ],
)
def test_goodput_by_hand(framing, encapsulation, mtu, payload, wire):
    found = overlaid(framing, *encapsulation, mtu=mtu)
    assert (found["payload"], found["wire"]) == (payload, wire)
    assert found["goodput"] == payload / wire


@pytest.mark.parametrize(
    ("framing", "encapsulation", "mtu", "percent"),
    [
        ("tcp", [], 1500, 94.9),
        ("tcp", [], 9000, 99.1),
        ("tcp", ["vxlan"], 1500, 91.7),
        ("tcp", ["vxlan"], 9000, 98.6),
        ("roce-v2", [], 4200, 98.0),
        ("roce-v2", [], 1500, 92.6),
        ("infiniband", [], 4096, 99.4),
    ],
)
def test_goodput_as_published(framing, encapsulation, mtu, percent):
    assert round(100 * overlaid(framing, *encapsulation, mtu=mtu)["goodput"], 1) == percent


def test_infiniband_carries_49_7_of_50_gigabytes():
    assert overlaid("infiniband")["attained"] / 1e9 == pytest.approx(49.7, abs=0.02)


def test_nothing_changes_without_knobs():
    for framing in ("tcp", "roce-v2", "infiniband", "tcp-timestamps"):
        found = overlaid(framing)
        assert found["bandwidth"] == pytest.approx(CLEAN.bandwidth.value)
        assert found["latency"] == CLEAN.latency.value
        assert found["attained"] == found["by_wire"]
        assert found["flows_to_fill"] == 1


def test_a_virtual_switch_that_counts_packets():
    assert overlaid("tcp", mtu=1500, packet_rate=1e6)["attained"] == 1460e6
    assert overlaid("tcp", mtu=9000, packet_rate=1e6)["attained"] == 8960e6


def test_cores_that_move_data():
    assert overlaid("tcp", cores=8, core_rate=3e9)["attained"] == 24e9


def test_flows_and_windows():
    found = overlaid("tcp", round_trip=50e-6, window=250_000)
    assert found["one_flow"] == pytest.approx(5e9)
    assert found["attained"] == pytest.approx(5e9)
    assert found["flows_to_fill"] == 10  # of 49.6 GB/s
    assert overlaid("tcp", round_trip=50e-6, window=250_000, flows=4)["attained"] == pytest.approx(20e9)
    assert overlaid("tcp", flow_rate=1.25e9, flows=10)["attained"] == 12.5e9


def test_bandwidth_delay_product_of_100_gigabits_and_50_microseconds():
    overlay = Overlay("tcp", (), {"round_trip": Number(50e-6, "s", "made up", "guess")})
    made = replace(link("nic", 12.5e9, 1e-6, 0.9), overlay=overlay)
    assert behind(made, CONSTANTS)["delay_product"] == pytest.approx(625_000)


def test_slow_paths_are_latencies():
    found = overlaid(
        "tcp",
        fast_path_latency=1e-6,
        coprocessor_latency=20e-6,
        coprocessor_share=0.1,
        first_packet_latency=500e-6,
    )
    assert found["latency"] == pytest.approx(5e-6)
    assert found["slowest"] == pytest.approx(23e-6)
    assert found["first"] == pytest.approx(523e-6)
    assert overlaid("tcp", coprocessor_latency=20e-6)["slowest"] == CLEAN.latency.value


@given(
    st.sampled_from(["tcp", "roce-v2"]),
    st.lists(st.sampled_from(encapsulations(CONSTANTS)), max_size=3),
    st.sampled_from(encapsulations(CONSTANTS)),
    st.integers(1500, 9000),
)
def test_what_lies_between_never_helps(framing, encapsulation, one_more, mtu):
    less, more = overlaid(framing, *encapsulation, mtu=mtu), overlaid(framing, *encapsulation, one_more, mtu=mtu)
    assert more["goodput"] < less["goodput"] < 1
    assert more["bandwidth"] <= less["bandwidth"] <= CLEAN.bandwidth.value
    assert overlaid(framing, *encapsulation, mtu=mtu + 1000)["goodput"] >= less["goodput"]
    assert overlaid(framing, *reversed(encapsulation), mtu=mtu)["goodput"] == less["goodput"]


@pytest.mark.parametrize(("flows", "paths"), [(1, 1), (1, 4), (2, 2), (3, 2), (4, 4)])
def test_hashed_flows_use_the_mean_of_all_ways_to_hash_them(flows, paths):
    ways = list(product(range(paths), repeat=flows))
    used = Fraction(sum(len(set(way)) for way in ways), len(ways) * paths)
    assert compile_math(EqualCostPaths.system)(flows=flows, paths=Fraction(paths))["used_share"] == used


def test_as_many_hashed_flows_as_paths_use_63_percent_of_many():
    found = compile_math(EqualCostPaths.system)(flows=1000, paths=1000)["used_share"]
    assert found == pytest.approx(1 - math.exp(-1), abs=1e-3)


def test_a_hash_over_the_links_of_a_switch():
    one, many = overlaid("tcp", paths=32), overlaid("tcp", paths=32, flows=8)
    assert one["attained"] / one["by_wire"] == pytest.approx(1 - (31 / 32) ** 32)
    assert many["attained"] / many["by_wire"] > 0.999
    assert overlaid("tcp", flows=3)["by_paths"] == overlaid("tcp")["by_wire"]
