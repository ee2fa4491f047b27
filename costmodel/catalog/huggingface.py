"""A model from the `config.json` that Hugging Face keeps beside a checkpoint.

Sizes must be in the file. Where transformers' own configuration class has a default that published files rely on, an
absent field takes it, and the model's note lists every field that did.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from costmodel.catalog.entries import Model
from costmodel.catalog.shape import LARGEST, contradictions
from costmodel.errors import CatalogError, nearest

LARGEST_FILE = 4 * 2**20
LONGEST_NUMBER = 40
MISSING = object()

# The field of a configuration that each field of a Model is read from, for messages about contradictions.
_FIELDS = {
    "kv_heads": "num_key_value_heads",
    "head_size": "head_dim",
    "window_every": "layer_types",
    "experts.per_token": "num_experts_per_tok",
    "experts.first_layer": "first_k_dense_replace",
}


def read_config(path: Path) -> Model:
    """The model that the config.json at `path`, or in the folder `path`, describes.

    Raises CatalogError, with file and field, when the file cannot be read or is not a plain JSON object, when a field is
    missing, of the wrong type or out of range, when fields contradict each other, and when the kind of model is unknown.
    """
    from costmodel.catalog.huggingface_kinds import READERS

    try:
        file = path / "config.json" if path.is_dir() else path
    except OSError as error:
        raise CatalogError(f"the path cannot be read ({error.strerror})", file=str(path)[:200]) from None
    config = Config(_read_json(file), str(file))
    kind = config.text("model_type")
    reader = READERS.get(kind)
    if reader is None:
        near = nearest(kind, READERS)
        hint = (
            f"did you mean {' or '.join(near)}?" if near else f"the kinds that are read: {', '.join(sorted(READERS))}"
        )
        raise config.error(f"models of the kind {kind[:60]!r} are not read: {hint}", "model_type")
    model = reader(config)
    for field, sentence in contradictions(model):
        raise config.error(sentence, _FIELDS.get(field, field))
    return model


def _read_json(path: Path) -> dict[str, Any]:
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
