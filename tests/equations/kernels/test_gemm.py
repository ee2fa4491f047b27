"""Products by tiles: a chip with round numbers, the laws of a roofline, and the staircase of tiles and waves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.kernels.gemm import Gemm
from costmodel.equations.kernels.interval import KernelInterval, TypicalUnit
from costmodel.equations.kernels.systolic import SystolicGemm
from costmodel.equations.kernels.tiles import KERNEL_AXES, TILE
from costmodel.symbolic import compile_math

evaluate = compile_math(Gemm.system, looped=KERNEL_AXES)
systolic = compile_math(SystolicGemm.system)
CHIP = {
    "units": 100,
    "peak": 1e15,
    "memory_bandwidth": 1e12,
    "cache_capacity": 1e6,
    "peak_share": 0.8,
    "sustained_share": 1.0,
    "memory_share": 0.8,
    "start": 2e-6,
    "unit_bandwidth": 1e12,
    "split_start": 2e-6,
    "wave_fill": 0.0,
    "whole_waves": 0.0,
    "cached_speedup": 1.0,
    "cast_share": 1.0,
    "cast_row_time": 0.0,
    "cast_size": 0,
    "operand_size": 2,
    "result_size": 2,
    "weight_copies": float("inf"),
    "settle_time": 3e-3,
    "step_features": 64,
    "cache_reach": 1.2,
    "groups": 1,
}
PLAIN = TILE.labels.index("128x128")
sizes = st.builds(lambda power, odd: 2**power * odd, st.integers(0, 12), st.sampled_from((1, 3, 5, 7)))


def product(M, N, K, **chip):
    return evaluate(M=M, N=N, K=K, **CHIP | chip)


def test_a_product_on_round_numbers():
    """1280 x 1280 by tiles of 128: 100 tiles, one wave of 100 units, each 2 x 128 x 128 x 6400 FLOP at 8e12 a second: 26.2 us."""
    found = product(1280, 1280, 6400, memory_bandwidth=1e15)
    assert found["tiles"][PLAIN] == 100
    assert found["waves"][PLAIN][0] == 1
    assert found["tile_compute"][PLAIN][0] == pytest.approx(2 * 128 * 128 * 6400 / 8e12)
    assert found["time"] == pytest.approx(2e-6 + 26.2144e-6, rel=1e-3)


def test_one_row_streams_the_weights():
    """2e8 bytes at 0.8 of 1e12 a second: 0.25 ms, and a start of 2 us."""
    found = product(1, 10_000, 10_000)
    assert found["time"] == pytest.approx(0.252e-3, rel=0.02)
    assert found["memory_time"] > found["compute_time"]


@given(sizes, sizes, sizes, st.sampled_from((0.0, 1.0)))
def test_never_faster_than_the_roofline(M, N, K, whole):
    found = product(M, N, K, whole_waves=whole)
    assert found["time"] >= 2 * M * N * K / CHIP["peak"]
    assert found["time"] >= 2 * (M * K + K * N + M * N) / CHIP["memory_bandwidth"]
    assert found["share_of_peak"] <= 1


@given(sizes, sizes, sizes)
def test_the_parts_add_up_and_the_best_is_the_least(M, N, K):
    found = product(M, N, K)
    parts = CHIP["start"] + found["cast_time"] + found["overlapped_time"] + found["split_time"]
    assert parts == pytest.approx(found["time"], rel=1e-12)
    assert found["product_time"] == min(min(row) for row in found["candidate"])
    by_label = f"{found['best_rows']}x{found['best_columns']}"
    assert found["tile_time"][TILE.labels.index(by_label)] == found["product_time"]


@given(st.integers(1, 40), st.integers(1, 128))
def test_the_waves_are_a_staircase_of_tiles(tiles, inside):
    """Of one tile, the compute is the same anywhere inside a tile of rows, and more from the next on, by whole waves."""
    M = (tiles - 1) * 128 + inside
    whole = {"whole_waves": 1.0}
    step = product(M, 12_800, 512, **whole)["tile_compute"][PLAIN][0]
    full = product(tiles * 128, 12_800, 512, **whole)["tile_compute"][PLAIN][0]
    more = product(tiles * 128 + 1, 12_800, 512, **whole)["tile_compute"][PLAIN][0]
    assert step == full < more
    assert full == pytest.approx(2 * tiles * 128 * 12_800 * 512 / (0.8 * CHIP["peak"]))


@given(st.integers(1, 3000))
def test_waves_are_the_tiles_over_the_units_rounded_up(tiles):
    found = product(tiles * 128, 128, 64, whole_waves=1.0)
    assert found["waves"][PLAIN][0] == -(-tiles // 100)
    fractional = product(tiles * 128, 128, 64)["waves"][PLAIN][0]
    assert fractional == max(1, tiles / 100) <= found["waves"][PLAIN][0]


@given(sizes, sizes, sizes, st.sampled_from("MNK"))
def test_more_work_is_never_faster(M, N, K, axis):
    shape = {"M": M, "N": N, "K": K}
    assert product(**shape | {axis: 2 * shape[axis]})["time"] >= product(**shape)["time"] * (1 - 1e-12)


def test_a_long_sum_with_few_tiles_is_split():
    alone = product(128, 128, 65_536, split_start=1.0, memory_bandwidth=1e15)
    split = product(128, 128, 65_536, memory_bandwidth=1e15)
    assert alone["best_ways"] == 1
    assert split["best_ways"] > 1
    assert split["time"] < alone["time"] / 2


def test_groups_are_tiles_of_one_kernel():
    """Eight products of 256 rows take what one of 2048 does where memory does not bind."""
    many = product(256, 2560, 8192, groups=8, memory_bandwidth=1e16)
    one = product(2048, 2560, 8192, memory_bandwidth=1e16)
    assert many["work"] == one["work"]
    assert many["time"] == pytest.approx(one["time"], rel=0.01)


def test_the_clock_comes_down_with_time():
    """Sustained at 0.9: a kernel much shorter than the settling time is unhurt, one much longer takes a ninth more."""
    short, long = (product(n, n, n, sustained_share=0.9) for n in (1024, 65_536))
    for found, factor in ((short, 1.0), (long, 1 / 0.9)):
        plain = product(*(round((found["work"] / 2) ** (1 / 3)),) * 3)
        assert found["compute_time"] == pytest.approx(plain["compute_time"] * factor, rel=0.01)
    steady = product(1024, 1024, 1024, sustained_share=0.9, settle_time=0)
    assert steady["compute_time"] == pytest.approx(short["compute_time"] / 0.9, rel=0.01)


def test_what_fits_the_cache_streams_faster():
    warm = product(16, 256, 1024, weight_copies=1, cached_speedup=4.0, cache_capacity=1e8)
    cold = product(16, 256, 1024, cached_speedup=4.0, cache_capacity=1e8)
    assert (warm["cached"], cold["cached"]) == (1, 0)
    assert warm["memory_time"] == pytest.approx(cold["memory_time"] / 4)


def test_a_cast_is_a_stream_of_its_own():
    """3 bytes an activation: 2 read, 1 written, at half of 1e12 a second."""
    found = product(4096, 4096, 4096, cast_size=3, cast_share=0.5)
    assert found["cast_time"] == pytest.approx(3 * 4096 * 4096 / 0.5e12)
    assert found["time"] == pytest.approx(product(4096, 4096, 4096)["time"] + found["cast_time"])


def test_a_cast_of_short_rows_goes_by_the_rows():
    """8192 rows of a microsecond each on 100 units: 81.92 us, where 256 features in three bytes would stream in 6."""
    short = product(8192, 1024, 256, cast_size=3, cast_share=1, units=100, cast_row_time=1e-6)
    assert short["cast_time"] == pytest.approx(81.92e-6)
    assert product(8192, 1024, 256, cast_row_time=1e-6)["cast_time"] == 0


ARRAY = {
    "groups": 1,
    "operand_size": 2,
    "result_size": 2,
    "array_size": 128,
    "sublanes": 8,
    "peak": 1e14,
    "memory_bandwidth": 1e12,
    "peak_share": 1.0,
    "memory_share": 1.0,
    "start": 0.0,
}


def test_an_array_pads_both_sides_of_the_weights():
    """129 columns cost 256, 1 row costs 8: the book's rule."""
    found = systolic(M=1, N=129, K=128, **ARRAY)
    assert found["padded_work"] == 2 * 8 * 256 * 128
    assert systolic(M=1024, N=1024, K=1024, **ARRAY)["padding"] == 1


