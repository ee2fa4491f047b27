"""Matrix products on a GPU: the smallest time over tiles and splits of K.

A unit is a streaming multiprocessor or compute unit. What a product takes is its start, and the slower of two things that
overlap, though not sharply: the waves of tiles over the units, and all operands and the result through memory once.
"""

from costmodel.equations.kernels.streaming import cached_slowness, overlapped, share_in_cache
from costmodel.equations.kernels.tiles import SPLIT, TILE, Tiles
from costmodel.symbolic import (
    BYTE,
    FLOP,
    Chapter,
    at_best,
    best,
    both,
    bytes_,
    bytes_per_second,
    ceil_divide,
    count,
    equation,
    flop,
    flop_per_second,
    given,
    infinite,
    largest,
    part,
    seconds,
    select,
)

FIT = "form and constants fitted to public kernel tables, see docs/explanation/kernels.md"
PARTIAL = 8
"""Bytes that an element of a partial result moves: written once and read once in fp32."""


class Gemm(Chapter):
    """`groups` products of [M, K] and [K, N], in one kernel, by tiles.

    Measured kernels near the ridge follow the cube root of the sum of cubes of compute and memory.
    """

    groups = given(count, "products of this shape in the kernel (G)", owner="workload")
    M = given(count, "rows of the result", owner="workload")
    N = given(count, "columns of the result", owner="workload")
    K = given(count, "features summed over", owner="workload")
    operand_size = given(bytes_, "an element of the operands, its share of the scales included", owner="workload")
    result_size = given(bytes_, "an element of the result", owner="workload")
    weight_copies = given(
        count, "matrices [K, N] used in turn: 1 when the same comes again at once, many in a model", owner="workload"
    )
    settle_time = given(
        seconds, "of full load until the clock has come down; 0 in the midst of long work", owner="assumption"
    )
    step_features = given(count, "features of K that are loaded and multiplied at a time", owner="assumption")
    cache_reach = given(
        count, "last-level caches of operands used in turn from which on none are found", owner="assumption"
    )

    units = given(count, "units of the chip (SMs)", owner="chip")
    peak = given(flop_per_second, "dense peak at this precision", owner="chip")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    cache_capacity = given(bytes_, "of the last-level cache", owner="chip")
    peak_share = given(count, "share of the peak inside the main loop of a short kernel", owner="chip")
    sustained_share = given(count, "share of this that is left under load that lasts", owner="chip")
    memory_share = given(count, "share of the memory bandwidth that the kernel attains", owner="chip")
    start = given(seconds, "of the kernel, device side: launch, prologue, last store", owner="chip")
    unit_bandwidth = given(bytes_per_second, "of operands into one unit", owner="chip")
    split_start = given(seconds, "more for a split sum: the second pass over the partial results", owner="chip")
    wave_fill = given(seconds, "of a wave of tiles: filling the pipeline, and the epilogue that shows", owner="chip")
    whole_waves = given(
        count, "1 where a wave ends together, 0 where units go on to the next tile at once", owner="chip"
    )
    cached_speedup = given(
        count, "rate of operands that lie in the last-level cache over those from memory", owner="chip"
    )

    # Work and traffic
    work = equation(flop, 2 * groups * M * N * K * FLOP, "a multiplication and an addition for each term")
    weight_bytes = equation(bytes_, groups * K * N * operand_size, "the matrices [K, N]")
    activation_bytes = equation(bytes_, groups * M * K * operand_size, "the matrices [M, K]")
    result_bytes = equation(bytes_, groups * M * N * result_size, "the results")
    traffic = equation(bytes_, weight_bytes + activation_bytes + result_bytes, "through memory, each once")
    turn_bytes = equation(
        bytes_, weight_copies * weight_bytes + activation_bytes + result_bytes, "used in turn before any comes again"
    )
    cached = equation(
        count,
        share_in_cache(turn_bytes, cache_capacity, cache_reach),
        "share found in the last-level cache: all of what fits it, none from some times that on",
    )
    memory_rate = equation(
        bytes_per_second,
        memory_share * memory_bandwidth / cached_slowness(cached, cached_speedup),
        "at which operands and results stream",
    )
    memory_time = equation(seconds, traffic / memory_rate, "all traffic at that rate")

    # Tiles over units
    sizes = part(Tiles, shared=True)
    tile_rows, tile_columns, ways = sizes.tile_rows, sizes.tile_columns, sizes.ways
    tiles = equation(
        count,
        groups * ceil_divide(M, tile_rows) * ceil_divide(N, tile_columns),
        "tiles of the result, those at the edges padded",
    )
    unit_rate = equation(flop_per_second, peak_share * peak / units, "of one unit's matrix units")
    multiply_time = equation(
        seconds, 2 * tile_rows * tile_columns * FLOP / unit_rate, "of a feature of K in a tile, on the matrix units"
    )
    feed_time = equation(
        seconds, (tile_rows + tile_columns) * operand_size / unit_bandwidth, "to bring a feature of K of a tile in"
    )
    feature_time = equation(seconds, largest(multiply_time, feed_time), "of a feature of K in a tile")
    part_features = equation(
        count, ceil_divide(K, ways * step_features) * step_features, "features of K that one unit sums, in whole steps"
    )
    waves = equation(
        count,
        (1 - whole_waves) * largest(1, tiles * ways / units) + whole_waves * ceil_divide(tiles * ways, units),
        "rounds over the units: fractions where a unit goes on at once, never less than one",
    )
    tile_compute = equation(
        seconds, waves * (part_features * feature_time + wave_fill), "all waves at the clock of a short kernel"
    )
    heat = equation(
        count,
        select(settle_time > 0, tile_compute / (tile_compute + settle_time), 1),
        "how far the clock has come down on average",
        approximate="one time constant for all chips",
    )
    warm_compute = equation(
        seconds, tile_compute * (1 + heat * (1 / sustained_share - 1)), "all waves at the clock that load leaves"
    )
    split_cost = equation(
        seconds,
        select(ways > 1, split_start + ways * groups * M * N * PARTIAL * BYTE / (unit_bandwidth * units), 0),
        "partial results through the cache, and the pass that adds them",
    )
    candidate = equation(
        seconds,
        select(
            both(ways > 1, ways * step_features > K),
            infinite,
            overlapped(warm_compute, memory_time) + split_cost,
        ),
        "one tile and split, start apart; a part of K holds at least one step",
    )

    # The best of them
    tile_time = equation(seconds, best(candidate, SPLIT), "the best split of a tile")
    product_time = equation(seconds, best(tile_time, TILE), "the best tile, start apart", source=FIT)
    best_rows = equation(count, at_best(tile_rows, tile_time, TILE), "rows of the best tile")
    best_columns = equation(count, at_best(tile_columns, tile_time, TILE), "columns of the best tile")
    best_ways = equation(count, at_best(at_best(ways, candidate, SPLIT), tile_time, TILE), "its split of K")
    best_waves = equation(count, at_best(at_best(waves, candidate, SPLIT), tile_time, TILE), "its waves")
    compute_time = equation(
        seconds, at_best(at_best(warm_compute, candidate, SPLIT), tile_time, TILE), "waves of the best tile"
    )
    split_time = equation(
        seconds, at_best(at_best(split_cost, candidate, SPLIT), tile_time, TILE), "of the best tile, for its split"
    )
    fill_time = equation(seconds, best_waves * wave_fill, "of this, filling")
    multiply_share = equation(
        count,
        at_best(multiply_time / feature_time, tile_time, TILE),
        "share of the main loop in which the matrix units of the best tile are busy",
    )
    overlapped_time = equation(seconds, product_time - split_time, "waves and memory traffic, overlapped")
    padding = equation(
        count,
        ceil_divide(M, best_rows) * best_rows * ceil_divide(N, best_columns) * best_columns / (M * N),
        "elements computed over those asked for",
    )

    # Low precision
    cast_size = given(
        bytes_, "moved to cast an activation: read wide, written narrow; 0 without cast", owner="workload"
    )
    cast_share = given(count, "share of the memory bandwidth that the cast attains", owner="chip")
    cast_row_time = given(seconds, "of a row of the cast on one unit, however short the row", owner="chip")
    cast_time = equation(
        seconds,
        select(
            cast_size > 0,
            largest(groups * M * K * cast_size / (cast_share * memory_bandwidth), groups * M * cast_row_time / units),
            0,
        ),
        "casting the activations, a kernel of its own before the product, its launch counted in the start: by the bytes, or, where a "
        "row is a block of threads, by the rows",
        source=FIT,
    )
    time = equation(
        seconds,
        start + cast_time + product_time,
        "the product, from launch to the last store",
        source=FIT,
    )
    rate = equation(flop_per_second, work / time, "attained")
    share_of_peak = equation(count, work / (time * peak), "attained")
