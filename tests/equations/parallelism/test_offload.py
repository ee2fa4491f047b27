"""Offload: numbers of the papers and of DeepSpeed's estimators, hand-checked cases, and laws."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.parallelism.offload import (
    DriveUpdate,
    EstimatedZero2,
    EstimatedZero3,
    HostShare,
    HostStates,
    Streamed,
    ZeroOffload,
)
from costmodel.symbolic import compile_math

GIB = 2**30
host_share = compile_math(HostShare.system)
streamed = compile_math(Streamed.system)
zero_offload = compile_math(ZeroOffload.system)
drives = compile_math(DriveUpdate.system)
host_states = compile_math(HostStates.system)
zero2 = compile_math(EstimatedZero2.system)
zero3 = compile_math(EstimatedZero3.system)

positive = st.fractions(Fraction(1, 100), 1000, max_denominator=100)


def weights(tokens, rate, bandwidth, *, bytes_a_weight=8, efficiency=Fraction(1, 2)):
    """A weight that eight FLOP a token are done with, copied in three times and its gradient out once."""
    return streamed(
        work=8 * tokens, moved=bytes_a_weight, compute_rate=rate, bandwidth=bandwidth, efficiency=efficiency
    )


def one_chip(parameters, *, bandwidth, memory, rate, shards=1, chips=1, compute=0):
    return zero_offload(
        parameters=parameters,
        shards=shards,
        wire_bytes=2,
        update_traffic=28,
        passes_flops=8,
        compute=compute,
        compute_rate=rate,
        link_bandwidth=bandwidth,
        memory_bandwidth_of_host=memory,
        chips_per_host=chips,
    )


def test_the_70_gigabytes_of_zero_infinity():
    found = weights(1024, 70e12, 70e9)
    assert found["intensity"] == 1024
    assert found["needed_in_turn"] / 1e9 == pytest.approx(68.4, abs=0.05)
    assert found["reached"] == pytest.approx(0.506, abs=0.001)


def test_optimizer_states_have_a_quarter_of_the_intensity():
    assert weights(1024, 70e12, 70e9, bytes_a_weight=32)["intensity"] == 256


def test_activations_have_24_times_the_hidden_size():
    hidden_size, tokens = 8192, 512
    found = streamed(
        work=8 * 12 * hidden_size**2 * tokens,
        moved=4 * tokens * hidden_size,
        compute_rate=1,
        bandwidth=1,
        efficiency=Fraction(1, 2),
    )
    assert found["intensity"] == 24 * hidden_size


@pytest.mark.parametrize(("bytes_a_weight", "tokens"), [(8, 7273), (32, 29091)])
def test_tokens_that_hide_the_copies_of_an_h100(bytes_a_weight, tokens):
    assert weights(tokens, 400e12, 55e9, bytes_a_weight=bytes_a_weight)["exposed"] == 0
    assert weights(tokens - 1, 400e12, 55e9, bytes_a_weight=bytes_a_weight)["exposed"] > 0
    assert weights(tokens, 400e12, 55e9, bytes_a_weight=bytes_a_weight)["needed"] == pytest.approx(55e9, rel=2e-4)


def test_13_billion_weights_on_one_a100():
    found = one_chip(13e9, bandwidth=25e9, memory=150e9, rate=140e12)
    assert found["copies"] == pytest.approx(2.08)
    assert found["update"] == pytest.approx(2.43, abs=0.005)
    assert found["tokens_for_all"] == pytest.approx(6067, abs=1)


def test_adam_on_the_host_of_3_billion_weights():
    for memory, least in ((200e9, 0.43), (400e9, 0.22)):
        found = one_chip(3.09e9, bandwidth=25e9, memory=memory, rate=1e14, shards=2, chips=2)
        assert found["update"] == pytest.approx(least, abs=0.005)


def test_12_bytes_a_weight_and_not_2():
    assert streamed(work=0.3e9, moved=12 * 0.3e9, compute_rate=1e15, bandwidth=16.36e9, efficiency=Fraction(1, 2))[
        "copied"
    ] == pytest.approx(0.22, rel=1e-3)


def test_drives_of_a_host():
    found = drives(owned=10**9, chips_per_host=8, drives=8, drive_bandwidth=4 * 10**9, drive_traffic=32)
    assert found["drive_update"] == 8
    assert drives(owned=10**9, chips_per_host=8, drives=8, drive_bandwidth=4 * 10**9, drive_traffic=24)[
        "drive_update"
    ] == pytest.approx(6)


def test_10_billion_weights_on_one_drive_are_bound_by_it():
    # 3 GB/s for weights and gradients of a micro-batch of 1024 tokens: a tenth of the 35 TFLOP/s of a V100, 2.3 seen
    found = weights(1024, 35e12, 3e9)
    assert found["reached"] == pytest.approx(0.081, abs=0.001)
    assert found["needed"] == pytest.approx(34.2e9, rel=1e-3)


@pytest.mark.parametrize(
    ("chips", "link", "memory", "per_chip"), [(8, 50, 800, 50), (8, 50, 200, 25), (1, 450, 400, 400)]
)
def test_chips_share_their_host(chips, link, memory, per_chip):
    found = host_share(link_bandwidth=link, memory_bandwidth_of_host=memory, chips_per_host=chips)
    assert found["per_chip"] == per_chip
    assert found["per_host"] == chips * per_chip <= memory


def test_600_gigabytes_of_host_memory_are_too_few_for_33_billion_weights():
    found = host_states(owned=32.5e9 / 8, chips_per_host=8, states=16, states_with_weights=18, buffers=1.5)
    assert found["optimizer_on_host"] / 1e9 == pytest.approx(780)
    assert found["all_on_host"] / 1e9 == pytest.approx(877.5)


def test_estimates_of_zero_2():
    found = zero2(parameters=2851e6, gpus_per_host=8, hosts=1, buffers=1.5)
    assert found["on_gpu"] / GIB == pytest.approx(15.93, abs=0.005)
    assert found["on_gpu_offloaded"] / GIB == pytest.approx(5.31, abs=0.005)
    assert found["on_host_offloaded"] == 32 * 2851e6 * 1.5
    assert zero2(parameters=100, gpus_per_host=1, hosts=1, buffers=1)["on_host_offloaded"] == 1600


def test_estimates_of_zero_3():
    given_ = {"largest_layer": 131e6, "gpus_per_host": 4, "hosts": 1, "sharded_from_start": 1, "buffers": 1.5}
    found = zero3(parameters=6805e6, **given_)
    assert found["on_gpu"] / GIB == pytest.approx(29.01, abs=0.005)
    assert found["on_gpu_optimizer"] / GIB == pytest.approx(3.66, abs=0.005)
    assert found["on_gpu_all"] / GIB == pytest.approx(0.49, abs=0.005)
    assert zero3(parameters=2851e6, **given_)["on_host_all"] / GIB == pytest.approx(71.71, abs=0.03)


def test_every_rank_that_makes_the_model_costs_4_bytes_a_weight():
    given_ = {"parameters": 100, "largest_layer": 10, "hosts": 1, "buffers": 1}
    at_once = zero3(gpus_per_host=8, sharded_from_start=0, **given_)
    assert (at_once["on_host_optimizer"], at_once["on_host_all"], at_once["on_host"]) == (3200, 3200, 3200)
    sharded = zero3(gpus_per_host=8, sharded_from_start=1, **given_)
    assert (sharded["on_host_optimizer"], sharded["on_host_all"], sharded["on_host"]) == (1600, 1800, 320)


@given(positive, positive, positive, positive)
def test_wanting_half_in_turn_needs_what_hiding_needs(work, moved, rate, bandwidth):
    found = streamed(work=work, moved=moved, compute_rate=rate, bandwidth=bandwidth, efficiency=Fraction(1, 2))
    assert found["needed_in_turn"] == found["needed"]
    assert found["reached"] == found["compute"] / (found["compute"] + found["copied"])
    assert (found["exposed"] == 0) == (bandwidth >= found["needed"])


@given(positive, positive, positive, positive, st.integers(1, 64), st.integers(1, 16))
def test_a_late_update_never_shows_more(parameters, bandwidth, memory, compute, shards, chips):
    found = one_chip(
        parameters, bandwidth=bandwidth, memory=memory, rate=1, shards=Fraction(shards), chips=chips, compute=compute
    )
    assert found["exposed_delayed"] <= found["exposed"] <= found["copies"] + found["update"]
    more = one_chip(
        parameters,
        bandwidth=bandwidth,
        memory=memory,
        rate=1,
        shards=Fraction(2 * shards),
        chips=chips,
        compute=compute,
    )
    assert more["exposed"] <= found["exposed"]
    assert more["copies"] == found["copies"] / 2
