"""Inputs of the model equations for tests: a plain dense decoder, and any shape."""

from collections.abc import Callable
from math import inf
from typing import Any

from hypothesis import strategies as st

from costmodel.equations.model.cache import KeyValueCache
from costmodel.equations.model.flops import Flops
from costmodel.equations.model.parameters import ATTENTION_BIASES, NORMS, QK_NORMS, Parameters

MODEL_INPUTS = tuple(e.name for e in Parameters.system.inputs())
DENSE = dict.fromkeys(MODEL_INPUTS, 0) | {
    "layers": 1,
    "gated_ffn": 1,
    "norms_per_layer": 2,
    "final_norm": 1,
    "expert_every": 1,
}
"""One layer of nothing with RMS norms and a gated feed-forward: say the sizes that matter."""

WINDOWS = {"window": 0, "attention_chunk": 0, "window_every": 1}
FLOP_INPUTS = tuple(e.name for e in Flops.system.inputs())
CACHE_INPUTS = tuple(e.name for e in KeyValueCache.system.inputs(["cache_per_token", "cache_per_sequence"]))


def one_document(function: Callable[..., Any]) -> Callable[..., Any]:
    """A generated function whose sequences are one document each, without chunks, unless it is said otherwise."""
    return lambda **given: function(**{"document_length": inf, "attention_chunk": 0} | given)


@st.composite
def shapes(draw: st.DrawFn) -> dict[str, Any]:
    """Any decoder with grouped attention, dense or with experts."""
    whole = lambda low, high: draw(st.integers(low, high))  # noqa: E731
    groups, kv_heads = whole(1, 8), whole(1, 8)
    flags = (
        "tied_embeddings",
        "gated_ffn",
        "ffn_bias",
        "final_norm",
        "embedding_norm",
        "attention_gate",
        "attention_sinks",
    )
    layers, experts = whole(1, 130), draw(st.sampled_from([0, 0, 1, 2, 3, 8, 60, 257]))
    return DENSE | {
        "layers": layers,
        "hidden_size": whole(1, 20_000),
        "ffn_size": whole(1, 80_000),
        "heads": groups * kv_heads,
        "kv_heads": kv_heads,
        "head_size": whole(1, 256),
        "vocabulary": whole(1, 300_000),
        "norm": whole(0, len(NORMS) - 1),
        "qk_norm": whole(0, len(QK_NORMS) - 1),
        "attention_bias": whole(0, len(ATTENTION_BIASES) - 1),
        "positions": draw(st.sampled_from([0, 2048])),
        "norms_per_layer": whole(0, 4),
        **{flag: whole(0, 1) for flag in flags},
        "experts": experts,
        "experts_per_token": whole(1, experts) if experts else 0,
        "expert_ffn_size": whole(1, 20_000) if experts else 0,
        "first_expert_layer": whole(0, layers - 1) if experts else 0,
        "expert_every": whole(1, 3),
        "shared_experts": whole(0, 2) if experts else 0,
        "shared_ffn_size": whole(1, 20_000) if experts else 0,
        "router_bias": whole(0, 1),
    }
