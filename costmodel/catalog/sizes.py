"""A size such as 7B or 400B as a model: the shape of a published Llama, or one by a rule that continues theirs.

The rule, whose constants are models/standard/rule.yaml: L layers of width D = 128 L, heads of 128 features, 8 key-value
heads from 32 layers on, a gated feed-forward, RMS norms, no biases. The feed-forward takes up what is left of the size,
to a multiple of 256, and L is the depth at which it comes nearest 3.5 D.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import log
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.counts import parameter_counts
from costmodel.catalog.entries import Model
from costmodel.catalog.models import read_model
from costmodel.catalog.reader import Block
from costmodel.catalog.shape import LARGEST
from costmodel.errors import InputError

_FACTORS = {"M": 10**6, "B": 10**9, "T": 10**12}
_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,12})?|\.\d{1,12})\s*([MBT])", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Rule:
    """The constants of the rule; `published` maps sizes to the model whose shape they take."""

    source: str
    published: dict[int, str]
    smallest: float
    largest: float
    layers: tuple[int, ...]
    head_size: int
    width_per_layer: int
    ffn_ratio: float
    ffn_multiple: int
    grouped_from_layers: int
    kv_heads: int
    tied_below: float
    small_below: float
    small_vocabulary: int
    vocabulary: int
    max_sequence: int


def standard_model(text: str, catalog: Catalog) -> Model:
    """The standard shape of a size such as `7B`, `350M` or `1.5T`.

    Raises InputError when `text` is not a number of parameters with M, B or T, or is out of the rule's range.
    """
    rule = standard_rule(catalog)
    size = _parse(text, rule)
    name = size_name(size)
    if size in rule.published:
        like = read_model(catalog, catalog.shelf("models").path(rule.published[size]))
        note = f"the shape of {like.name}"
        return replace(
            like, name=name, aliases=(), hugging_face=(), family="standard", max_sequence=rule.max_sequence, note=note
        )
    fitted = [shape for layers in rule.layers if (shape := _shape(rule, layers, size, name))]
    return min(fitted, key=lambda shape: abs(log(shape.ffn_size / shape.hidden_size / rule.ffn_ratio)))


def size_name(size: int) -> str:
    """A number of parameters as the name of its standard shape: 7b, 350m, 1.5t."""
    suffix, factor = next((s, f) for s, f in reversed(_FACTORS.items()) if size >= f or s == "M")
    return f"{size / factor:.12g}{suffix.lower()}"


def _parse(text: str, rule: Rule) -> int:
    span = f"{size_name(int(rule.smallest)).upper()} to {size_name(int(rule.largest)).upper()}"
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise InputError(
            f"{text.strip()[:40]!r} is not a size of a model: give parameters with M, B or T, {span}, such as 7B or 1.5T"
        )
    size = round(float(match[1]) * _FACTORS[match[2].upper()])
    if not rule.smallest <= size <= rule.largest:
        raise InputError(f"a model of {text.strip()} parameters has no standard shape: sizes go from {span}")
    return size


def _shape(rule: Rule, layers: int, size: int, name: str) -> Model | None:
    """The shape of so many layers whose feed-forward fills the size up, or None where nothing is left for it."""

    def of_width(ffn_size: int) -> Model:
        return Model(
            name=name,
            aliases=(),
            family="standard",
            layers=layers,
            hidden_size=rule.width_per_layer * layers,
            ffn_size=ffn_size,
            heads=rule.width_per_layer * layers // rule.head_size,
            kv_heads=rule.kv_heads
            if layers >= rule.grouped_from_layers
            else rule.width_per_layer * layers // rule.head_size,
            head_size=rule.head_size,
            vocabulary=rule.small_vocabulary if size < rule.small_below else rule.vocabulary,
            tied_embeddings=size < rule.tied_below,
            gated_ffn=True,
            norm="rmsnorm",
            norms_per_layer=2,
            final_norm=True,
            attention_bias="none",
            ffn_bias=False,
            qk_norm="none",
            positions=0,
            max_sequence=rule.max_sequence,
            source=rule.source,
            confidence="derived",
            note=f"a standard shape: {rule.width_per_layer} features of width a layer, the feed-forward fills the size",
        )

    # Parameters are linear in the width of the feed-forward, so that two counts give the width that fills the size.
    without, one_step = (parameter_counts(of_width(width))["parameters"] for width in (0, rule.ffn_multiple))
    steps = round((size - without) / (one_step - without))
    return of_width(steps * rule.ffn_multiple) if steps > 0 else None


def standard_rule(catalog: Catalog) -> Rule:
    """The rule in models/standard/rule.yaml, a user's own before the shipped one; raises CatalogError when it is bad."""
    folders = [folder / "standard" for folder in catalog.shelf("models").folders]
    path = next(
        (folder / "rule.yaml" for folder in folders if (folder / "rule.yaml").is_file()), Path(folders[-1], "rule.yaml")
    )
    return read_rule(catalog.read(path))


def read_rule(block: Block) -> Rule:
    """The rule that a file states; raises CatalogError where it breaks a rule of files."""
    counts = {
        "head_size": LARGEST["head_size"],
        "width_per_layer": LARGEST["hidden_size"],
        "ffn_multiple": LARGEST["ffn_size"],
        "grouped_from_layers": LARGEST["layers"],
        "kv_heads": LARGEST["kv_heads"],
        "small_vocabulary": LARGEST["vocabulary"],
        "vocabulary": LARGEST["vocabulary"],
        "max_sequence": LARGEST["max_sequence"],
    }
    numbers = ("smallest", "largest", "ffn_ratio", "tied_below", "small_below")
    block.keys_are(("name", "source", "published", "layers", *counts, *numbers))
    for inner in block.blocks("published"):
        inner.keys_are(("size", "model"))
    for key in numbers:
        if block.number(key) <= 0:
            raise block.error("expected a positive number", key)
    whole = {key: block.integer(key, 1, most) for key, most in counts.items()}
    return Rule(
        source=block.text("source"),
        published={round(inner.number("size")): inner.text("model") for inner in block.blocks("published")},
        layers=block.integers("layers", 1, LARGEST["layers"]),
        smallest=block.number("smallest"),
        largest=block.number("largest"),
        ffn_ratio=block.number("ffn_ratio"),
        tied_below=block.number("tied_below"),
        small_below=block.number("small_below"),
        **whole,
    )
