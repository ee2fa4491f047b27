"""Fused attention kernels on their own: prefill by whole blocks, decode by the stream of keys and values, backward.

The training step has a form of its own (`attention`), without blocks and with what runs beside it.
"""

from costmodel.equations.kernels.streaming import cached_slowness, overlapped, share_in_cache
from costmodel.symbolic import (
    FLOP,
    Chapter,
    bytes_,
    bytes_per_second,
    ceil_divide,
    count,
    equation,
    flop,
    flop_per_second,
    given,
    largest,
    part,
    per_second,
    seconds,
    select,
    smallest,
)

FIT = "form and constants fitted to public kernel tables, see docs/explanation/kernels.md"


class Blocks(Chapter):
    """Query-key pairs in whole blocks: a block on the diagonal, or at the edge of a window, is computed as a whole."""

    tokens = given(count, "queries of a sequence", owner="workload")
    context_tokens = given(count, "earlier tokens, whose keys and values are in the cache", owner="workload")
    window = given(count, "tokens that a query sees back, 0 for all", owner="workload")
    causal = given(count, "1 under a causal mask, 0 where all see all", owner="workload")
    block_tokens = given(count, "queries, and keys, of a block", owner="assumption")

    keys = equation(count, tokens + context_tokens, "keys of a sequence")
    reach = equation(count, select(window > 0, smallest(window, keys), keys), "keys that the last query sees")
    query_blocks = equation(count, ceil_divide(tokens, block_tokens), "blocks of queries")
    context_blocks = equation(count, ceil_divide(context_tokens, block_tokens), "blocks of earlier keys")
    key_blocks = equation(count, query_blocks + context_blocks, "blocks of keys")
    seen_blocks = equation(
        count,
        select(reach < keys, smallest(ceil_divide(reach, block_tokens) + 1, key_blocks), key_blocks),
        "blocks of keys that the last block of queries sees; a window straddles one more",
    )
    growing = equation(
        count,
        largest(0, smallest(seen_blocks - context_blocks, query_blocks)),
        "blocks of queries that see one block more than the one before",
    )
    blocks = equation(
        count,
        select(
            causal > 0,
            growing * (growing + 1) / 2 + context_blocks * growing + (query_blocks - growing) * seen_blocks,
            query_blocks * key_blocks,
        ),
        "blocks of pairs of one head and sequence",
    )
    longest_row = equation(count, select(causal > 0, seen_blocks, key_blocks), "blocks of the longest row")
    pairs = equation(
        count,
        select(
            causal > 0,
            tokens * reach - largest(0, smallest(tokens, reach - context_tokens)) ** 2 / 2,
            tokens * keys,
        ),
        "pairs themselves, half of the diagonal, as published rates count them",
    )


