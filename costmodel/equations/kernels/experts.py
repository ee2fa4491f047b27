"""The expert block of a mixture-of-experts layer on one chip: permute, grouped products, activation, combine."""

from costmodel.equations.kernels.streaming import cached_slowness, overlapped, share_in_cache
from costmodel.equations.kernels.tiles import ROW_TILE
from costmodel.symbolic import (
    FLOP,
    Chapter,
    at_best,
    best,
    bytes_,
    bytes_per_second,
    ceil_divide,
    count,
    equation,
    flop,
    flop_per_second,
    given,
    rows,
    seconds,
    smallest,
)

FIT = "form and constants fitted to public kernel tables, see docs/explanation/kernels.md"


class ExpertBlock(Chapter):
    """Experts, all on this chip, with a gate or without, tokens spread evenly over them; a rank of several holds its share of `experts`."""

    tokens = given(count, "tokens of the batch", owner="workload")
    hidden_size = given(count, "width of the model (D)", owner="workload")
    expert_ffn_size = given(count, "width of an expert's feed-forward", owner="workload")
    experts = given(count, "experts (E)", owner="workload")
    chosen = given(count, "experts of a token (k)", owner="workload")
    gated = given(count, "1 where the activation has a gate, 0 where it has none", owner="workload")
    weight_size = given(bytes_, "a weight, its share of the scales included", owner="workload")
    activation_size = given(bytes_, "an element of activations between kernels", owner="workload")
    column_tile = given(count, "columns of a tile", owner="assumption")
    units = given(count, "units of the chip (SMs)", owner="chip")
    peak = given(flop_per_second, "dense peak at this precision", owner="chip")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    peak_share = given(count, "share of the peak in the grouped products", owner="chip")
    memory_share = given(count, "share of the memory bandwidth that the weights attain", owner="chip")
    unit_bandwidth = given(bytes_per_second, "of operands into one unit", owner="chip")
    activation_share = given(
        count, "share of the memory bandwidth that permute, activation and combine attain", owner="chip"
    )
    start = given(seconds, "of all kernels of the block", owner="chip")
    expert_start = given(seconds, "of an active expert, beside its work, on one unit", owner="chip")
    listing_time = given(
        seconds, "of each expert, active or not: counting its rows, its place in the grouped products", owner="chip"
    )
    cache_capacity = given(bytes_, "of the last-level cache", owner="chip")
    cached_speedup = given(count, "rate of weights in the last-level cache over those from memory", owner="chip")
    cache_reach = given(
        count, "last-level caches of operands used in turn from which on none are found", owner="assumption"
    )
    weight_copies = given(
        count, "layers whose experts are used in turn: 1 when the same come again at once", owner="workload"
    )

    active = equation(
        count,
        smallest(experts, tokens * chosen),
        "experts that a token comes to, where tokens are spread evenly",
    )
    matrices = equation(count, 2 + gated, "of an expert: into it, out of it, and its gate")
    rows_each = equation(count, tokens * chosen / active, "tokens of one of them")
    work = equation(
        flop, 2 * matrices * tokens * chosen * hidden_size * expert_ffn_size * FLOP, "a product a token and matrix"
    )
    weight_bytes = equation(
        bytes_, active * matrices * hidden_size * expert_ffn_size * weight_size, "the matrices of each active expert"
    )
    activation_bytes = equation(
        bytes_,
        tokens * (chosen * (2 * hidden_size + matrices * expert_ffn_size) + 2 * hidden_size) * activation_size,
        "copies of tokens to and from the experts, the activation and its gate between the products, tokens in and out",
    )
    row_tile = equation(
        count, rows(ROW_TILE, {label: int(label) for label in ROW_TILE.labels}), "rows that an expert's are padded to"
    )
    padded_work = equation(
        flop,
        work * ceil_divide(rows_each, row_tile) * row_tile / rows_each,
        "with the rows of each expert padded",
    )
    tile_rate = equation(
        flop_per_second,
        smallest(
            peak_share * peak,
            units * unit_bandwidth * 2 * row_tile * column_tile * FLOP / ((row_tile + column_tile) * weight_size),
        ),
        "of the matrix units, or of what can be fed to them: low tiles bring the same weights in for fewer rows",
    )
    tile_compute = equation(seconds, padded_work / tile_rate, "grouped products by one height of tiles")
    compute_time = equation(seconds, best(tile_compute, ROW_TILE), "by the best height")
    best_rows = equation(count, at_best(row_tile, tile_compute, ROW_TILE), "the best height")
    cached = equation(
        count,
        share_in_cache(weight_copies * weight_bytes, cache_capacity, cache_reach),
        "share of the weights found in the last-level cache: all of what fits it, none from some times that on",
    )
    weight_time = equation(
        seconds,
        weight_bytes * cached_slowness(cached, cached_speedup) / (memory_share * memory_bandwidth),
        "weights through memory",
    )
    experts_time = equation(
        seconds,
        experts * listing_time + active * expert_start / units,
        "listing all experts one after the other, and starting those that are active, spread over the units",
    )
    overlapped_time = equation(
        seconds, overlapped(compute_time, weight_time), "products and the stream of weights, overlapped"
    )
    activation_time = equation(
        seconds,
        activation_bytes / (activation_share * memory_bandwidth),
        "permute, activation and combine, kernels of their own",
    )
    time = equation(
        seconds,
        start + experts_time + overlapped_time + activation_time,
        "the whole block",
        source=FIT,
        valid="balanced routing; with uneven routing the fullest expert takes longer, and fewer weights stream",
    )
    rate = equation(flop_per_second, work / time, "attained")
    share_of_peak = equation(count, work / (time * peak), "attained")
    traffic = equation(bytes_, weight_bytes + activation_bytes, "through memory")
