"""Inside a tiled matrix product: how deep its pipeline must be, what it asks of the cache, in which order its tiles should go.

None of this enters the predicted time, whose constants hold what good libraries make of it: it says what a kernel needs to get there.
"""

from costmodel.symbolic import (
    FLOP,
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_divide,
    count,
    divides,
    equation,
    floor_divide,
    flop_per_second,
    given,
    largest,
    nearest_whole,
    part,
    seconds,
    select,
    smallest,
    square_root,
)

LITTLE = "Little's law: what is on the way is rate times latency"


class PipelineDepth(Chapter):
    """Stages of operands in fast memory, so that the matrix units never wait for memory."""

    tile_rows = given(count, "rows of a tile (BM)")
    tile_columns = given(count, "columns of a tile (BN)")
    stage_features = given(count, "features of K of a stage (BK)", owner="assumption")
    K = given(count, "features summed over", owner="workload")
    operand_size = given(bytes_, "an element of the operands", owner="workload")
    result_size = given(bytes_, "an element of the result", owner="workload")
    units = given(count, "units of the chip (SMs)", owner="chip")
    peak = given(flop_per_second, "dense peak at this precision", owner="chip")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    load_latency = given(seconds, "from asking memory for a stage to having it, under load", owner="assumption")
    unit_memory = given(bytes_, "fast memory of a unit", owner="chip")
    fast_memory_reserved = given(bytes_, "of it that no kernel can have", owner="assumption")

    stage_time = equation(
        seconds,
        2 * tile_rows * tile_columns * stage_features * units * FLOP / peak,
        "of the matrix units for one stage, at the peak",
    )
    stages_needed = equation(
        count, 1 + ceil_divide(load_latency, stage_time), "one in use, the others on the way", source=LITTLE
    )
    stage_bytes = equation(bytes_, (tile_rows + tile_columns) * stage_features * operand_size, "operands of one stage")
    fast_memory = equation(bytes_, unit_memory - fast_memory_reserved, "that a kernel can have of a unit's")
    stages_fitting = equation(count, floor_divide(fast_memory, stage_bytes), "that fast memory holds")
    pipeline_bytes = equation(bytes_, stages_fitting * stage_bytes, "of these")
    fast_memory_share = equation(count, pipeline_bytes / fast_memory, "of fast memory that the stages fill")
    epilogue_room = equation(bytes_, fast_memory - pipeline_bytes, "left for the results on their way out")
    bytes_in_flight = equation(
        bytes_, memory_bandwidth * load_latency, "that keep the memory busy, chip-wide", source=LITTLE
    )
    main_time = equation(seconds, K / stage_features * stage_time, "of a tile's main loop, at the peak")
    fill_share = equation(
        count, load_latency / main_time, "filling over the main loop, where each tile fills the pipeline anew"
    )
    result_bytes = equation(bytes_, tile_rows * tile_columns * result_size, "results of a tile")
    epilogue_time = equation(
        seconds, result_bytes * units / memory_bandwidth, "draining a tile's results at a unit's part of the bandwidth"
    )
    epilogue_share = equation(
        count,
        epilogue_time / (epilogue_time + main_time),
        "of a tile's time, where no other tile is computed meanwhile",
    )


class Multicast(Chapter):
    """What the tiles ask of the last-level cache at full speed, and what clusters that share operands save."""

    tile_rows = given(count, "rows of a tile (BM)")
    tile_columns = given(count, "columns of a tile (BN)")
    stage_features = given(count, "features of K of a stage (BK)", owner="assumption")
    operand_size = given(bytes_, "an element of the operands", owner="workload")
    units = given(count, "units of the chip (SMs)", owner="chip")
    peak = given(flop_per_second, "dense peak at this precision", owner="chip")
    cluster_rows = given(count, "tiles of a cluster below one another, which share columns", owner="workload")
    cluster_columns = given(count, "tiles of a cluster side by side, which share rows", owner="workload")

    stage_time = equation(
        seconds, 2 * tile_rows * tile_columns * stage_features * units * FLOP / peak, "of the matrix units for a stage"
    )
    stage_bytes = equation(
        bytes_,
        (tile_rows / cluster_columns + tile_columns / cluster_rows) * stage_features * operand_size,
        "that one unit fetches itself for a stage",
    )
    demand = equation(
        bytes_per_second,
        units * stage_bytes / stage_time,
        "of all units on the cache, with the matrix units at the peak",
    )


