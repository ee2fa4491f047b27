"""Reading a model: models/NAME.yaml."""

from __future__ import annotations

from pathlib import Path

from costmodel.catalog.catalog import Catalog, check_names
from costmodel.catalog.entries import Experts, LatentAttention, Model, Number, Recurrent
from costmodel.catalog.facts import CONFIDENCE
from costmodel.catalog.reader import Block
from costmodel.catalog.shape import ATTENTION_BIASES, LARGEST, NORMS, QK_NORMS, RECURRENT_KINDS, contradictions

REQUIRED = (
    "name",
    "family",
    "source",
    "confidence",
    "layers",
    "hidden_size",
    "ffn_size",
    "heads",
    "kv_heads",
    "head_size",
    "vocabulary",
    "max_sequence",
    "tied_embeddings",
    "gated_ffn",
    "norm",
)
OPTIONAL = (
    "aliases",
    "hugging_face",
    "published_parameters",
    "published_active_parameters",
    "checkpoint_parameters",
    "norms_per_layer",
    "final_norm",
    "embedding_norm",
    "attention_bias",
    "attention_gate",
    "attention_sinks",
    "ffn_bias",
    "qk_norm",
    "positions",
    "window",
    "attention_chunk",
    "window_every",
    "parallel_block",
    "latent_attention",
    "experts",
    "recurrent",
    "multi_token_prediction_layers",
    "extra_parameters",
    "not_modelled",
    "not_counted",
    "note",
)


def read_models(catalog: Catalog | Path | None = None) -> tuple[Model, ...]:
    """Every model of the catalog, by name. Raises CatalogError at the first bad file."""
    opened = Catalog.of(catalog)
    models = [read_model(opened, path) for path in opened.shelf("models").paths()]
    return tuple(sorted(models, key=lambda model: model.name))


def read_model(catalog: Catalog, path: Path) -> Model:
    """The model in the file at `path`, which must be called as the file is."""
    block = catalog.read(path)
    entry = model(block)
    check_names(block, entry.name, entry.aliases, path)
    return entry


def model(block: Block) -> Model:
    """The model that a file describes; raises CatalogError where the file breaks a rule.

    What an absent key means: two norms a layer and a final one, no biases, no norm of queries and keys, no learned
    positions, no window and no chunks, no experts, grouped attention in every layer, no modules that predict further tokens.
    """
    block.keys_are(REQUIRED, OPTIONAL)
    confidence = block.choice("confidence", CONFIDENCE)

    def size(key: str) -> int:
        return block.integer(key, 1, LARGEST[key])

    entry = Model(
        name=block.text("name"),
        aliases=block.texts("aliases", ()),
        family=block.text("family"),
        layers=size("layers"),
        hidden_size=size("hidden_size"),
        ffn_size=size("ffn_size"),
        heads=size("heads"),
        kv_heads=size("kv_heads"),
        head_size=size("head_size"),
        vocabulary=size("vocabulary"),
        max_sequence=size("max_sequence"),
        tied_embeddings=block.boolean("tied_embeddings"),
        gated_ffn=block.boolean("gated_ffn"),
        norm=block.choice("norm", NORMS),  # type: ignore[arg-type]  # one of the literals
        norms_per_layer=block.integer("norms_per_layer", 0, 8, 2),
        final_norm=block.boolean("final_norm", True),
        embedding_norm=block.boolean("embedding_norm", False),
        attention_bias=block.choice("attention_bias", ATTENTION_BIASES, "none"),  # type: ignore[arg-type]
        attention_gate=block.boolean("attention_gate", False),
        attention_sinks=block.boolean("attention_sinks", False),
        ffn_bias=block.boolean("ffn_bias", False),
        qk_norm=block.choice("qk_norm", QK_NORMS, "none"),  # type: ignore[arg-type]
        positions=block.integer("positions", 0, LARGEST["max_sequence"], 0),
        window=block.integer("window", 1, LARGEST["max_sequence"], 0),
        attention_chunk=block.integer("attention_chunk", 1, LARGEST["max_sequence"], 0),
        window_every=block.integer("window_every", 2, LARGEST["layers"], 1),
        parallel_block=block.boolean("parallel_block", False),
        latent_attention=_latent_attention(block.block("latent_attention")) if "latent_attention" in block else None,
        experts=_experts(block.block("experts")) if "experts" in block else None,
        recurrent=_recurrent(block.block("recurrent")) if "recurrent" in block else None,
        multi_token_prediction_layers=block.integer("multi_token_prediction_layers", 1, LARGEST["layers"], 0),
        extra_parameters=block.integer("extra_parameters", 0, LARGEST["parameters"], 0),
        not_modelled=block.texts("not_modelled", ()),
        not_counted=block.texts("not_counted", ()),
        published_parameters=_published(block, "published_parameters", confidence),
        published_active_parameters=_published(block, "published_active_parameters", confidence),
        checkpoint_parameters=block.integer("checkpoint_parameters", 1, LARGEST["parameters"], 0),
        hugging_face=block.texts("hugging_face", ()),
        confidence=confidence,
        source=block.text("source"),
        note=block.text("note", ""),
    )
    for field, sentence in contradictions(entry):
        raise _blame(block, field, sentence)
    return entry


