"""Reading the constants of a chip's measured kernels: hardware/kernels/CHIP.yaml, one block a kernel.

A block is called FAMILY-PRECISION, FAMILY-IMPLEMENTATION or both: matmul-bf16, prefill-vllm, experts-fp8-block-sglang.
"""

from __future__ import annotations

from collections.abc import Mapping

from costmodel.catalog.entries import Kernels, Number
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
        "cast_row_time": _TIME,
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
        "listing_time": _TIME,
        "cached_speedup": _SPEEDUP,
        **_INTERVAL,
    },
    "stream": {"memory_share": _SHARE, "start": _START, "cached_speedup": _SPEEDUP, **_INTERVAL},
}
"""The constants of each family of kernels, with quantity and physical range: the names of the equations' inputs."""


def kernels(block: Block) -> Kernels:
    """What a file says; raises CatalogError for a kernel or a constant that is none, or that is missing."""
    block.keys_are(("name",), ("kernels", "kernels_of"))
    if "kernels" not in block and "kernels_of" not in block:
        raise block.error("expected `kernels`, or `kernels_of`: the name of a sister chip for those that are not there")
    measured = (
        {key: _constants(block.block("kernels"), key) for key in block.block("kernels")} if "kernels" in block else {}
    )
    return Kernels(block.text("name"), measured, block.text("kernels_of", ""))


def _constants(block: Block, key: str) -> Mapping[str, Number]:
    family = key.partition("-")[0]
    if family not in FAMILIES:
        raise block.error(f"{key[:40]!r} is no kernel: a name begins with {', '.join(FAMILIES)}", key)
    inner = block.block(key)
    inner.keys_are(FAMILIES[family])
    return {name: number(inner, name, *FAMILIES[family][name]) for name in FAMILIES[family]}
