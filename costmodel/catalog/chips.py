"""Reading a chip: hardware/chips/NAME.yaml."""

from __future__ import annotations

from costmodel.catalog.entries import Chip
from costmodel.catalog.facts import fact, facts
from costmodel.catalog.reader import Block

VENDORS = ("amd", "aws", "google", "intel", "nvidia", "other")
KINDS = ("gpu", "tpu", "other")
DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "int8", "int4")

_PEAK = ("operations per second", 1e10, 1e18)
_SHARE = ("share", 0.01, 1.0)
_BANDWIDTH = ("bytes per second", 1e9, 1e15)
_CAPACITY = ("bytes", 2**10, 2**36)
_LATENCY = ("duration", 1e-9, 1e-3)

SPEC = {
    "memory_capacity": ("bytes", 2**30, 2**44),
    "memory_bandwidth": ("bytes per second", 1e10, 1e14),
    "power": ("power", 5.0, 1e4),
}
# What else is worth knowing of a chip. `unit` is an SM, a CU or a TensorCore: what `compute_units` counts.
DETAILS = {
    "compute_units": ("count", 1, 1e5),
    "devices": ("count", 1, 16),
    "clock": ("frequency", 1e8, 1e10),
    "clock_boost": ("frequency", 1e8, 1e10),
    "matmul_units_per_unit": ("count", 1, 64),
    "matmul_unit_size": ("count", 1, 4096),
    "sparse_cores": ("count", 1, 64),
    "vector_fp32": _PEAK,
    "vector_fp16": _PEAK,
    "fast_memory_per_unit": _CAPACITY,
    "fast_memory_bandwidth": _BANDWIDTH,
    "fast_memory_rate": ("bytes per clock", 1, 1e5),
    "registers_per_unit": _CAPACITY,
    "tensor_memory_per_unit": _CAPACITY,
    "shared_memory_capacity": _CAPACITY,
    "l1_latency": _LATENCY,
    "l2_capacity": _CAPACITY,
    "l2_bandwidth": _BANDWIDTH,
    "l2_latency": _LATENCY,
    "last_level_cache_capacity": _CAPACITY,
    "last_level_cache_bandwidth": _BANDWIDTH,
    "last_level_cache_latency": _LATENCY,
    "memory_latency": _LATENCY,
    "die_to_die_bandwidth": _BANDWIDTH,
    "idle_power": ("power", 1.0, 1e4),
    "typical_power": ("power", 1.0, 1e4),
    "purchase_price": ("price", 100.0, 1e6),
}
ATTAINABLE_REQUIRED = (
    "matmul_bf16",
    "memory_bandwidth",
    "sustained",
    "kernel_matmul",
    "kernel_memory_bandwidth",
    "attention_matmul",
    "attention_exponentials",
    "training_matmul",
    "training_attention",
    "launch",
)
# Shares are of the dense peak, or of the memory bandwidth, that `spec` gives.
ATTAINABLE = {
    # Large matmuls and streams on their own; `sustained` is what is left of a burst in back-to-back work.
    "matmul_bf16": _SHARE,
    "matmul_fp8": _SHARE,
    "matmul_fp4": _SHARE,
    "memory_bandwidth": _SHARE,
    "sustained": _SHARE,
    # Kernels, and the start of one: where `kernels` holds none that were measured, and for the traffic of a training step.
    "kernel_matmul": _SHARE,
    "kernel_matmul_fp8": _SHARE,
    "kernel_matmul_fp4": _SHARE,
    "kernel_memory_bandwidth": _SHARE,
    "kernel_start": _LATENCY,
    # Rate of operands found in the last-level cache over that of the memory, where no kernel of the chip was measured.
    "cached_speedup": ("ratio", 1.0, 10.0),
    # The fused attention kernel: share of peak of its matrix part, and exponentials per second.
    "attention_matmul": _SHARE,
    "attention_exponentials": ("events per second", 1e10, 1e15),
    "attention_matmul_older_kernel": _SHARE,
    # Time of a backward operation of that kernel over a forward one, where it is of a newer class than FlashAttention-2.
    "attention_backward_factor": ("ratio", 1.0, 4.0),
    # The same shares as the kernels of a whole training step sustain them.
    "training_matmul": _SHARE,
    "training_matmul_fp8": _SHARE,
    "training_matmul_fp4": _SHARE,
    "training_attention": _SHARE,
    "training_attention_older_kernel": _SHARE,
    "launch": _LATENCY,
    "launch_in_graph": _LATENCY,
}


def chip(block: Block) -> Chip:
    """The chip that a file describes; raises CatalogError where the file breaks a rule."""
    block.keys_are(("name", "vendor", "kind", "spec", "attainable"), ("aliases", "note"))
    spec = block.block("spec")
    spec.keys_are(("peak", *SPEC), DETAILS)
    peaks = spec.block("peak")
    peaks.keys_are((), DTYPES)
    if "bf16" not in peaks and "fp16" not in peaks:
        raise peaks.error("the peak of bf16 or fp16 is missing")
    attainable = block.block("attainable")
    attainable.keys_are(ATTAINABLE_REQUIRED, ATTAINABLE)
    return Chip(
        name=block.text("name"),
        aliases=block.texts("aliases", ()),
        vendor=block.choice("vendor", VENDORS),
        kind=block.choice("kind", KINDS),  # type: ignore[arg-type]  # choice has checked it
        peak={dtype: fact(peaks, dtype, *_PEAK) for dtype in peaks},
        memory_capacity=fact(spec, "memory_capacity", *SPEC["memory_capacity"]),
        memory_bandwidth=fact(spec, "memory_bandwidth", *SPEC["memory_bandwidth"]),
        power=fact(spec, "power", *SPEC["power"]),
        attainable=facts(attainable, ATTAINABLE),
        details={key: fact(spec, key, *DETAILS[key]) for key in spec if key in DETAILS},
        note=block.text("note", ""),
    )
