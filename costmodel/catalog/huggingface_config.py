"""The fields of a Hugging Face `config.json`, each taken by saying what it must be, and what most kinds of model share."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from costmodel.catalog.entries import Model
from costmodel.catalog.shape import LARGEST
from costmodel.errors import CatalogError

LARGEST_FILE = 4 * 2**20
LONGEST_NUMBER = 40
MISSING = object()
FURTHER_TOKENS = "num_nextn_predict_layers"
"""Modules that predict further tokens; a model without the field has none."""


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; CatalogError for anything that transformers itself would not read as meant."""
    file = str(path)
    try:
        if not path.is_file():
            raise CatalogError("there is no such file" if not path.exists() else "not a regular file", file=file)
        if path.stat().st_size > LARGEST_FILE:
            raise CatalogError(f"the file is larger than {LARGEST_FILE >> 20} MiB, no configuration is", file=file)
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CatalogError(f"the file cannot be read ({error.strerror})", file=file) from None
    except UnicodeDecodeError:
        raise CatalogError("the file is not UTF-8 text", file=file) from None

    def whole(digits: str) -> int:
        if len(digits) > LONGEST_NUMBER:
            raise CatalogError(f"a whole number of {len(digits)} digits is not a size", file=file)
        return int(digits)

    def constant(name: str) -> NoReturn:
        raise CatalogError(f"{name} is not a number that JSON allows", file=file)

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise CatalogError(
                    "the field is given twice", file=file, field=f"{key:.60}" if key.isidentifier() else repr(key[:60])
                )
            found[key] = value
        return found

    try:
        data = json.loads(text, parse_int=whole, parse_constant=constant, object_pairs_hook=members)
    except json.JSONDecodeError as error:
        raise CatalogError(
            f"not valid JSON ({error.msg}, column {error.colno})", file=file, line=error.lineno
        ) from None
    except RecursionError:
        raise CatalogError("nested too deeply, no configuration is", file=file) from None
    if not isinstance(data, dict):
        raise CatalogError("expected a JSON object, {...}", file=file)
    return data


