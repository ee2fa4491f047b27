"""How each kind of model that transformers knows is read from its configuration, by `model_type`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from costmodel.catalog.entries import Experts, LatentAttention, Model
from costmodel.catalog.huggingface_config import Config, bias_of, chunks_of, model_of, sizes_of, window_of, windows_of


def _llama(config: Config) -> Model:
    return model_of(
        config, "llama", **sizes_of(config), attention_bias=bias_of(config), ffn_bias=config.flag("mlp_bias", False)
    )


def _mistral(config: Config) -> Model:
    sizes = sizes_of(config, kv_heads=8)
    return model_of(config, "mistral", **sizes, **windows_of(config, sizes["layers"], window_of(config, 4096), 1))


def _mixtral(config: Config) -> Model:
    sizes = sizes_of(config, kv_heads=8)
    experts = Experts(
        count=config.count("experts", "num_local_experts", "num_experts"),
        per_token=config.count("experts", "num_experts_per_tok"),
        ffn_size=sizes["ffn_size"],
    )
    return model_of(
        config, "mixtral", **sizes, **windows_of(config, sizes["layers"], window_of(config), 1), experts=experts
    )


def _qwen_windows(config: Config, layers: int) -> dict[str, int]:
    if not config.flag("use_sliding_window", False):
        return {}
    if config.texts("layer_types") is None:
        raise config.error("the field is needed where use_sliding_window is true", "layer_types")
    return windows_of(config, layers, window_of(config, 4096), 1)


def _qwen2(config: Config) -> Model:
    sizes = sizes_of(config, kv_heads=32)
    return model_of(config, "qwen-2", **sizes, **_qwen_windows(config, sizes["layers"]), attention_bias="qkv")


def _qwen3(config: Config) -> Model:
    sizes = sizes_of(config, head_size=128, kv_heads=32)
    windows = _qwen_windows(config, sizes["layers"])
    return model_of(config, "qwen-3", **sizes, **windows, attention_bias=bias_of(config), qk_norm="per-head")


def _qwen_experts(config: Config, layers: int, shared_ffn_size: int) -> Experts:
    """Experts in every `decoder_sparse_step`-th layer, except the first ones where `mlp_only_layers` lists those."""
    step = config.count("layers", "decoder_sparse_step", default=1)
    dense = config.data.get("mlp_only_layers") or []
    if not isinstance(dense, list) or dense != list(range(len(dense))) or len(dense) >= layers or (dense and step > 1):
        raise config.error(
            "only the first layers may be without experts, and only where decoder_sparse_step is 1", "mlp_only_layers"
        )
    return Experts(
        count=config.count("experts", "num_experts", "num_local_experts"),
        per_token=config.count("experts", "num_experts_per_tok"),
        ffn_size=config.count("ffn_size", "moe_intermediate_size"),
        shared=1 if shared_ffn_size else 0,
        shared_ffn_size=shared_ffn_size,
        shared_gate=bool(shared_ffn_size),
        first_layer=len(dense) or step - 1,
        every=step,
    )


def _qwen2_moe(config: Config) -> Model:
    sizes = sizes_of(config, kv_heads=16)
    shared = config.count("ffn_size", "shared_expert_intermediate_size")
    experts = _qwen_experts(config, sizes["layers"], shared)
    bias = "qkv" if config.flag("qkv_bias", True) else "none"
    return model_of(
        config, "qwen-2-moe", **sizes, **_qwen_windows(config, sizes["layers"]), attention_bias=bias, experts=experts
    )


def _qwen3_moe(config: Config) -> Model:
    sizes = sizes_of(config, kv_heads=4)
    experts = _qwen_experts(config, sizes["layers"], 0)
    windows = _qwen_windows(config, sizes["layers"])
    return model_of(
        config, "qwen-3-moe", **sizes, **windows, attention_bias=bias_of(config), qk_norm="per-head", experts=experts
    )


def _gemma(config: Config) -> Model:
    return model_of(
        config, "gemma-1", **sizes_of(config, head_size=256, kv_heads=16, tied=True), attention_bias=bias_of(config)
    )


def _gemma2(config: Config) -> Model:
    sizes = sizes_of(config, head_size=256, kv_heads=4, tied=True)
    windows = windows_of(config, sizes["layers"], window_of(config, 4096), 2)
    return model_of(config, "gemma-2", **sizes, **windows, norms_per_layer=4, attention_bias=bias_of(config))


# Published multimodal files give only what differs from the class: its sizes for heads, vocabulary and sequence.
_GEMMA3_DEFAULTS = {
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 262_208,
    "max_position_embeddings": 131_072,
}


def _gemma3_text(config: Config, **extra: Any) -> Model:
    absent = {key: value for key, value in _GEMMA3_DEFAULTS.items() if config.data.get(key) is None}
    config.defaulted |= {config.prefix + key: value for key, value in absent.items()}
    filled = Config(config.data | absent, config.file, config.prefix, config.defaulted)
    sizes = sizes_of(filled, head_size=256, tied=True)
    every = filled.count("layers", "sliding_window_pattern", "_sliding_window_pattern", default=6)
    windows = windows_of(filled, sizes["layers"], window_of(filled, 4096), every)
    return model_of(
        filled,
        "gemma-3",
        **sizes,
        **windows,
        norms_per_layer=4,
        qk_norm="per-head",
        attention_bias=bias_of(filled),
        **extra,
    )


def _gemma3(config: Config) -> Model:
    seen = ("vision-tower",) if config.data.get("vision_config") is not None else ()
    return _gemma3_text(config.inner("text_config"), not_counted=seen)


def _llama4_text(config: Config, **extra: Any) -> Model:
    sizes = sizes_of(config, head_size=128, kv_heads=8)
    layers, expert_size = sizes["layers"], sizes["ffn_size"]
    step = config.count("layers", "interleave_moe_layer_step", default=1)
    listed = config.data.get("moe_layers")
    if listed is not None and listed != list(range(step - 1, layers, step)):
        raise config.error("only experts in every interleave_moe_layer_step-th layer are modelled", "moe_layers")
    experts = Experts(
        count=config.count("experts", "num_local_experts", default=16),
        per_token=config.count("experts", "num_experts_per_tok", default=1),
        ffn_size=expert_size,
        shared=1,
        shared_ffn_size=expert_size,
        first_layer=step - 1,
        every=step,
    )
    dense_size = config.count("ffn_size", "intermediate_size_mlp", default=16384)
    fields = sizes | chunks_of(config, layers) | {"ffn_size": dense_size}
    return model_of(config, "llama-4", **fields, attention_bias=bias_of(config), experts=experts, **extra)


def _llama4(config: Config) -> Model:
    seen = ("vision-tower",) if config.data.get("vision_config") is not None else ()
    return _llama4_text(config.inner("text_config"), not_counted=seen)


def _deepseek(config: Config, family: str, router_bias: bool) -> Model:
    config.only("attention_bias", False, why="biases of latent attention")
    config.only("moe_layer_freq", 1, why="every layer after the dense ones must hold experts")
    heads = config.count("heads", "num_attention_heads")
    compressed = "q_lora_rank" not in config.data or config.data["q_lora_rank"] is not None
    latent = LatentAttention(
        query_rank=config.count("hidden_size", "q_lora_rank", default=1536) if compressed else 0,
        kv_rank=config.count("hidden_size", "kv_lora_rank"),
        rope_head_size=config.count("head_size", "qk_rope_head_dim"),
        plain_head_size=config.count("head_size", "qk_nope_head_dim"),
        value_head_size=config.count("head_size", "v_head_dim"),
    )
    ffn_size = config.count("ffn_size", "moe_intermediate_size")
    shared = config.count("experts", "n_shared_experts", low=0)
    groups = config.count("experts", "n_group", default=1)
    limited = config.count("experts", "topk_group", default=groups)
    experts = Experts(
        count=config.count("experts", "n_routed_experts"),
        per_token=config.count("experts", "num_experts_per_tok"),
        ffn_size=ffn_size,
        shared=shared,
        shared_ffn_size=ffn_size if shared else 0,
        first_layer=config.count("layers", "first_k_dense_replace", low=0),
        router_bias=router_bias,
        groups=groups,
        groups_per_token=min(limited, groups),
    )
    return model_of(
        config,
        family,
        hidden_size=config.count("hidden_size", "hidden_size"),
        layers=config.count("layers", "num_hidden_layers"),
        ffn_size=config.count("ffn_size", "intermediate_size"),
        heads=heads,
        kv_heads=heads,
        head_size=latent.rope_head_size + latent.plain_head_size,
        vocabulary=config.count("vocabulary", "vocab_size"),
        max_sequence=config.count("max_sequence", "max_position_embeddings"),
        tied_embeddings=config.flag("tie_word_embeddings", False),
        latent_attention=latent,
        experts=experts,
    )


def _gpt_oss(config: Config) -> Model:
    sizes = sizes_of(config, head_size=64, kv_heads=8)
    experts = Experts(
        count=config.count("experts", "num_local_experts", "num_experts"),
        per_token=config.count("experts", "num_experts_per_tok", "experts_per_token"),
        ffn_size=sizes["ffn_size"],
        router_bias=True,
    )
    return model_of(
        config,
        "gpt-oss",
        **sizes,
        **windows_of(config, sizes["layers"], window_of(config, 128), 2),
        attention_bias=bias_of(config, True),
        ffn_bias=True,
        attention_sinks=True,
        experts=experts,
    )


def _phi3(config: Config) -> Model:
    sizes = sizes_of(config)
    return model_of(config, "phi-3", **sizes, **windows_of(config, sizes["layers"], window_of(config), 1))


def _plain(config: Config, family: str, hidden: int, heads: int, **fields: Any) -> Model:
    """A model of before Llama: plain feed-forward, layer norms, a tied head, as many key-value heads as heads."""
    if hidden % heads:
        raise config.error(f"hidden size {hidden} does not divide by {heads} heads", "num_attention_heads")
    usual: dict[str, Any] = {
        "hidden_size": hidden,
        "heads": heads,
        "kv_heads": heads,
        "head_size": hidden // heads,
        "vocabulary": config.count("vocabulary", "vocab_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", True),
        "gated_ffn": False,
        "norm": "layernorm",
        "attention_bias": "qkvo",
        "ffn_bias": True,
    }
    return model_of(config, family, **usual | fields)


def _gpt2(config: Config) -> Model:
    config.only("add_cross_attention", False, why="a decoder alone is")
    hidden = config.count("hidden_size", "n_embd", "hidden_size")
    positions = config.count("max_sequence", "n_positions", "max_position_embeddings")
    return _plain(
        config,
        "gpt-2",
        hidden,
        config.count("heads", "n_head", "num_attention_heads"),
        layers=config.count("layers", "n_layer", "num_hidden_layers"),
        ffn_size=config.count("ffn_size", "n_inner", default=4 * hidden),
        positions=positions,
        max_sequence=positions,
    )


def _opt(config: Config) -> Model:
    config.only("do_layer_norm_before", True, why="norms must precede attention and feed-forward")
    hidden = config.count("hidden_size", "hidden_size")
    config.only("word_embed_proj_dim", hidden, why="the embedding must be as wide as the layers")
    longest = config.count("max_sequence", "max_position_embeddings")
    bias = config.flag("enable_bias", True)
    return _plain(
        config,
        "opt",
        hidden,
        config.count("heads", "num_attention_heads"),
        layers=config.count("layers", "num_hidden_layers"),
        ffn_size=config.count("ffn_size", "ffn_dim"),
        positions=longest + 2,  # transformers keeps two rows for padding
        max_sequence=longest,
        attention_bias="qkvo" if bias else "none",
        ffn_bias=bias,
        norm="layernorm" if config.flag("layer_norm_elementwise_affine", True) else "none",
    )


def _bloom(config: Config) -> Model:
    hidden = config.count("hidden_size", "hidden_size", "n_embed")
    return _plain(
        config,
        "bloom",
        hidden,
        config.count("heads", "n_head", "num_attention_heads"),
        layers=config.count("layers", "n_layer", "num_hidden_layers"),
        ffn_size=4 * hidden,
        max_sequence=config.count("max_sequence", "seq_length"),
        embedding_norm=True,
    )


def _falcon(config: Config) -> Model:
    hidden = config.count("hidden_size", "hidden_size", "n_embed")
    heads = config.count("heads", "num_attention_heads", "n_head")
    new = config.flag("new_decoder_architecture", False)
    shared = config.flag("multi_query", True)
    parallel = config.flag("parallel_attn", True)
    bias = config.flag("bias", False)
    return _plain(
        config,
        "falcon",
        hidden,
        heads,
        kv_heads=config.count("kv_heads", "num_kv_heads", "n_head_kv", default=heads)
        if new
        else 1
        if shared
        else heads,
        layers=config.count("layers", "num_hidden_layers", "n_layer"),
        ffn_size=config.count("ffn_size", "ffn_hidden_size", default=4 * hidden),
        max_sequence=config.count("max_sequence", "max_position_embeddings", default=2048),
        parallel_block=parallel or new,
        norms_per_layer=config.count("layers", "num_ln_in_parallel_attn", default=2 if new or not parallel else 1),
        attention_bias="qkvo" if bias else "none",
        ffn_bias=bias,
    )


READERS: dict[str, Callable[[Config], Model]] = {
    "llama": _llama,
    "llama4": _llama4,
    "llama4_text": _llama4_text,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma3_text": _gemma3_text,
    "deepseek_v2": lambda config: _deepseek(config, "deepseek-v2", router_bias=False),
    "deepseek_v3": lambda config: _deepseek(config, "deepseek-v3", router_bias=True),
    "kimi_k2": lambda config: _deepseek(config, "deepseek-v3", router_bias=True),
    "gpt_oss": _gpt_oss,
    "phi3": _phi3,
    "gpt2": _gpt2,
    "opt": _opt,
    "bloom": _bloom,
    "falcon": _falcon,
}
"""The reader of each `model_type`."""
