"""A model from the `config.json` that Hugging Face keeps beside a checkpoint.

Sizes must be in the file. Where transformers' own configuration class has a default that published files rely on, an
absent field takes it, and the model's note lists every field that did.
"""

from __future__ import annotations

from pathlib import Path

from costmodel.catalog.entries import Model
from costmodel.catalog.huggingface_config import Config, read_json
from costmodel.catalog.huggingface_kinds import READERS
from costmodel.catalog.shape import contradictions
from costmodel.errors import CatalogError, nearest

# The field of a configuration that each field of a Model is read from, for messages about contradictions.
_FIELDS = {
    "kv_heads": "num_key_value_heads",
    "head_size": "head_dim",
    "window_every": "layer_types",
    "experts.per_token": "num_experts_per_tok",
    "experts.first_layer": "first_k_dense_replace",
    "experts.groups": "n_group",
    "experts.groups_per_token": "topk_group",
}


def read_config(path: Path) -> Model:
    """The model that the config.json at `path`, or in the folder `path`, describes.

    Raises CatalogError, with file and field, when the file cannot be read or is not a plain JSON object, when a field is
    missing, of the wrong type or out of range, when fields contradict each other, and when the kind of model is unknown.
    """
    try:
        file = path / "config.json" if path.is_dir() else path
    except OSError as error:
        raise CatalogError(f"the path cannot be read ({error.strerror})", file=str(path)[:200]) from None
    config = Config(read_json(file), str(file))
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
