"""What the equations of parameters, FLOPs and the KV cache say of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from costmodel.catalog.entries import Model
from costmodel.catalog.shape import equation_inputs


def parameter_counts(model: Model) -> dict[str, int]:
    """Every quantity of the chapter Parameters for `model`: items, totals and the counts of layers."""
    from costmodel.generated.parameters_math import parameters

    return _evaluate(parameters, equation_inputs(model))


def flop_counts(model: Model, sequence_length: int) -> dict[str, float]:
    """Every quantity of the chapter Flops: operations of one token in sequences of `sequence_length` tokens."""
    from costmodel.generated.parameters_math import flops

    return _evaluate(flops, equation_inputs(model) | {"sequence_length": sequence_length})


def cache_bytes(model: Model, sequence_length: int, cache_value_bytes: float) -> dict[str, float]:
    """Every quantity of the chapter KeyValueCache, cached values taking `cache_value_bytes` bytes each."""
    from costmodel.generated.parameters_math import cache

    workload = {"sequence_length": sequence_length, "cache_value_bytes": cache_value_bytes}
    return _evaluate(cache, equation_inputs(model) | workload)


def _evaluate(function: Callable[..., dict[str, Any]], values: Mapping[str, float]) -> dict[str, Any]:
    """Call a generated function with those of the values that it takes."""
    code = function.__code__
    return function(**{name: values[name] for name in code.co_varnames[: code.co_kwonlyargcount]})
