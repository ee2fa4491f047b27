"""Inside a product: hand-checked numbers of an H100, and the order of tiles against a walk over the waves."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.kernels.mainloop import BankConflicts, MainLoop, PipelineDepth, TileOrder
from costmodel.symbolic import compile_math

loop = compile_math(MainLoop.system)
depth = compile_math(PipelineDepth.system)
order = compile_math(TileOrder.system)
conflicts = compile_math(BankConflicts.system)
H100 = {"units": 132, "peak": 989.4e12, "memory_bandwidth": 3.35e12, "unit_memory": 228 * 1024}
ASSUMED = {"load_latency": 0.8e-6, "fast_memory_reserved": 1024, "bank_row": 128, "access_bytes": 16}
TILE = {"tile_rows": 128, "tile_columns": 256, "stage_features": 64, "operand_size": 2, "result_size": 2}
CUBE = {"M": 8192, "N": 8192, "K": 8192}


def test_a_tile_of_128_by_256_on_an_h100():
    """0.560 us and 48 KiB a stage: three stages cover 0.8 us, four fill 85 % of shared memory and leave 35 KiB."""
    found = loop(**H100, **ASSUMED, **TILE, **CUBE)
    assert found["stage_time"] == pytest.approx(0.560e-6, rel=1e-3)
    assert found["stage_bytes"] == 49_152
    assert (found["stages_needed"], found["stages_fitting"]) == (3, 4)
    assert found["fast_memory_share"] == pytest.approx(0.846, abs=1e-3)
    assert found["epilogue_room"] == pytest.approx(35 * 1024)
    assert found["bytes_in_flight"] == pytest.approx(2.68e6)


@pytest.mark.parametrize(("K", "exposed"), [(8192, 0.035), (512, 0.37)])
def test_an_epilogue_that_nothing_hides(K, exposed):
    """64 KiB of results at a unit's 25 GB/s: 2.58 us after a main loop of 71.6 us, or of 4.48 us."""
    found = depth(**H100, **{k: v for k, v in ASSUMED.items() if k[0] in "lf"}, **TILE, K=K)
    assert found["epilogue_time"] == pytest.approx(2.58e-6, rel=2e-3)
    assert found["epilogue_share"] == pytest.approx(exposed, abs=0.005)


def test_what_multicast_saves_of_the_demand_on_the_cache():
    found = loop(**H100, **ASSUMED, **TILE, **CUBE)
    demands = found["alone_demand"], found["pair_demand"], found["four_demand"]
    assert demands == pytest.approx((11.6e12, 7.73e12, 5.80e12), rel=2e-3)


SIMULATED = {1: 2.311e9, 4: 2.345e9, 8: 1.493e9, 16: 1.225e9, 32: 1.468e9, 64: 2.345e9}
"""Bytes to memory by height of the groups, of a simulated cache of 30 MiB with the least recently used thrown out."""


@pytest.mark.parametrize("group", SIMULATED)
def test_the_order_of_tiles_against_a_simulated_cache(group):
    found = order(**CUBE, operand_size=2, result_size=2, tile_rows=128, tile_columns=256, group_rows=group, units=132)
    assert found["traffic"] == pytest.approx(SIMULATED[group], rel=0.035)
    assert found["without_reuse"] == pytest.approx(12.88e9, rel=1e-3)
    assert found["compulsory"] == pytest.approx(0.268e9, rel=2e-3)
    assert round(found["best_group"]) == 16


def walked(rows, columns, group, units):
    """Rows and columns of tiles that each wave touches, in a walk over groups of rows, column by column."""
    tiles = [
        (row, column)
        for first in range(0, rows, group)
        for column in range(columns)
        for row in range(first, min(first + group, rows))
    ]
    waves = [tiles[k : k + units] for k in range(0, len(tiles), units)]
    return [(len({r for r, _ in wave}), len({c for _, c in wave})) for wave in waves]


@given(st.integers(8, 64), st.integers(8, 64), st.integers(1, 32), st.sampled_from((16, 100, 132)))
def test_the_order_of_tiles_against_a_walk(rows, columns, group, units):
    """The closed form is within 45 % of the walk for any shape: what it is used for is to tell orders apart by factors."""
    found = order(
        M=rows * 128,
        N=columns * 128,
        K=64,
        operand_size=1,
        result_size=0,
        tile_rows=128,
        tile_columns=128,
        group_rows=min(group, rows),
        units=units,
    )
    exact = sum(r + c for r, c in walked(rows, columns, min(group, rows), units)) * 128 * 64
    assert 0.55 < found["traffic"] / exact < 1.45


@pytest.mark.parametrize(
    ("row_bytes", "access_bytes", "ways"),
    [(128, 4, 32), (132, 4, 1), (192, 4, 16), (64, 16, 4), (128, 16, 8), (144, 16, 1)],
)
def test_bank_conflicts(row_bytes, access_bytes, ways):
    """Columns of words with strides of 32, 33 and 48 words; fragments of 16 bytes in rows of 64, 128 and padded 144 bytes."""
    found = conflicts(row_bytes=row_bytes, access_bytes=access_bytes, bank_row=128, swizzled=0)
    assert found["ways"] == ways == math.gcd(row_bytes // access_bytes, 128 // access_bytes)
    assert conflicts(row_bytes=row_bytes, access_bytes=access_bytes, bank_row=128, swizzled=1)["ways"] == 1