class Config:
    """The fields of a configuration, each taken by saying what it must be; remembers the defaults that were taken."""

    def __init__(
        self, data: dict[str, Any], file: str, prefix: str = "", defaulted: dict[str, Any] | None = None
    ) -> None:
        self.data, self.file, self.prefix = data, file, prefix
        self.defaulted = {} if defaulted is None else defaulted

    def error(self, message: str, *keys: str) -> CatalogError:
        """The error to raise about the fields `keys`."""
        return CatalogError(message, file=self.file, field=" or ".join(self.prefix + key for key in keys))

    def inner(self, key: str) -> Config:
        """The object under `key`."""
        data = self.data.get(key)
        if not isinstance(data, dict):
            raise self.error("expected an object, {...}", key)
        return Config(data, self.file, f"{self.prefix}{key}.", self.defaulted)

    def _take(self, keys: Sequence[str], default: Any) -> Any:
        """The value under the first of several names for one field; null is absent."""
        values = {key: self.data[key] for key in keys if self.data.get(key) is not None}
        if len(set(map(repr, values.values()))) > 1:
            raise self.error(
                f"the two contradict each other: {' and '.join(repr(v)[:40] for v in values.values())}", *values
            )
        if values:
            return next(iter(values.values()))
        if default is MISSING:
            raise self.error("the field is missing", *keys[:1])
        self.defaulted[self.prefix + keys[0]] = default
        return default

    def count(self, limit: str, *keys: str, default: Any = MISSING, low: int = 1) -> int:
        """A whole number up to the largest of its kind in LARGEST."""
        value = self._take(keys, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.error(f"expected a whole number, not {value!r:.40}", *keys[:1])
        if not low <= value <= LARGEST[limit]:
            raise self.error(f"{value} is out of range, {low} to {LARGEST[limit]}", *keys[:1])
        return value

    def flag(self, key: str, default: bool) -> bool:
        """`true` or `false`."""
        value = self._take((key,), default)
        if not isinstance(value, bool):
            raise self.error(f"expected true or false, not {value!r:.40}", key)
        return value

    def text(self, key: str) -> str:
        """Text that is not empty."""
        value = self._take((key,), MISSING)
        if not isinstance(value, str) or not value.strip():
            raise self.error(f"expected text, not {value!r:.40}", key)
        return value

    def texts(self, key: str) -> list[str] | None:
        """A list of texts, or None where the field is absent or null."""
        value = self.data.get(key)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise self.error("expected a list of texts", key)
        return value

    def only(self, key: str, *allowed: Any, why: str) -> None:
        """Refuse what changes the shape in a way that has no fields in a Model."""
        value = self.data.get(key)
        if value is not None and (value not in allowed or isinstance(value, bool) is not isinstance(allowed[0], bool)):
            raise self.error(f"{value!r:.40} is not modelled: {why}", key)

    def divided(self, key: str, total: int, parts: int, what: str) -> int:
        """`key`, by default `total` over `parts`."""
        if self.data.get(key) is None and total % parts:
            raise self.error(f"the field is missing, and {what} {total} does not divide by {parts}", key)
        return self.count("head_size", key, default=total // parts)


def model_of(config: Config, family: str, **fields: Any) -> Model:
    """The model of the fields, gated and with RMS norms unless they say otherwise."""
    path = Path(config.file)
    known_as = path.resolve().parent.name if path.name == "config.json" else path.stem
    further = 0 if config.data.get(FURTHER_TOKENS) is None else config.count("layers", FURTHER_TOKENS, low=0)
    taken = ", ".join(f"{key} {value!r}" for key, value in config.defaulted.items())
    usual: dict[str, Any] = {
        "aliases": (),
        "gated_ffn": True,
        "norm": "rmsnorm",
        "norms_per_layer": 2,
        "final_norm": True,
        "attention_bias": "none",
        "ffn_bias": False,
        "qk_norm": "none",
        "positions": 0,
        "multi_token_prediction_layers": further,
    }
    if further:
        fields["not_counted"] = (*fields.get("not_counted", ()), "multi-token-prediction")
    return Model(
        name=re.sub(r"[^a-z0-9.]+", "-", known_as.lower()).strip("-.") or "config",
        family=family,
        source=f"{config.file} (model_type {config.data.get('model_type', family)})",
        note=f"not in the file, defaults of transformers: {taken}" if taken else "",
        **usual | fields,
    )


def sizes_of(
    config: Config, *, head_size: int | None = None, kv_heads: int | None = None, tied: bool = False
) -> dict[str, Any]:
    """The sizes under the names that Llama gave them; `head_size` and `kv_heads` are the class's defaults if it has any."""
    hidden, heads = config.count("hidden_size", "hidden_size"), config.count("heads", "num_attention_heads")
    return {
        "hidden_size": hidden,
        "heads": heads,
        "layers": config.count("layers", "num_hidden_layers"),
        "ffn_size": config.count("ffn_size", "intermediate_size"),
        "kv_heads": config.count("kv_heads", "num_key_value_heads", default=heads if kv_heads is None else kv_heads),
        "head_size": config.count("head_size", "head_dim", default=head_size)
        if head_size
        else config.divided("head_dim", hidden, heads, "hidden_size"),
        "vocabulary": config.count("vocabulary", "vocab_size"),
        "max_sequence": config.count("max_sequence", "max_position_embeddings"),
        "tied_embeddings": config.flag("tie_word_embeddings", tied),
    }


def bias_of(config: Config, default: bool = False) -> str:
    """`attention_bias`: of all four projections, or of none."""
    return "qkvo" if config.flag("attention_bias", default) else "none"


def windows_of(config: Config, layers: int, window: int, every: int) -> dict[str, int]:
    """The sliding window: of every `every` layers all but the last slide, unless `layer_types` says otherwise."""
    period = _period(config, layers, "sliding_attention", every)
    if not period:
        return {}
    if not window and config.texts("layer_types") is not None:
        raise config.error("the field is missing, and layer_types has sliding layers", "sliding_window")
    return {"window": window, "window_every": period} if window else {}


def chunks_of(config: Config, layers: int) -> dict[str, int]:
    """Chunks of attention: of every n layers all but the last, which has no rotary positions, attend inside chunks.

    Null is no chunks; an absent or empty list of layers leaves the pattern to `no_rope_layer_interval`.
    """
    if "attention_chunk_size" in config.data and config.data["attention_chunk_size"] is None:
        return {}
    chunk = config.count("max_sequence", "attention_chunk_size", default=8192)
    every = config.count("layers", "no_rope_layer_interval", default=4)
    rotary = config.data.get("no_rope_layers") or [int((index + 1) % every != 0) for index in range(layers)]
    if not isinstance(rotary, list) or any(turned not in (0, 1) for turned in rotary):
        raise config.error("expected a list of 0 and 1", "no_rope_layers")
    kinds = ["chunked_attention" if turned else "full_attention" for turned in rotary]
    period = _period(config, layers, "chunked_attention", 1, kinds, "no_rope_layers")
    return {"attention_chunk": chunk, "window_every": period} if period else {}


def _period(
    config: Config, layers: int, local: str, every: int, absent: list[str] | None = None, said: str = "layer_types"
) -> int:
    """Of how many layers the last one attends to all, the others being `local`; 1 where all are, 0 where none is.

    `every` or the list `absent`, from the field `said`, stand where there is no `layer_types`.
    """
    types = config.texts("layer_types")
    if types is None:
        types = absent
    else:
        said = "layer_types"
    if types is None:
        return every
    unknown = set(types) - {local, "full_attention"}
    if unknown:
        raise config.error(f"layers of the kind {min(unknown)[:40]!r} are not modelled", said)
    if len(types) != layers:
        raise config.error(f"lists {len(types)} layers of {layers}", said)
    full = [index for index, kind in enumerate(types) if kind == "full_attention"]
    if len(full) == layers:
        return 0
    period = full[0] + 1 if full else 1
    if full != (list(range(period - 1, layers, period)) if full else []):
        raise config.error("only patterns with one full layer at the end of every n layers are modelled", said)
    return period


def window_of(config: Config, default: int = 0) -> int:
    """`sliding_window`, which may be null where the class has no default."""
    if "sliding_window" in config.data and config.data["sliding_window"] is None:
        return 0
    return config.count("max_sequence", "sliding_window", default=default, low=0)
