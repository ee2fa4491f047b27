"""What the equations of parameters, FLOPs and the KV cache say of a model."""

from __future__ import annotations

from collections.abc import Mapping

from costmodel.catalog.entries import Model
from costmodel.catalog.shape import equation_inputs
from costmodel.runtime import call


def parameter_counts(model: Model) -> Mapping[str, int]:
    """Every quantity of the chapter Parameters for `model`: items, totals and the counts of layers."""
    from costmodel.generated.parameters_math import parameters

    return call(parameters, equation_inputs(model))


def flop_counts(model: Model, sequence_length: int) -> Mapping[str, float]:
    """Every quantity of the chapter Flops: operations of one token in sequences of `sequence_length` tokens."""
    from costmodel.generated.parameters_math import flops

    return call(
        flops, equation_inputs(model) | {"sequence_length": sequence_length, "document_length": sequence_length}
    )


def cache_bytes(model: Model, sequence_length: int, cache_value_bytes: float) -> Mapping[str, float]:
    """Every quantity of the chapter KeyValueCache, cached values taking `cache_value_bytes` bytes each."""
    from costmodel.generated.parameters_math import cache

    workload = {
        "sequence_length": sequence_length,
        "document_length": sequence_length,
        "cache_value_bytes": cache_value_bytes,
    }
    return call(cache, equation_inputs(model) | workload)
