"""What every description of a model must obey, whatever file it comes from, and how it enters the equations."""

from __future__ import annotations

from collections.abc import Iterator

from costmodel.catalog.entries import Experts, LatentAttention, Model, Recurrent
from costmodel.generated.labels import CHOICES

NORMS, QK_NORMS, ATTENTION_BIASES = CHOICES["norm"], CHOICES["qk_norm"], CHOICES["attention_bias"]
RECURRENT_KINDS = CHOICES["recurrent_kind"]

# The largest of each size that is taken for meant; the largest models published stay far below.
LARGEST = {
    "layers": 10_000,
    "hidden_size": 10**6,
    "ffn_size": 10**7,
    "heads": 100_000,
    "kv_heads": 100_000,
    "head_size": 100_000,
    "vocabulary": 10**8,
    "max_sequence": 10**9,
    "experts": 100_000,
    "parameters": 10**15,
}

_NO_EXPERTS = Experts(count=0, per_token=0, ffn_size=0)
_NOT_LATENT = LatentAttention(query_rank=0, kv_rank=0, rope_head_size=0, plain_head_size=0, value_head_size=0)


def contradictions(model: Model) -> Iterator[tuple[str, str]]:
    """What cannot be in a model, as pairs of a field of the record and a sentence about it."""
    if model.heads % model.kv_heads:
        yield (
            "kv_heads",
            f"{model.heads} query heads cannot share {model.kv_heads} key-value heads: they must divide evenly",
        )
    if model.window and model.attention_chunk:
        yield "attention_chunk", "layers that do not attend to all have a window or chunks, not both"
    if model.window_every > 1 and not (model.window or model.attention_chunk):
        yield (
            "window_every",
            "says which layers slide, but there is no window and there are no chunks (attention_chunk)",
        )
    latent = model.latent_attention
    if latent and model.head_size != latent.rope_head_size + latent.plain_head_size:
        total = latent.rope_head_size + latent.plain_head_size
        yield "head_size", f"{model.head_size} is not the rotary and plain features of a latent head together, {total}"
    yield from _experts(model)
    yield from _recurrent(model)


def _experts(model: Model) -> Iterator[tuple[str, str]]:
    experts = model.experts
    if experts is None:
        return
    layers = model.recurrent.ffn_layers if model.recurrent else model.layers
    if experts.per_token > experts.count:
        yield "experts.per_token", f"a token cannot take {experts.per_token} of {experts.count} experts"
    if experts.count % experts.groups:
        yield "experts.groups", f"{experts.groups} groups cannot share {experts.count} experts evenly"
    elif experts.per_token > experts.count // experts.groups * experts.groups_per_token:
        yield (
            "experts.groups_per_token",
            f"{experts.groups_per_token} of {experts.groups} groups have fewer than {experts.per_token} experts",
        )
    if experts.first_layer >= layers:
        yield (
            "experts.first_layer",
            f"{experts.first_layer} is past the last of {layers} layers: no layer would hold experts",
        )
    if bool(experts.shared) != bool(experts.shared_ffn_size):
        yield "experts.shared", "shared experts need both a number (shared) and a size (shared_ffn_size)"
    if experts.shared_gate and not experts.shared:
        yield "experts.shared_gate", "weighs shared experts, but there are none"


def _recurrent(model: Model) -> Iterator[tuple[str, str]]:
    recurrent = model.recurrent
    if recurrent is None:
        return
    mixers = recurrent.layers + recurrent.attention_layers
    if mixers > model.layers:
        yield (
            "recurrent.layers",
            f"{recurrent.layers} recurrent and {recurrent.attention_layers} attention layers are more than {model.layers}",
        )
    if not model.layers - mixers <= recurrent.ffn_layers <= model.layers:
        yield (
            "recurrent.ffn_layers",
            f"{recurrent.ffn_layers} leaves layers with nothing in them or exceeds {model.layers}",
        )
    if recurrent.heads % recurrent.groups:
        yield (
            "recurrent.groups",
            f"{recurrent.heads} heads cannot share {recurrent.groups} groups: they must divide evenly",
        )


def equation_inputs(model: Model) -> dict[str, int]:
    """The inputs of the equations that a model fills in, by name: counts, 0 or 1 for flags, and numbers of choices."""
    experts, latent, recurrent = model.experts or _NO_EXPERTS, model.latent_attention or _NOT_LATENT, model.recurrent
    return {
        "layers": model.layers,
        "hidden_size": model.hidden_size,
        "ffn_size": model.ffn_size,
        "heads": model.heads,
        "kv_heads": model.kv_heads,
        "head_size": model.head_size,
        "vocabulary": model.vocabulary,
        "tied_embeddings": int(model.tied_embeddings),
        "gated_ffn": int(model.gated_ffn),
        "ffn_bias": int(model.ffn_bias),
        "norm": NORMS.index(model.norm),
        "norms_per_layer": model.norms_per_layer,
        "final_norm": int(model.final_norm),
        "embedding_norm": int(model.embedding_norm),
        "attention_bias": ATTENTION_BIASES.index(model.attention_bias),
        "qk_norm": QK_NORMS.index(model.qk_norm),
        "attention_gate": int(model.attention_gate),
        "attention_sinks": int(model.attention_sinks),
        "parallel_block": int(model.parallel_block),
        "positions": model.positions,
        "window": model.window,
        "attention_chunk": model.attention_chunk,
        "window_every": model.window_every,
        "query_rank": latent.query_rank,
        "kv_rank": latent.kv_rank,
        "rope_head_size": latent.rope_head_size,
        "plain_head_size": latent.plain_head_size,
        "value_head_size": latent.value_head_size,
        "experts": experts.count,
        "experts_per_token": experts.per_token,
        "expert_ffn_size": experts.ffn_size,
        "shared_experts": experts.shared,
        "shared_ffn_size": experts.shared_ffn_size,
        "first_expert_layer": experts.first_layer,
        "expert_every": experts.every,
        "latent_size": experts.latent_size,
        "expert_groups": experts.groups,
        "groups_per_token": experts.groups_per_token,
        "router_bias": int(experts.router_bias),
        "shared_gate": int(experts.shared_gate),
        **_recurrent_inputs(model.layers, recurrent),
        "extra_parameters": model.extra_parameters,
    }


def _recurrent_inputs(layers: int, recurrent: Recurrent | None) -> dict[str, int]:
    return {
        "recurrent_kind": RECURRENT_KINDS.index(recurrent.kind if recurrent else "none"),
        "recurrent_layers": recurrent.layers if recurrent else 0,
        "layers_without_attention": layers - recurrent.attention_layers if recurrent else 0,
        "layers_without_ffn": layers - recurrent.ffn_layers if recurrent else 0,
        "recurrent_heads": recurrent.heads if recurrent else 0,
        "recurrent_head_size": recurrent.head_size if recurrent else 0,
        "recurrent_groups": recurrent.groups if recurrent else 0,
        "state_size": recurrent.state_size if recurrent else 0,
        "convolution": recurrent.convolution if recurrent else 0,
    }