class PrefillAttention(Chapter):
    """Scores, softmax and weighted values of a prompt; each unit takes rows of blocks, matrix work and exponentials in turn."""

    sequences = given(count, "sequences of the batch", owner="workload")
    heads = given(count, "query heads", owner="workload")
    kv_heads = given(count, "key-value heads", owner="workload")
    head_size = given(count, "features of a head (H)", owner="workload")
    element_size = given(bytes_, "an element of queries and results", owner="workload")
    kv_element_size = given(bytes_, "an element of keys and values", owner="workload")
    units = given(count, "units of the chip (SMs)", owner="chip")
    peak = given(flop_per_second, "dense peak at this precision", owner="chip")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    peak_share = given(count, "share of the peak that the matrix part attains", owner="chip")
    exponential_rate = given(per_second, "exponentials of the whole chip", owner="chip")
    memory_share = given(
        count, "share of the memory bandwidth over what all small kernels before it move", owner="chip"
    )
    start = given(seconds, "of the call, with its small kernels", owner="chip")
    row_start = given(seconds, "of a row of blocks: loading queries, the last rescaling", owner="chip")

    mask = part(Blocks, shared=True)
    blocks, query_blocks, block_tokens = mask.blocks, mask.query_blocks, mask.block_tokens
    work = equation(flop, 4 * sequences * heads * mask.pairs * head_size * FLOP, "two products a pair")
    kv_bytes = equation(bytes_, 2 * sequences * kv_heads * mask.keys * head_size * kv_element_size, "keys and values")
    query_bytes = equation(
        bytes_, 2 * sequences * heads * mask.tokens * head_size * element_size, "queries and results"
    )
    traffic = equation(bytes_, kv_bytes + query_bytes, "each through memory once")
    unit_rate = equation(flop_per_second, peak_share * peak / units, "of one unit's matrix units")
    multiply_time = equation(
        seconds, 4 * head_size * block_tokens**2 * FLOP / unit_rate, "both products of a block on one unit"
    )
    exponential_time = equation(
        seconds, block_tokens**2 * units / exponential_rate, "exponentials of a block on one unit"
    )
    block_time = equation(
        seconds,
        multiply_time + exponential_time,
        "a block on one unit: the two in turn",
        source="FlashAttention-3 (Shah et al. 2024): what does not overlap of the softmax",
    )
    spread_time = equation(
        seconds,
        sequences * heads * (blocks * block_time + query_blocks * row_start) / units,
        "all rows spread evenly over the units",
    )
    longest_time = equation(seconds, mask.longest_row * block_time + row_start, "the longest row, on one unit")
    compute_time = equation(seconds, largest(spread_time, longest_time), "no shorter than the longest row")
    memory_time = equation(
        seconds,
        traffic / (memory_share * memory_bandwidth),
        "through memory, by the small kernels before: writing the cache, rotary positions, layouts",
    )
    time = equation(seconds, start + compute_time + memory_time, "one layer's attention over the prompt", source=FIT)
    rate = equation(flop_per_second, work / time, "attained, half of the diagonal counted")
    share_of_peak = equation(count, work / (time * peak), "attained")


class BackwardAttention(Chapter):
    """Gradients of queries, keys and values: five products a pair, the scores computed again."""

    sequences = given(count, "sequences of the batch", owner="workload")
    heads = given(count, "query heads", owner="workload")
    kv_heads = given(count, "key-value heads", owner="workload")
    head_size = given(count, "features of a head (H)", owner="workload")
    element_size = given(bytes_, "an element of queries and results", owner="workload")
    kv_element_size = given(bytes_, "an element of keys and values", owner="workload")
    units = given(count, "units of the chip (SMs)", owner="chip")
    peak = given(flop_per_second, "dense peak at this precision", owner="chip")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    peak_share = given(count, "share of the peak that the matrix part attains, forward", owner="chip")
    backward_factor = given(count, "time of a backward operation over a forward one", owner="assumption")
    exponential_rate = given(per_second, "exponentials of the whole chip", owner="chip")
    memory_share = given(count, "share of the memory bandwidth", owner="chip")
    start = given(seconds, "of the call, with its small kernels", owner="chip")

    mask = part(Blocks, shared=True)
    blocks, block_tokens = mask.blocks, mask.block_tokens
    work = equation(flop, 10 * sequences * heads * mask.pairs * head_size * FLOP, "five products a pair")
    kv_bytes = equation(
        bytes_, 4 * sequences * kv_heads * mask.keys * head_size * kv_element_size, "keys, values and their gradients"
    )
    query_bytes = equation(
        bytes_,
        4 * sequences * heads * mask.tokens * head_size * element_size,
        "queries, results and their gradients",
        approximate="sums in fp32 that are added up in memory are left out",
    )
    traffic = equation(bytes_, kv_bytes + query_bytes, "each through memory once")
    unit_rate = equation(flop_per_second, peak_share * peak / units, "of one unit's matrix units")
    multiply_time = equation(
        seconds,
        10 * head_size * block_tokens**2 * backward_factor * FLOP / unit_rate,
        "five products of a block on one unit",
    )
    exponential_time = equation(
        seconds, block_tokens**2 * units / exponential_rate, "exponentials of a block on one unit"
    )
    block_time = equation(seconds, multiply_time + exponential_time, "a block on one unit")
    spread_time = equation(seconds, sequences * heads * blocks * block_time / units, "all blocks spread over the units")
    longest_time = equation(seconds, mask.longest_row * block_time, "the longest column of blocks, on one unit")
    compute_time = equation(seconds, largest(spread_time, longest_time), "no shorter than the longest column")
    memory_time = equation(seconds, traffic / (memory_share * memory_bandwidth), "through memory")
    overlapped_time = equation(seconds, overlapped(compute_time, memory_time), "the two overlapped")
    time = equation(
        seconds,
        start + overlapped_time,
        "one layer's attention, backward",
        source="FlashAttention-2 (Dao 2023), section 3; constants fitted to its published figures",
    )
    rate = equation(flop_per_second, work / time, "attained, half of the diagonal counted")
    share_of_peak = equation(count, work / (time * peak), "attained")


