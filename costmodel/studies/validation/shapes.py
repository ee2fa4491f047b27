"""The shapes of published models by the names that tables give them: a user's file, the shipped table, then the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Experts, LatentAttention, Model
from costmodel.catalog.resolve import resolve_model
from costmodel.catalog.shape import LARGEST, contradictions
from costmodel.errors import InputError
from costmodel.studies.validation.rows import Row, UnreadError, published, read_table

COLUMNS = {
    "name": "name",
    "family": "family",
    "layers": "layers",
    "hidden_size": "hidden",
    "ffn_size": "ffn_hidden",
    "heads": "heads",
    "kv_heads": "kv_heads",
    "head_size": "head_dim",
    "vocabulary": "vocab",
    "gated_ffn": "gated_mlp",
    "tied_embeddings": "tied_embeddings",
    "norm_and_positions": "norm_pos",
    "experts": "moe_experts",
    "experts_per_token": "moe_top_k",
    "shared_experts": "moe_shared_experts",
    "expert_ffn_size": "moe_expert_ffn",
    "dense_layers": "moe_dense_layers",
    "query_rank": "mla_q_lora",
    "kv_rank": "mla_kv_lora",
    "plain_head_size": "mla_qk_nope",
    "rope_head_size": "mla_qk_rope",
    "value_head_size": "mla_v_head",
    "source": "source",
}
"""The columns of tables/published/models.csv, and what other tables of models call them."""

OUTSIDE = (
    "sliding window",
    "chunked attention",
    "nope every",
    "compressed attention",
    "delta net",
    "hybrid",
    "per-layer embeddings",
)
"""Words in a description that name attention or layers which a plain decoder does not have."""
UNSTATED_VOCABULARY = 51_200
LEARNED_POSITIONS = 2048
"""Entries of a table of learned positions, where one is named without its size: next to nothing of the parameters."""


class Shapes:
    """Models by name; each is made when it is first asked for."""

    def __init__(self, catalog: Catalog, models: Path | None) -> None:
        """Raises InputError for a file of models that cannot be read."""
        self.catalog = catalog
        self.rows = {row.text("name"): row for row in _rows(published("models"), "a table of models")}
        if models is not None:
            self.rows |= {row.text("name"): row for row in _rows(models, "--models")}
        self._made: dict[str, Model | InputError] = {}

    def model(self, name: str) -> Model:
        """The model of that name. Raises InputError where there is none, or its shape is not known well enough."""
        if name not in self._made:
            try:
                self._made[name] = shape(self.rows[name]) if name in self.rows else resolve_model(name, self.catalog)
            except InputError as error:
                self._made[name] = error
        found = self._made[name]
        if isinstance(found, InputError):
            raise found
        return found


def _rows(path: Path, said: str) -> Iterable[Row]:
    """Rows under our names of the columns, whichever of the two sets of names the file has."""
    columns, rows = read_table(path)
    ours, theirs = set(COLUMNS) - set(columns), set(COLUMNS.values()) - set(columns)
    if not ours:
        return rows
    if theirs:
        raise InputError(
            f"{said}: {str(path)[:200]!r} lacks the columns {', '.join(sorted(ours if len(ours) < len(theirs) else theirs))}"
        )
    return [Row({mine: row.text(given) for mine, given in COLUMNS.items()}, row.where) for row in rows]


def shape(row: Row) -> Model:
    """The model that a row of such a table describes. Raises UnreadError naming what it lacks, InputError for contradictions."""
    name = row.text("name")
    text = row.text("norm_and_positions").lower()
    sizes = {key: row.whole(key) for key in ("layers", "hidden_size", "heads")}
    missing = [key.replace("_", " ") for key, value in sizes.items() if value is None]
    if missing:
        raise UnreadError(f"of {name} the {' and '.join(missing)} are not known")
    heads = row.whole("heads") or 0
    hidden = row.whole("hidden_size") or 0
    experts, latent = _experts(row), _latent(row)
    ffn = row.whole("ffn_size") or (experts.ffn_size if experts else None)
    if ffn is None:
        raise UnreadError(f"of {name} the feed-forward size is not known")
    gated = row.text("gated_ffn").lower().startswith(("true", "1", "yes"))
    layernorm = "layernorm" in text or ("rmsnorm" not in text and not gated)
    biased = layernorm and "no bias" not in row.text("note").lower()
    outside = tuple(words for words in OUTSIDE if words in text)
    model = Model(
        name=name,
        aliases=(),
        family=row.text("family") or "unknown",
        layers=sizes["layers"] or 0,
        hidden_size=hidden,
        ffn_size=ffn,
        heads=heads,
        kv_heads=heads if latent else row.whole("kv_heads") or heads,
        head_size=_head_size(row, latent, hidden, heads),
        vocabulary=row.whole("vocabulary") or UNSTATED_VOCABULARY,
        tied_embeddings=row.text("tied_embeddings").lower().startswith(("true", "1", "yes")),
        gated_ffn=gated,
        norm="layernorm" if layernorm else "rmsnorm",
        norms_per_layer=1 if "one norm" in text else 2,
        final_norm=True,
        attention_bias="qkvo" if biased else "qkv" if "qkv bias" in text else "none",
        ffn_bias=biased,
        qk_norm="per-head" if "qk norm" in text else "none",
        positions=LEARNED_POSITIONS if "learned" in text else 0,
        max_sequence=2**24,
        experts=experts,
        latent_attention=latent,
        parallel_block="parallel block" in text,
        not_modelled=outside,
        source=row.text("source"),
    )
    return checked(model)


def checked(model: Model) -> Model:
    """The model, if it can be one. Raises UnreadError for sizes that nobody means, or that contradict each other."""
    for field in ("layers", "hidden_size", "ffn_size", "heads", "kv_heads", "head_size", "vocabulary"):
        value = getattr(model, field)
        if not 1 <= value <= LARGEST[field]:
            raise UnreadError(f"the shape of {model.name}: a {field.replace('_', ' ')} of {value:,} cannot be meant")
    for field, sentence in contradictions(model):
        raise UnreadError(f"the shape of {model.name} contradicts itself: {field}: {sentence}")
    return model


def _head_size(row: Row, latent: LatentAttention | None, hidden: int, heads: int) -> int:
    if latent:
        return latent.rope_head_size + latent.plain_head_size
    given = row.whole("head_size")
    if given is None and hidden % heads:
        raise UnreadError(f"of {row.text('name')} the head size is not known, and {heads} heads do not divide {hidden}")
    return given or hidden // heads


def _experts(row: Row) -> Experts | None:
    count = row.whole("experts")
    if count is None:
        return None
    per_token, ffn = row.whole("experts_per_token"), row.whole("expert_ffn_size")
    if per_token is None or ffn is None:
        raise UnreadError(f"of {row.text('name')} the experts of a token or their size are not known")
    shared, dense, layers = (_or_none(row, key) for key in ("shared_experts", "dense_layers", "layers"))
    every_other = bool(dense and layers and 2 * dense == layers)
    return Experts(
        count=count,
        per_token=per_token,
        ffn_size=ffn,
        shared=shared,
        shared_ffn_size=ffn if shared else 0,
        first_layer=1 if every_other else dense,
        every=2 if every_other else 1,
    )


def _or_none(row: Row, column: str) -> int:
    """A count that may be 0 or left out."""
    return 0 if row.text(column) in {"", "0", "0.0"} else row.whole(column) or 0


def _latent(row: Row) -> LatentAttention | None:
    if not row.text("value_head_size"):
        return None
    sizes: Mapping[str, int] = {
        key: _or_none(row, key)
        for key in ("query_rank", "kv_rank", "rope_head_size", "plain_head_size", "value_head_size")
    }
    if not all(sizes[key] for key in ("kv_rank", "rope_head_size", "plain_head_size", "value_head_size")):
        return None
    return LatentAttention(**sizes)
