"""Which model a person means: a name of the catalog, a Hugging Face id or config.json, or a size such as 70B."""

from __future__ import annotations

import re
from pathlib import Path

from costmodel.catalog.catalog import Catalog, Shelf, at_home
from costmodel.catalog.entries import Model
from costmodel.catalog.models import read_model
from costmodel.catalog.sizes import standard_model
from costmodel.errors import CatalogError, InputError, nearest

_SIZE = re.compile(r"[-+]?(nan|inf|infinity|\.?\d[\d._,]{0,30}(e[-+]?\d{1,9})?)\s*[a-z]{0,4}", re.IGNORECASE)
_LAYOUT_WORD = re.compile(r"[a-z_0-9]{1,16}=\S{0,64}")
_ID = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)


def resolve_model(name: str, catalog: Catalog | Path | None = None) -> Model:
    """The model that `name` means: a name or alias, a Hugging Face id, a size, or a path.

    A name or alias is looked up first (`llama-3.1-405b`, `llama3-70b`, `meta-llama/Llama-3.1-8B`); a canonical name
    reads one file. A size is a number of parameters (`7B`, `350M`, `1.5T`) and gives a standard shape. A path is that
    of a config.json or of a folder that holds one. `catalog` is an open catalog or a user's folder laid over the shipped one.

    Raises InputError, with the nearest names, when there is no such model, and CatalogError when its file is bad.
    """
    opened = Catalog.of(catalog)
    shelf = opened.shelf("models")
    wanted = name.strip()
    if "/" in wanted and (path := _hugging_face_id(shelf, wanted)):
        return read_model(opened, path)
    if _SIZE.fullmatch(wanted) and not _is_entry(shelf, wanted):
        return standard_model(wanted, opened)
    if _is_path(wanted):
        return _from_path(wanted, shelf)
    try:
        path = shelf.path(wanted)
    except CatalogError:
        raise
    except InputError as error:
        if _holds_config(wanted):
            return _from_path(wanted, shelf)
        if _LAYOUT_WORD.fullmatch(wanted):
            message = f"{wanted!r} is no model but a word of a layout: all of these go into one pair of quotes"
            raise InputError(message) from None
        raise InputError(f"{error} (or give a size such as 70B, or the path of a config.json)") from None
    return read_model(opened, path)


def _is_entry(shelf: Shelf, name: str) -> bool:
    return any((folder / f"{name.lower()}.yaml").is_file() for folder in shelf.folders)


def _is_path(name: str) -> bool:
    return "/" in name or "\\" in name or name.lower().endswith(".json") or name.startswith(("~", "."))


def _holds_config(name: str) -> bool:
    try:
        return bool(name) and Path(name, "config.json").is_file()
    except (OSError, ValueError):  # not a name that a folder can have
        return False


def _from_path(name: str, shelf: Shelf) -> Model:
    """The model at a path, or a hint when what looks like a Hugging Face id is neither a known one nor a path."""
    from costmodel.catalog.huggingface import read_config

    if name.lower().endswith((".yaml", ".yml")):
        raise InputError(
            f"{name!r} is a YAML file: put it into the models/ folder of a --catalog folder and ask for it by its name"
        )
    last = name.rpartition("/")[2]
    if _ID.fullmatch(name) and not last.endswith(".json") and not _holds_config(name) and not Path(name).exists():
        near = nearest(last, [*shelf.names(), *shelf.aliases()])
        hint = f"did you mean {' or '.join(near)}?" if near else "give the path of its config.json"
        raise InputError(f"{name!r} is neither a Hugging Face id of the catalog nor a path: {hint}")
    return read_config(at_home(name))


def _hugging_face_id(shelf: Shelf, name: str) -> Path | None:
    """The file that lists the Hugging Face id `name`, found by a scan of the text."""
    pattern = re.compile(rf"^hugging_face:.*[\[ ]{re.escape(name)}[,\] ]", re.IGNORECASE | re.MULTILINE)
    return next((path for path, text in shelf.texts() if pattern.search(text)), None)
