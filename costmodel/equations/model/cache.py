"""What attention keeps of past tokens: the KV cache, in bytes."""

from __future__ import annotations

from costmodel.equations.model.flops import Windows
from costmodel.equations.model.parameters import Parameters
from costmodel.symbolic import Chapter, bytes_, count, equation, given, part, select


class KeyValueCache(Chapter):
    """Keys and values of a token, or the compressed vector that stands for them, over all layers that attend."""

    shape = part(Parameters, shared=True)
    windows = part(Windows, shared=True)
    cache_value_bytes = given(bytes_, "bytes of one cached value", owner="workload")

    cached_size = equation(
        count,
        select(shape.kv_rank > 0, shape.kv_rank + shape.rope_head_size, 2 * shape.kv_size),
        "features that one attention layer keeps of a token",
        source="How To Scale Your Model, part 7: 2KH; DeepSeek-AI 2024, arXiv 2405.04434, section 2.1.4",
    )
    cache_per_token = equation(
        bytes_,
        shape.attention_layers * cached_size * cache_value_bytes,
        "one token in every layer, as if no window slid",
    )
    cache_per_sequence = equation(
        bytes_,
        windows.kept_tokens * cached_size * cache_value_bytes,
        "one whole sequence, sliding layers keeping their window and those with chunks one chunk",
    )
