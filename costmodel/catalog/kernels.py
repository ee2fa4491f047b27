"""The constants of measured kernels that a chip's file holds under `kernels`, one block a kernel.

A block is called FAMILY-PRECISION, FAMILY-IMPLEMENTATION or both: matmul-bf16, prefill-vllm, experts-fp8-block-sglang.
"""

from __future__ import annotations

from collections.abc import Mapping

from costmodel.catalog.entries import Number
from costmodel.catalog.facts import number
from costmodel.catalog.reader import Block

_SHARE = ("share", 0.01, 1.0)
_PART = ("share", 0.0, 1.0)
_START = ("duration", 1e-8, 1e-2)
_TIME = ("duration", 0.0, 1e-2)
_SPEEDUP = ("ratio", 1.0, 20.0)
_RATE = ("bytes per second", 1e9, 1e13)
_OFF = ("ratio", 0.1, 10.0)
_INTERVAL = {"low": _OFF, "high": _OFF}
"""Tenth and ninetieth percentile of measured over predicted."""

FAMILIES: dict[str, dict[str, tuple[str, float, float]]] = {
    "matmul": {
        "peak_share": _SHARE,
        "memory_share": _SHARE,
        "start": _START,
        "unit_bandwidth": _RATE,
        "split_start": _START,
        "wave_fill": _TIME,
        "whole_waves": _PART,
        "cached_speedup": _SPEEDUP,
        "cast_share": _SHARE,
        **_INTERVAL,
    },
    "prefill": {
        "peak_share": _SHARE,
        "exponential_rate": ("events per second", 1e10, 1e15),
        "memory_share": _SHARE,
        "start": _START,
        "row_start": _TIME,
        "block_tokens": ("count", 16, 256),
        **_INTERVAL,
    },
    "decode": {
        "memory_share": _SHARE,
        "start": _START,
        "item_time": _TIME,
        "cached_speedup": _SPEEDUP,
        **_INTERVAL,
    },
    "backward": {
        "peak_share": _SHARE,
        "exponential_rate": ("events per second", 1e10, 1e15),
        "memory_share": _SHARE,
        "start": _START,
        "row_start": _TIME,
        "block_tokens": ("count", 16, 256),
        **_INTERVAL,
    },
    "experts": {
        "peak_share": _SHARE,
        "memory_share": _SHARE,
        "unit_bandwidth": _RATE,
        "activation_share": _SHARE,
        "start": _START,
        "expert_start": _TIME,
        "cached_speedup": _SPEEDUP,
        **_INTERVAL,
    },
    "stream": {"memory_share": _SHARE, "start": _START, "cached_speedup": _SPEEDUP, **_INTERVAL},
}
"""The constants of each family of kernels, with quantity and physical range: the names of the equations' inputs."""


def kernels(block: Block) -> dict[str, Mapping[str, Number]]:
    """Every kernel under `kernels` with its constants, all of them; raises CatalogError for a key that is none."""
    found: dict[str, Mapping[str, Number]] = {}
    for key in block:
        family = key.partition("-")[0]
        if family not in FAMILIES:
            raise block.error(f"{key!r} is no kernel: a name begins with {', '.join(FAMILIES)}", key)
        inner = block.block(key)
        inner.keys_are(FAMILIES[family])
        found[key] = {name: number(inner, name, *FAMILIES[family][name]) for name in FAMILIES[family]}
    return found