class TileOrder(Chapter):
    """Traffic to memory by the order of the tiles: groups of G rows of tiles, each walked down its columns.

    Holds where the slices of K that a wave works on fit the last-level cache, not whole rows and columns of tiles.
    """

    M = given(count, "rows of the result", owner="workload")
    N = given(count, "columns of the result", owner="workload")
    K = given(count, "features summed over", owner="workload")
    operand_size = given(bytes_, "an element of the operands", owner="workload")
    result_size = given(bytes_, "an element of the result", owner="workload")
    tile_rows = given(count, "rows of a tile (BM)")
    tile_columns = given(count, "columns of a tile (BN)")
    group_rows = given(count, "rows of tiles in a group (G)")
    units = given(count, "units of the chip, each with one tile of a wave", owner="chip")

    rows_of_tiles = equation(count, ceil_divide(M, tile_rows), "rows of tiles")
    columns_of_tiles = equation(count, ceil_divide(N, tile_columns), "columns of tiles")
    tiles = equation(count, rows_of_tiles * columns_of_tiles, "in all")
    waves = equation(count, largest(1, tiles / units), "rounds over the units, the last one counted by its part")
    wave_columns = equation(
        count, smallest(columns_of_tiles, ceil_divide(units, group_rows)), "columns of tiles that a wave touches"
    )
    wave_rows = equation(
        count,
        smallest(rows_of_tiles, units, largest(group_rows, ceil_divide(units, columns_of_tiles))),
        "rows of tiles that it touches: of several groups where one is smaller than a wave",
    )
    traffic = equation(
        bytes_,
        waves * (wave_rows * tile_rows + wave_columns * tile_columns) * K * operand_size + M * N * result_size,
        "through memory: each wave its rows and columns once, the result once",
        approximate="waves that straddle two groups: within 3 % of a simulated cache on a product of 8192 cubed",
    )
    without_reuse = equation(
        bytes_, tiles * (tile_rows + tile_columns) * K * operand_size, "that the units ask for, from cache or memory"
    )
    compulsory = equation(bytes_, (M + N) * K * operand_size, "each operand once")
    hit_share = equation(
        count, 1 - (traffic - M * N * result_size) / without_reuse, "of what units ask for that the cache has"
    )
    best_group = equation(
        count,
        square_root(units * tile_columns / tile_rows),
        "group that makes a wave square and its traffic least",
        source="derivative of G BM + units / G BN",
    )


class BankConflicts(Chapter):
    """How often a request to fast memory of 32 banks of 4 bytes is repeated, for rows of a power of two of bytes or padded."""

    row_bytes = given(bytes_, "from one row of a tile in fast memory to the next")
    access_bytes = given(bytes_, "that a thread takes at once: 4, or 16 for the loads of matrix fragments")
    bank_row = given(bytes_, "that all banks give at once: 128", owner="assumption")
    swizzled = given(count, "1 where the parts of a row are permuted from row to row, else 0")

    parts = equation(count, bank_row / access_bytes, "accesses that all banks serve at once")
    stride = equation(count, row_bytes / access_bytes, "accesses from one row to the next")
    ways = equation(
        count,
        select(
            swizzled > 0,
            1,
            smallest(
                parts,
                largest(
                    select(divides(2, stride), 2, 1),
                    select(divides(4, stride), 4, 1),
                    select(divides(8, stride), 8, 1),
                    select(divides(16, stride), 16, 1),
                    select(divides(32, stride), 32, 1),
                ),
            ),
        ),
        "rounds of a column of accesses: the greatest common divisor of stride and parts",
        source="32 banks of 4 bytes; both numbers of accesses in a row of banks are powers of two",
    )


class MainLoop(Chapter):
    """The three together for the tile that a product was given."""

    depth = part(PipelineDepth, shared=True)
    alone = part(Multicast, cluster_rows=1, cluster_columns=1)
    pair = part(Multicast, cluster_rows=2, cluster_columns=1)
    four = part(Multicast, cluster_rows=2, cluster_columns=2)
    in_rows = part(TileOrder, group_rows=1)
    access_bytes = given(bytes_, "that a thread takes at once", owner="assumption")
    row_bytes = equation(
        bytes_,
        nearest_whole(depth.stage_features * depth.operand_size / access_bytes) * access_bytes,
        "from one row of a stage in fast memory to the next, unpadded, scales apart",
    )
    plain_rows = part(BankConflicts, row_bytes=row_bytes, swizzled=0)
    swizzled_rows = part(BankConflicts, row_bytes=row_bytes, swizzled=1)
    whole_group = equation(
        count, largest(1, nearest_whole(in_rows.best_group)), "rows of tiles of the best group, in whole rows"
    )
    grouped = part(TileOrder, group_rows=whole_group)
