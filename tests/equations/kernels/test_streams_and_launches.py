"""Fused and unfused traffic, and a chain of kernels by the way it is launched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.catalog.catalog import Catalog
from costmodel.equations.kernels.launch import LaunchChain
from costmodel.equations.kernels.streams import OPERATIONS, Stream
from costmodel.symbolic import compile_math

stream = compile_math(Stream.system)
launches = compile_math(LaunchChain.system)
CHIP = {
    "narrow_size": 1,
    "array_copies": float("inf"),
    "cache_reach": 1.2,
    "memory_bandwidth": 1e12,
    "memory_share": 0.8,
    "start": 2e-6,
    "cache_capacity": 5e7,
    "cached_speedup": 1.0,
}
ASSUMED = {name: number.value for name, number in Catalog.open().assumptions("kernels").items()}


def row_wise(operation, rows=1000, columns=1000):
    return stream(row_operation=OPERATIONS.index(operation), rows=rows, columns=columns, element_size=2, **CHIP)


def test_a_gated_activation_saves_two_of_five_passes():
    found = row_wise("swiglu")
    assert (found["traffic"], found["unfused_traffic"]) == (6e6, 10e6)
    assert found["time"] == pytest.approx(2e-6 + 6e6 / 0.8e12)


def test_a_residual_and_a_norm_read_two_and_write_two():
    assert row_wise("residual-norm")["traffic"] == 4 * 2e6


@pytest.mark.parametrize("operation", OPERATIONS)
def test_fusing_never_costs(operation):
    found = row_wise(operation)
    assert found["traffic"] <= found["unfused_traffic"]
    assert found["time"] <= found["unfused_time"]
    assert found["time"] >= found["traffic"] / CHIP["memory_bandwidth"]


def chain(kernels=4, kernel_time=3.4e-6, slow_kernels=2, **more):
    gaps = {"device_gap": 2e-6, "graph_gap": 1.4e-6}
    return launches(kernels=kernels, kernel_time=kernel_time, slow_kernels=slow_kernels, **ASSUMED_INPUTS | gaps | more)


ASSUMED_INPUTS = {name: ASSUMED[name] for name in ("host_launch", "slow_host_launch", "graph_launch", "prologue_time")}


def test_two_fills_and_two_products_through_a_slow_and_a_fast_path():
    """A post's chain of four: 110 us where the two products are launched by a Python kernel language, 22 us by a fast path."""
    found = chain()
    assert found["dsl_time"] == pytest.approx(110e-6, rel=0.1)
    assert found["eager_time"] == pytest.approx(22e-6, rel=0.1)
    assert found["pdl_time"] == pytest.approx(22e-6, rel=0.1)


def test_the_gap_between_the_two_products():
    """40 us before, 1 us with the fast path and programmatic dependent launch; the products are 256 cubed, some 5 us."""
    found = chain(kernel_time=5e-6)
    assert found["dsl_gap"] == pytest.approx(40e-6, rel=0.1)
    assert found["pdl_gap"] == pytest.approx(1e-6, rel=0.1)


def test_a_long_graph_of_short_kernels():
    """1,185 launches with 6.67 ms of work: 53.7 ms eager at 45 us each, 12 ms as a graph at 4.5 us each (SAM 2, issue 768)."""
    found = chain(
        kernels=1185, kernel_time=6.67e-3 / 1185, slow_kernels=0, host_launch=45e-6, graph_gap=4.5e-6, device_gap=4.5e-6
    )
    assert found["eager_time"] == pytest.approx(53.7e-3, rel=0.02)
    assert found["graph_time"] == pytest.approx(11.98e-3, rel=0.02)


@given(st.integers(1, 5000), st.floats(1e-7, 1e-3))
def test_launching_never_makes_work_disappear(kernels, kernel_time):
    found = chain(kernels=kernels, kernel_time=kernel_time, slow_kernels=kernels)
    for way in ("eager", "dsl", "graph", "pdl", "pdl_graph"):
        assert found[f"{way}_time"] >= found["busy_time"]
        assert found[f"{way}_overhead"] >= 0
    assert found["pdl_time"] <= found["eager_time"] <= found["dsl_time"]
    assert found["pdl_graph_time"] <= found["graph_time"]
