"""The kernels that can be asked for: what gives each its shape, which equations it follows, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from costmodel.errors import InputError
from costmodel.generated import kernels_math
from costmodel.generated.labels import CHOICES

LARGEST = 2**40


@dataclass(frozen=True, slots=True)
class Field:
    """A whole number of a shape: the input of the equations that it is, and what it is when left out (None: it must be given)."""

    input: str
    meaning: str
    default: int | None = None
    least: int = 1


@dataclass(frozen=True, slots=True)
class Kind:
    """One kernel: `parts` add up to its time, `overlapped` say what bounds it; `rounded` fields can be rounded for better shapes.

    `quality` is the share by which shapes are compared.
    """

    family: str
    form: Callable[..., Mapping[str, Any]]
    fields: Mapping[str, Field]
    parts: Mapping[str, str]
    overlapped: Mapping[str, str]
    rounded: tuple[str, ...]
    quality: str = "share_of_peak"
    fixed: Mapping[str, float] = field(default_factory=dict)


_PRODUCT = {
    "rows": Field("M", "rows of the result, tokens mostly (M)"),
    "columns": Field("N", "columns of the result (N)"),
    "features": Field("K", "features summed over (K)"),
}
_MATMUL = Kind(
    "matmul",
    kernels_math.matmul,
    _PRODUCT,
    {"start": "start", "cast": "cast_time", "tiles and memory": "overlapped_time", "adding split sums": "split_time"},
    {
        "matrix units": "compute_time",
        "memory": "memory_time",
        "start": "start",
        "cast": "cast_time",
        "split sums": "split_time",
    },
    ("rows", "columns", "features"),
    fixed={"groups": 1.0},
)
SYSTOLIC = Kind(
    "matmul",
    kernels_math.systolic_matmul,
    _MATMUL.fields,
    {"start": "start", "array and memory": "overlapped_time"},
    {"matrix units": "compute_time", "memory": "memory_time", "start": "start"},
    ("rows", "columns", "features"),
)
"""A product on chips with large systolic arrays."""

_HEADS = {
    "sequences": Field("sequences", "sequences of the batch", 1),
    "heads": Field("heads", "query heads"),
    "kv_heads": Field("kv_heads", "key-value heads; as many as query heads when left out", 0, 0),
    "head_size": Field("head_size", "features of a head", 128),
    "window": Field("window", "tokens that a query sees back, 0 for all", 0, 0),
}
_PROMPT = {
    "tokens": Field("tokens", "tokens of each prompt"),
    "context_tokens": Field("context_tokens", "earlier tokens, in the cache", 0, 0),
    "causal": Field("causal", "1 under a causal mask, 0 without", 1, 0),
    **_HEADS,
}


def _stream(operation: str) -> Kind:
    return Kind(
        "stream",
        kernels_math.stream,
        {"rows": Field("rows", "rows, tokens mostly"), "columns": Field("columns", "features of a row")},
        {"start": "start", "memory": "memory_time"},
        {"memory": "memory_time", "start": "start"},
        (),
        "share_of_bandwidth",
        {"row_operation": float(CHOICES["row_operation"].index(operation))},
    )


KINDS: dict[str, Kind] = {
    "matmul": _MATMUL,
    "grouped-matmul": replace(_MATMUL, fields={"groups": Field("groups", "products"), **_PRODUCT}, fixed={}),
    "attention": Kind(
        "prefill",
        kernels_math.prefill,
        _PROMPT,
        {"start": "start", "blocks": "compute_time", "memory": "memory_time"},
        {"blocks of pairs": "compute_time", "memory": "memory_time", "start": "start"},
        ("tokens",),
    ),
    "attention-backward": Kind(
        "backward",
        kernels_math.backward,
        _PROMPT,
        {"start": "start", "blocks and memory": "overlapped_time"},
        {"blocks of pairs": "compute_time", "memory": "memory_time", "start": "start"},
        ("tokens",),
    ),
    "attention-decode": Kind(
        "decode",
        kernels_math.decode,
        {"context_tokens": Field("context_tokens", "tokens in the cache"), **_HEADS},
        {"start": "start", "pieces of work": "items_time", "stream of keys and values": "memory_time"},
        {"memory": "memory_time", "pieces of work": "items_time", "start": "start"},
        (),
        "share_of_bandwidth",
    ),
    "experts": Kind(
        "experts",
        kernels_math.experts,
        {
            "tokens": Field("tokens", "tokens of the batch"),
            "hidden_size": Field("hidden_size", "width of the model"),
            "expert_ffn_size": Field("expert_ffn_size", "width of an expert"),
            "experts": Field("experts", "experts on the chip"),
            "experts_per_token": Field("chosen", "experts of a token"),
            "gated": Field("gated", "1 where the activation has a gate, 0 where it has none", 1, 0),
        },
        {
            "start": "start",
            "starting experts": "experts_time",
            "products and weights": "overlapped_time",
            "permute, activation, combine": "activation_time",
        },
        {
            "matrix units": "compute_time",
            "memory (weights)": "weight_time",
            "memory (activations)": "activation_time",
            "start": "start",
            "starting experts": "experts_time",
        },
        ("tokens",),
    ),
    **{operation: _stream(operation) for operation in CHOICES["row_operation"]},
}
"""Every kernel by its name on the command line."""

ROUND_TO = (64, 128, 256)
"""Multiples that neighbours of a shape are rounded to: tiles of all libraries."""


def shape_of(name: str, kind: Kind, given: Mapping[str, object]) -> dict[str, int]:
    """The whole shape, defaults filled in; raises InputError for a number that is missing, unknown or out of range."""
    for key in given:
        if key not in kind.fields:
            raise InputError.unknown(f"number of the shape of {name}", key, kind.fields)
    shape: dict[str, int] = {}
    for key, field_ in kind.fields.items():
        value = given.get(key, field_.default)
        if value is None:
            raise InputError(f"{name} needs {key}: {field_.meaning}")
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(f"{key} of {name} is a whole number, not {str(value)[:30]}")
        if not field_.least <= value <= LARGEST:
            raise InputError(f"{key} {str(value)[:20]} of {name} is out of range: {field_.least} to 2**40")
        shape[key] = value
    if "kv_heads" in shape:
        shape["kv_heads"] = shape["kv_heads"] or shape["heads"]
        if shape["heads"] % shape["kv_heads"]:
            fitting = [n for n in range(1, shape["heads"] + 1) if shape["heads"] % n == 0]
            near = min(fitting, key=lambda n: abs(n - shape["kv_heads"]))
            raise InputError(
                f"{shape['heads']} query heads do not share {shape['kv_heads']} key-value heads evenly; nearest: {near}"
            )
    if shape.get("causal", 0) > 1:
        raise InputError(f"causal is 1 or 0, not {shape['causal']}")
    if shape.get("experts_per_token", 0) > shape.get("experts", LARGEST):
        raise InputError(
            f"a token cannot go to {shape['experts_per_token']} of {shape['experts']} experts: at most {shape['experts']}"
        )
    return shape


def neighbours(kind: Kind, shape: Mapping[str, int]) -> list[dict[str, int]]:
    """Shapes with one number rounded to a multiple of a tile, the nearest first."""
    found: dict[tuple[int, ...], dict[str, int]] = {}
    for key in kind.rounded:
        for step in ROUND_TO:
            for value in (shape[key] // step * step, -(-shape[key] // step) * step):
                if value not in (0, shape[key]):
                    near = {**shape, key: value}
                    found.setdefault(tuple(near.values()), near)

    def distance(near: Mapping[str, int]) -> float:
        return max(abs(near[key] - shape[key]) / shape[key] for key in kind.rounded)

    return sorted(found.values(), key=distance)