class ForwardBackward(Chapter):
    """Both passes of one layer, as training benchmarks time them."""

    forward = part(PrefillAttention)
    backward = part(BackwardAttention)
    time = equation(seconds, forward.time + backward.time, "both, one after the other")
    work = equation(flop, forward.work + backward.work, "of both")
    traffic = equation(bytes_, forward.traffic + backward.traffic, "of both")


class DecodeAttention(Chapter):
    """One new token a sequence: its keys and values stream once, and each sequence and key-value head is a piece of work."""

    sequences = given(count, "sequences of the batch", owner="workload")
    context_tokens = given(count, "tokens in the cache", owner="workload")
    window = given(count, "tokens that a query sees back, 0 for all", owner="workload")
    heads = given(count, "query heads", owner="workload")
    kv_heads = given(count, "key-value heads", owner="workload")
    head_size = given(count, "features of a head (H)", owner="workload")
    element_size = given(bytes_, "an element of queries and results", owner="workload")
    kv_element_size = given(bytes_, "an element of keys and values", owner="workload")
    cache_copies = given(
        count, "caches read in turn: 1 when the same comes again at once, many in a model", owner="workload"
    )
    cache_reach = given(
        count, "last-level caches of what is read in turn from which on none is found", owner="assumption"
    )
    units = given(count, "units of the chip (SMs)", owner="chip")
    peak = given(flop_per_second, "dense peak at this precision", owner="chip")
    memory_bandwidth = given(bytes_per_second, "of the chip's memory", owner="chip")
    cache_capacity = given(bytes_, "of the last-level cache", owner="chip")
    memory_share = given(count, "share of the memory bandwidth that the stream attains", owner="chip")
    start = given(seconds, "of the call, with its small kernels", owner="chip")
    item_time = given(seconds, "of a sequence and key-value head, beside its stream, on one unit", owner="chip")
    cached_speedup = given(count, "rate of what lies in the last-level cache over that of memory", owner="chip")

    seen = equation(
        count,
        select(window > 0, smallest(context_tokens + 1, window), context_tokens + 1),
        "tokens that the new one sees, itself among them",
    )
    work = equation(flop, 4 * sequences * heads * seen * head_size * FLOP, "two products a pair")
    kv_bytes = equation(bytes_, 2 * sequences * kv_heads * seen * head_size * kv_element_size, "keys and values")
    query_bytes = equation(bytes_, 2 * sequences * heads * head_size * element_size, "queries and results")
    traffic = equation(bytes_, kv_bytes + query_bytes, "each through memory once")
    cached = equation(
        count,
        share_in_cache(cache_copies * kv_bytes + query_bytes, cache_capacity, cache_reach),
        "share found in the last-level cache: all of what fits it, none from some times that on",
    )
    memory_time = equation(
        seconds,
        traffic * cached_slowness(cached, cached_speedup) / (memory_share * memory_bandwidth),
        "the stream of keys and values",
    )
    items_time = equation(
        seconds,
        largest(1, sequences * kv_heads / units) * item_time,
        "pieces of work, spread over the units: never less than one",
    )
    overlapped_time = equation(seconds, memory_time + items_time, "the two add: a unit starts a piece, then streams it")
    time = equation(
        seconds,
        start + overlapped_time,
        "one layer's attention for one new token of each sequence",
        source=FIT,
        approximate="matrix work never binds at usual group sizes",
    )
    rate = equation(flop_per_second, work / time, "attained")
    share_of_peak = equation(count, work / (time * peak), "attained")
    bandwidth = equation(bytes_per_second, traffic / time, "attained")
    share_of_bandwidth = equation(count, traffic / (time * memory_bandwidth), "attained")
