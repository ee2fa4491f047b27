"""What models there are, and what one of them holds, item by item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.counts import cache_bytes, flop_counts, parameter_counts
from costmodel.catalog.entries import Experts, LatentAttention, Model, Number, Recurrent
from costmodel.catalog.models import read_models
from costmodel.catalog.resolve import resolve_model
from costmodel.catalog.units import ELEMENT_BYTES
from costmodel.errors import InputError
from costmodel.report import Record, Scalar, Table, human

CACHE_DTYPE = "bf16"
"""The KV cache is shown in 16 bits."""

# Items of the parameter count: what is printed, its quantity, that of one layer, and the number of such layers.
_ITEMS = (
    ("embedding", "embedding_parameters", "", ""),
    ("learned positions", "position_parameters", "", ""),
    ("norm of the embedding", "embedding_norm_parameters", "", ""),
    ("attention", "attention_parameters", "attention_layer_parameters", "attention_layers"),
    ("recurrent layers", "recurrent_parameters", "recurrent_layer_parameters", "recurrent_layers"),
    ("dense feed-forward", "ffn_parameters", "ffn_layer_parameters", "dense_layers"),
    ("routed experts", "routed_expert_parameters", "", "expert_layers"),
    ("shared experts", "shared_expert_parameters", "shared_expert_matrices", "expert_layers"),
    ("router", "router_parameters", "router_layer_parameters", "expert_layers"),
    ("norms", "norm_parameters", "", "layers"),
    ("final norm", "final_norm_parameters", "", ""),
    ("head", "head_parameters", "", ""),
    ("other layers", "extra_parameters", "", ""),
)


def list_models(catalog: Catalog | Path | None = None, *, named: str = "") -> ModelList:
    """Every model of the catalog with its parameter counts, or those with `named` in a name or an alias of theirs.

    Raises InputError where there is none, and CatalogError at the first bad file.
    """
    wanted = named.strip().lower()
    found = tuple(
        ModelCount(model)
        for model in read_models(catalog)
        if any(wanted in name for name in (model.name, *model.aliases))
    )
    if not found:
        raise InputError(f"no model has {named!r} in its name: `costmodel models list` names all")
    return ModelList(found)


def show_model(name: str, catalog: Catalog | Path | None = None) -> ModelDetails:
    """One model with its parameters item by item.

    The work of a token is that in sequences as long as a run's are by default, where the model goes that far.
    `name` is a name, a size such as `7B`, or the path of a config.json. Raises InputError with the nearest names when there
    is none, and CatalogError when a file is bad.
    """
    opened = Catalog.of(catalog)
    model = resolve_model(name, opened)
    usual = int(opened.assumptions("workload")["sequence_length"].value)
    return ModelDetails(ModelCount(model), min(usual, model.max_sequence))


@dataclass(frozen=True)
class ModelCount:
    """A model and every quantity of the chapter Parameters for it."""

    model: Model

    @cached_property
    def quantities(self) -> Mapping[str, int]:
        """Counts by the name of their equation."""
        return parameter_counts(self.model)

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self.quantities["parameters"]

    @property
    def active_parameters(self) -> int:
        """Those that one token uses."""
        return self.quantities["active_parameters"]

    @property
    def active_parameters_without_embedding(self) -> int:
        """The same without tables that are only looked up."""
        return self.quantities["active_parameters_without_embedding"]

    @property
    def matches_checkpoint(self) -> bool | None:
        """Whether the count is that of a published checkpoint, to the last parameter; None when none is recorded."""
        expected = self.model.checkpoint_parameters
        return self.parameters == expected if expected else None

    def record(self) -> Record:
        """The model as one flat row."""
        model, experts = self.model, self.model.experts
        return {
            "name": model.name,
            "aliases": " ".join((*model.aliases, *model.hugging_face)),
            "family": model.family,
            "parameters": self.parameters,
            "active_parameters": self.active_parameters,
            "active_parameters_without_embedding": self.active_parameters_without_embedding,
            "checkpoint_parameters": model.checkpoint_parameters or None,
            "layers": model.layers,
            "hidden_size": model.hidden_size,
            "ffn_size": model.ffn_size,
            "heads": model.heads,
            "kv_heads": model.kv_heads,
            "head_size": model.head_size,
            "vocabulary": model.vocabulary,
            "max_sequence": model.max_sequence,
            "experts": experts.count if experts else 0,
            "experts_per_token": experts.per_token if experts else 0,
            "not_modelled": " ".join(model.not_modelled),
            "multi_token_prediction_layers": model.multi_token_prediction_layers,
        }

    def result(self) -> dict[str, object]:
        """The model for JSON: the record with lists in place of joined words."""
        model = self.model
        return {
            **self.record(),
            "aliases": list(model.aliases),
            "hugging_face": list(model.hugging_face),
            "not_modelled": list(model.not_modelled),
        }


@dataclass(frozen=True, slots=True)
class ModelList:
    """The models of a catalog."""

    models: tuple[ModelCount, ...]
    exit_code: int = 0

    def records(self) -> list[Record]:
        """One row a model."""
        return [count.record() for count in self.models]

    def long_records(self) -> list[Record]:
        """One row an item of the parameters of each model."""
        return [row for count in self.models for row in _items(count)]

    def results(self) -> list[dict[str, object]]:
        """One object a model."""
        return [count.result() for count in self.models]

    def extras(self) -> dict[str, object]:
        """Nothing beside the results."""
        return {}

    def tables(self) -> list[Table]:
        """Name, size and shape of every model."""
        headers = ("model", "parameters", "active", "layers", "hidden", "heads", "experts")
        rows = [
            (
                count.model.name,
                human.count(count.parameters),
                human.count(count.active_parameters) if count.model.experts else "",
                count.model.layers,
                count.model.hidden_size,
                f"{count.model.heads}/{count.model.kv_heads}",
                f"{count.model.experts.per_token} of {count.model.experts.count}" if count.model.experts else "",
            )
            for count in self.models
        ]
        notes = [
            "heads: query/key-value; `costmodel models show NAME` prints a model with its aliases and sources.",
            "A size such as 70B, or the path of a Hugging Face config.json, can be given wherever a model's name can.",
        ]
        return [Table("Models", headers, rows, notes)]


@dataclass(frozen=True, slots=True)
class ModelDetails:
    """One model; the work of a token is that in sequences of `sequence_length` tokens."""

    count: ModelCount
    sequence_length: int
    exit_code: int = 0

    def records(self) -> list[Record]:
        """The model as one row."""
        return [{**self.count.record(), **self._token()}]

    def long_records(self) -> list[Record]:
        """One row an item of its parameters."""
        return _items(self.count)

    def results(self) -> list[dict[str, object]]:
        """The model with its shape, its parameters item by item, and where they come from."""
        model = self.count.model
        items = {str(row["item"]): row["parameters"] for row in _items(self.count)}
        return [
            {
                **self.count.result(),
                **self._token(),
                "published_parameters": _value(model.published_parameters),
                "published_active_parameters": _value(model.published_active_parameters),
                "matches_checkpoint": self.count.matches_checkpoint,
                "items": items,
                "shape": _shape(model),
                "not_counted": list(model.not_counted),
                "multi_token_prediction": self._modules(),
                "source": model.source,
                "confidence": model.confidence,
                "note": model.note,
            }
        ]

    def extras(self) -> dict[str, object]:
        """Nothing beside the results."""
        return {}

    def tables(self) -> list[Table]:
        """The parameters item by item, the totals and the shape."""
        model = self.count.model
        total = self.count.parameters
        items: list[tuple[Scalar, ...]] = [
            (
                row["item"],
                row["layers"],
                _exact(row["each"]),
                _exact(row["parameters"]),
                _share(row["parameters"], total),
            )
            for row in _items(self.count)
        ]
        items.append(("all", None, "", f"{total:,}", "100%"))
        totals: list[tuple[str, str]] = [
            ("parameters", f"{total:,}"),
            ("active, one token", f"{self.count.active_parameters:,}"),
            ("active without looked-up tables", f"{self.count.active_parameters_without_embedding:,}"),
            ("checkpoint", self._checkpoint()),
            ("published", _published(model)),
            (
                f"training, a token at {self.sequence_length:,} tokens",
                human.rate(self._token()["training_flops_per_token"], "FLOP"),
            ),
            ("KV cache a token, 16 bit", human.size(self._token()["kv_cache_bytes_per_token"])),
        ]
        modules = self._modules()
        if modules:
            totals += [
                (f"a multi-token-prediction module, of {modules['layers']}", f"{modules['parameters_each']:,}"),
                ("with its copies of embedding and head", f"{modules['parameters_each_with_shared']:,}"),
            ]
        shape = [
            (name.replace("_", " "), _cell(value))
            for name, value in _shape(model).items()
            if _present(name, value, model)
        ]
        return [
            Table(
                f"Parameters of {model.name}", ("item", "layers", "each", "parameters", "share"), items, self._notes()
            ),
            Table("Totals", ("quantity", "value"), totals),
            Table("Shape", ("field", "value"), shape),
        ]

    def _modules(self) -> dict[str, int] | None:
        """The modules that predict further tokens, which no total counts; None where the model was published without."""
        layers = self.count.model.multi_token_prediction_layers
        if not layers:
            return None
        found = self.count.quantities
        return {
            "layers": layers,
            "parameters_each": found["multi_token_parameters"],
            "parameters_each_with_shared": found["multi_token_file_parameters"],
        }

    def _token(self) -> dict[str, float]:
        flops = flop_counts(self.count.model, self.sequence_length)
        cache = cache_bytes(self.count.model, self.sequence_length, ELEMENT_BYTES[CACHE_DTYPE])
        return {
            "sequence_length": self.sequence_length,
            "training_flops_per_token": flops["training_flops"],
            "training_flops_per_token_causal": flops["training_flops_causal"],
            "six_n_flops_per_token": flops["six_n_flops"],
            "kv_cache_bytes_per_token": cache["cache_per_token"],
        }

    def _checkpoint(self) -> str:
        if self.count.matches_checkpoint is None:
            return "no exact count is recorded"
        expected = self.count.model.checkpoint_parameters
        return "the same, to the last parameter" if self.count.matches_checkpoint else f"{expected:,}, which differs"

    def _notes(self) -> list[str]:
        model = self.count.model
        known_as = ", ".join((*model.aliases, *model.hugging_face))
        return [
            f"{label}: {text}"
            for label, text in (
                ("also known as", known_as),
                ("source", f"{model.source} ({model.confidence})" if model.confidence else model.source),
                ("note", model.note),
                ("not counted", ", ".join(model.not_counted)),
                ("no step time is known for", ", ".join(model.not_modelled)),
            )
            if text
        ]


def _items(count: ModelCount) -> list[Record]:
    """The items that the model has; `each` is that of one layer, where all such layers are alike."""
    found = count.quantities
    return [
        {
            "name": count.model.name,
            "item": item,
            "layers": found[layers] if layers else None,
            "each": found[each] if each else None,
            "parameters": found[quantity],
        }
        for item, quantity, each, layers in _ITEMS
        if found[quantity]
    ]


def _shape(model: Model) -> dict[str, object]:
    """The fields of the record that say what the model is made of; those of parts by the part's name."""
    shape: dict[str, object] = {}
    for field in fields(model):
        value = getattr(model, field.name)
        if isinstance(value, Experts | LatentAttention | Recurrent):
            shape[field.name] = {part.name: getattr(value, part.name) for part in fields(value)}
        elif value is not None and field.name not in _NOT_SHAPE:
            shape[field.name] = value
    return shape


def _present(name: str, value: object, model: Model) -> bool:
    """Whether a field says that something is there: what is not there is not printed for people."""
    return value not in (0, "none") and (name != "window_every" or bool(model.window or model.attention_chunk))


_NOT_SHAPE = (
    "name",
    "aliases",
    "family",
    "hugging_face",
    "not_modelled",
    "not_counted",
    "published_parameters",
    "published_active_parameters",
    "checkpoint_parameters",
    "confidence",
    "source",
    "note",
)


def _value(number: Number | None) -> float | None:
    return number.value if number else None


def _published(model: Model) -> str:
    if model.published_parameters is None:
        return "-"
    active = model.published_active_parameters
    return human.count(model.published_parameters.value) + (f", {human.count(active.value)} active" if active else "")


def _exact(value: Scalar) -> str:
    return f"{value:,}" if isinstance(value, int) else ""


def _share(part: Scalar, whole: int) -> str:
    return human.percent(part / whole) if isinstance(part, int) else ""


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(inner)}" for key, inner in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