@given(sizes, sizes, sizes)
def test_an_array_is_never_faster_than_the_roofline(M, N, K):
    found = systolic(M=M, N=N, K=K, **ARRAY)
    assert found["time"] >= max(2 * M * N * K / 1e14, found["traffic"] / 1e12) * (1 - 1e-12)


interval = compile_math(KernelInterval.system)
BOUNDS = {"low": 0.9, "high": 1.2, "near_low": 0.9, "near_high": 1.1}
ON_CHIP = {"peak": 1e15, "cache_capacity": 5e7, "memory_bandwidth": 1e12}


def test_an_interval_holds_its_time():
    found = interval(time=1e-3, work=4e11, streamed=1e8, **BOUNDS, **ON_CHIP)
    assert (found["low_time"], found["high_time"]) == pytest.approx((0.81e-3, 1.32e-3))


@pytest.mark.parametrize(
    ("work", "streamed", "low_time"),
    [(9e11, 0.0, 0.9e-3), (0.0, 9.5e8, 0.9e-3), (0.0, 5e7, 0.81e-3), (2e12, 0.0, 2e-3)],
    ids=["peak", "memory", "all of it cached", "beyond the upper end"],
)
def test_an_interval_ends_where_the_chip_does(work, streamed, low_time):
    """1e15 FLOP/s and 1e12 B/s: 9e11 FLOP, or 9e8 bytes beside the cache's 5e7, take 0.9 ms whatever a class of errors says."""
    found = interval(time=1e-3, work=work, streamed=streamed, **BOUNDS, **ON_CHIP)
    assert found["low_time"] == pytest.approx(low_time)
    assert found["high_time"] == pytest.approx(max(1.32e-3, low_time))


def test_a_usual_unit_feeds_a_square_tile():
    """A tile of 128 by 128 does 128 FLOP for each of its bytes in 16 bits: 1e13 FLOP/s of a unit need 7.8e10 B/s, and a margin."""
    unit = compile_math(TypicalUnit.system)(
        feed_margin=1.5, square_tile=128, operand_size=2, units=100, peak=1e15, peak_share=1.0
    )
    assert unit["unit_bandwidth"] == pytest.approx(1.5 * 1e13 / 64)
