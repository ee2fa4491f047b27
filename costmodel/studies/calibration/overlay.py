"""The overlay: copies of the entries that moved, with the new numbers in place of the old and everything else as it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import yaml

from costmodel.catalog.catalog import Catalog, is_read, yaml_files
from costmodel.catalog.entries import Number
from costmodel.errors import CatalogError, InputError
from costmodel.report.write import to_file
from costmodel.studies.calibration.constants import DIGITS, Place, Values, unit_of

CONFIDENCE = "fitted"
Blocks = Mapping[tuple[str, str], Mapping[str, Number]]
"""Whole sets of constants of kernels, by chip and name."""


def refuse_existing(folder: Path, entries: Iterable[tuple[str, str]], catalog: Catalog, *, force: bool) -> None:
    """Raise InputError where the folder holds a file that would be written, unless that is asked for."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{str(folder)[:200]!r} is no folder: the overlay is written into one")
    for path in [*(folder / shelf / f"{name}.yaml" for shelf, name in entries), *_carried(folder, catalog)]:
        if path.exists() and not force:
            raise InputError(f"{str(path)[:200]!r} is there already: give --force to write over it, or another folder")


def write(
    folder: Path,
    values: Values,
    numbers: Mapping[Place, Number],
    sources: Mapping[Place, str],
    blocks: Blocks,
    catalog: Catalog,
) -> list[Path]:
    """Write the entries that `values` change, and those of the user's own folder beside them; each file whole or not at all.

    Raises InputError when the place cannot be written.
    """
    texts = _carried(folder, catalog)
    for shelf, name in dict.fromkeys((place.shelf, place.entry) for place in values):
        own = {place.path: value for place, value in values.items() if (place.shelf, place.entry) == (shelf, name)}
        facts = {
            path: _fact(numbers[Place(shelf, name, path)], value, sources[Place(shelf, name, path)])
            for path, value in own.items()
        }
        texts[folder / shelf / f"{name}.yaml"] = _entry(shelf, name, facts, blocks, catalog)
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {str(path.parent)[:200]!r}: {error.strerror}") from None
        to_file(text, path)
    return list(texts)


def _carried(folder: Path, catalog: Catalog) -> dict[Path, str]:
    """The files of the user's own folder, where the overlay goes elsewhere: one folder is laid over the catalog, not two."""
    if catalog.extra is None or folder.resolve() == catalog.extra.resolve():
        return {}
    root = catalog.extra
    inside = [path.relative_to(root) for path in yaml_files(root) if is_read(path.relative_to(root))]
    try:
        return {folder / path: (root / path).read_text("utf-8") for path in inside}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot copy the entries of {str(root)[:200]!r}: {error}") from None


def _entry(shelf: str, name: str, facts: Mapping[tuple[str, ...], str], blocks: Blocks, catalog: Catalog) -> str:
    """The text of an entry with new facts."""
    present = next((path for there in catalog.shelf(shelf).folders if (path := there / f"{name}.yaml").is_file()), None)
    text = present.read_text("utf-8") if present else f"name: {name}\n"
    if shelf == "kernels":
        text = _with_blocks(text, name, facts, blocks, present)
    rest = f"as in {catalog.shown(present)}" if present else "what is taken of a chip without a file of its own"
    return f"# Some numbers are calibrated, those whose source says so; the rest is {rest}.\n{edited(text, facts)}"


def _with_blocks(
    text: str, chip: str, facts: Mapping[tuple[str, ...], str], blocks: Blocks, present: Path | None
) -> str:
    """The text with each kernel that is new to it as a whole block, to be edited like the others."""
    root = yaml.compose(text)
    held = _child(root, "kernels")
    missing = [kernel for kernel in dict.fromkeys(path[1] for path in facts) if _child(held, kernel) is None]
    if not missing:
        return text
    lines = [f"  {kernel}:\n{_block(blocks[chip, kernel])}" for kernel in missing]
    if held is None:
        return text.rstrip("\n") + "\nkernels:\n" + "".join(lines)
    if isinstance(held, yaml.MappingNode) and held.flow_style:
        raise CatalogError("write `kernels` with a line a kernel, so that one can be added", file=str(present))
    place = held.start_mark.index - held.start_mark.column
    return text[:place] + "".join(lines) + text[place:]


def _block(numbers: Mapping[str, Number]) -> str:
    return "".join(f"    {name}: {_fact(number, number.value, number.source)}\n" for name, number in numbers.items())


def _fact(number: Number, value: float, source: str) -> str:
    """A fact on one line, in the unit of the number that it stands in for."""
    unit, factor = unit_of(number)
    changed = source != number.source
    note = f", note: {json.dumps(f'{number.stated} before')}" if changed and number.stated else ""
    confidence = CONFIDENCE if changed else number.confidence
    return f"{{value: {plain(value / factor)}, unit: {unit}, source: {json.dumps(source)}, confidence: {confidence}{note}}}"


def plain(value: float) -> str:
    """A number as YAML 1.1 reads numbers: digits and a point, no exponent."""
    return format(Decimal(f"{value:.{DIGITS + 8}g}"), "f")


def edited(text: str, facts: Mapping[tuple[str, ...], str]) -> str:
    """The text of an entry with other facts at those paths; comments and order stay. Raises InputError for a path that is not there."""
    root = yaml.compose(text)
    spans = []
    for path, fact in facts.items():
        node: yaml.Node | None = root
        for key in path:
            node = _child(node, key)
        if node is None:
            raise InputError(f"{'.'.join(path)} is not in the entry that is calibrated")
        spans.append((node.start_mark.index, _end(node), fact))
    for start, end, fact in sorted(spans, reverse=True):
        text = text[:start] + fact + text[end:]
    return text


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for name, value in node.value if name.value == key), None)


def _end(node: yaml.Node) -> int:
    """Where a node ends; a mapping in lines ends with its last value, not with the comments after it."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return _end(node.value[-1][1])
    return int(node.end_mark.index)


def entries_of(places: Iterable[Place]) -> Sequence[tuple[str, str]]:
    """Folder and name of the entries that hold those places."""
    return tuple(dict.fromkeys((place.shelf, place.entry) for place in places))