def _blame(block: Block, field: str, sentence: str) -> Exception:
    """The error about a field that may lie in an inner block, such as `experts.per_token`."""
    *outer, key = field.split(".")
    for name in outer:
        block = block.block(name)
    return block.error(sentence, key if key in block else "")


def _published(block: Block, key: str, confidence: str) -> Number | None:
    if key not in block:
        return None
    value = block.number(key)
    if not 1e6 <= value <= LARGEST["parameters"]:
        raise block.error(f"{value:g} is out of range, 1 million to {LARGEST['parameters']:g} parameters", key)
    return Number(value, "count", block.text("source"), confidence, where=f"{block.file}:{block.line(key)}: {key}")


def _latent_attention(block: Block) -> LatentAttention:
    block.keys_are(("kv_rank", "rope_head_size", "plain_head_size", "value_head_size"), ("query_rank",))
    sizes = {key: block.integer(key, 1, LARGEST["hidden_size"]) for key in block}
    return LatentAttention(**{"query_rank": 0} | sizes)


def _experts(block: Block) -> Experts:
    block.keys_are(
        ("count", "per_token", "ffn_size"),
        (
            "shared",
            "shared_ffn_size",
            "first_layer",
            "every",
            "latent_size",
            "router_bias",
            "shared_gate",
            "groups",
            "groups_per_token",
        ),
    )
    groups = block.integer("groups", 1, LARGEST["experts"], 1)
    return Experts(
        count=block.integer("count", 1, LARGEST["experts"]),
        per_token=block.integer("per_token", 1, LARGEST["experts"]),
        ffn_size=block.integer("ffn_size", 1, LARGEST["ffn_size"]),
        shared=block.integer("shared", 1, LARGEST["experts"], 0),
        shared_ffn_size=block.integer("shared_ffn_size", 1, LARGEST["ffn_size"], 0),
        first_layer=block.integer("first_layer", 0, LARGEST["layers"], 0),
        every=block.integer("every", 1, LARGEST["layers"], 1),
        latent_size=block.integer("latent_size", 1, LARGEST["hidden_size"], 0),
        router_bias=block.boolean("router_bias", False),
        shared_gate=block.boolean("shared_gate", False),
        groups=groups,
        groups_per_token=block.integer("groups_per_token", 1, groups, groups),
    )


def _recurrent(block: Block) -> Recurrent:
    block.keys_are(
        ("kind", "layers", "attention_layers", "ffn_layers", "heads", "head_size", "groups", "state_size"),
        ("convolution",),
    )
    layers = {key: block.integer(key, 0, LARGEST["layers"]) for key in ("layers", "attention_layers", "ffn_layers")}
    return Recurrent(
        kind=block.choice("kind", RECURRENT_KINDS[1:]),  # type: ignore[arg-type]  # one of the literals
        heads=block.integer("heads", 1, LARGEST["heads"]),
        head_size=block.integer("head_size", 1, LARGEST["head_size"]),
        groups=block.integer("groups", 1, LARGEST["heads"]),
        state_size=block.integer("state_size", 1, LARGEST["head_size"]),
        convolution=block.integer("convolution", 1, 1024, 0),
        **layers,
    )
