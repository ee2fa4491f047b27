"""Strict reading of YAML: what a file says, with the line of every value, or a CatalogError that names the field.

YAML 1.1 has traps that would let wrong numbers in without a word: a repeated key silently wins, `989.4e12` and `1e-6`
are text, `010` is 8, `1:30` is 90, `no` is false. Files are therefore read event by event and every value is taken by a
method that says what it must be. Anchors, aliases, tags and further documents have no use here and are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from costmodel.errors import CatalogError, nearest

LARGEST_FILE = 256 * 1024
DEEPEST = 12
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+][0-9]+)?")
_MEANT_FLOAT = re.compile(r"([-+]?)([0-9][0-9_]*)(\.[0-9]*)?[eE]([-+]?)([0-9]+)")
_NOT_TEXT = re.compile(r"~|null|true|false|yes|no|on|off|y|n|", re.IGNORECASE)
_DATE = re.compile(r"(19|20)\d\d(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value as it is written; `plain` when it stands without quotes."""

    text: str
    plain: bool
    line: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list of nodes."""

    items: list[Node]
    line: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """Nodes by key, with the line of each key."""

    items: dict[str, Node]
    lines: dict[str, int]
    line: int


Node = Scalar | Sequence | Mapping


def read(path: Path, shown_as: str = "") -> Block:
    """The mapping that the YAML file at `path` holds; `shown_as` is the file's name in messages.

    Raises CatalogError when the file cannot be read, is not UTF-8, is larger than 256 KiB or is not one plain mapping.
    """
    file = shown_as or str(path)
    try:
        if not path.is_file():
            raise CatalogError("there is no such file" if not path.exists() else "not a regular file", file=file)
        if path.stat().st_size > LARGEST_FILE:
            raise CatalogError(f"the file is larger than {LARGEST_FILE // 1024} KiB, no entry is", file=file)
        content = path.read_bytes()
    except OSError as error:
        raise CatalogError(f"the file cannot be read ({error.strerror})", file=file) from None
    return parse(content, file)


def parse(content: bytes, file: str) -> Block:
    """As `read`, from the bytes of a file."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CatalogError("the file is not UTF-8 text", file=file, line=line) from None
    try:
        node = _compose(text, file)
    except yaml.MarkedYAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        message = f"not valid YAML ({error.problem or error.context})"
        raise CatalogError(message, file=file, line=mark.line + 1 if mark else 0) from None
    except yaml.YAMLError as error:
        reason = getattr(error, "reason", "unreadable")
        raise CatalogError(f"not valid YAML ({reason})", file=file) from None
    if not isinstance(node, Mapping):
        raise CatalogError("expected `key: value` lines", file=file, line=node.line if node else 1)
    return Block(node, file, "", node.line)


def _compose(text: str, file: str) -> Node | None:
    """The tree of nodes, built without recursion so that no nesting can exhaust the stack."""
    root: Node | None = None
    documents = 0
    parents: list[Sequence | Mapping] = []
    keys: list[str | None] = []  # of each parent, the key whose value comes next
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise CatalogError("a file holds one document: remove the second `---`", file=file, line=line)
        if isinstance(event, yaml.CollectionEndEvent):
            parents.pop()
            keys.pop()
            if keys:
                keys[-1] = None
        if not isinstance(event, yaml.NodeEvent):
            continue
        node = _node(event, file, line)
        parent = parents[-1] if parents else None
        if parent is None:
            root = node
        elif isinstance(parent, Sequence):
            parent.items.append(node)
        elif (key := keys[-1]) is not None:
            parent.items[key] = node
            keys[-1] = None if isinstance(node, Scalar) else key
        else:
            keys[-1] = _new_key(node, parent, file, line, keys)
            continue
        if not isinstance(node, Scalar):
            if len(parents) >= DEEPEST:
                raise CatalogError(f"nested deeper than {DEEPEST} levels, no entry is", file=file, line=line)
            parents.append(node)
            keys.append(None)
    return root


def _node(event: yaml.NodeEvent, file: str, line: int) -> Node:
    if event.anchor is not None:
        raise CatalogError(f"anchors and aliases (&, *) are not used here: {event.anchor}", file=file, line=line)
    tag = getattr(event, "tag", None)
    if tag is not None:
        raise CatalogError(f"tags (!) are not used here: {tag}", file=file, line=line)
    if isinstance(event, yaml.ScalarEvent):
        return Scalar(str(event.value), not event.style, line)
    return Mapping({}, {}, line) if isinstance(event, yaml.MappingStartEvent) else Sequence([], line)


def _new_key(node: Node, parent: Mapping, file: str, line: int, above: list[str | None]) -> str:
    if not isinstance(node, Scalar):
        raise CatalogError("a key must be a word", file=file, line=line)
    if node.text in parent.lines:
        field = ".".join([key for key in above if key] + [node.text])
        raise CatalogError(
            f"the key is given twice, first on line {parent.lines[node.text]}", file=file, line=line, field=field
        )
    parent.lines[node.text] = line
    return node.text


class Block:
    """A mapping of a file whose values are taken by saying what they must be.

    `file` and `field` say where it is. Every method raises CatalogError with file, line, field and what was expected.
    """

    __slots__ = ("_line", "_node", "field", "file")

    def __init__(self, node: Mapping, file: str, field: str, line: int) -> None:
        self._node, self.file, self.field, self._line = node, file, field, line

    def __contains__(self, key: str) -> bool:
        return key in self._node.items

    def __iter__(self) -> Iterator[str]:
        return iter(self._node.items)

    def error(self, message: str, key: str = "") -> CatalogError:
        """The error to raise about this block, or about `key` in it."""
        return CatalogError(message, file=self.file, line=self.line(key), field=self._path(key))

    def line(self, key: str = "") -> int:
        """The line of `key`, or of the block's own key."""
        return self._node.lines.get(key, self._line)

    def keys_are(self, required: Iterable[str], optional: Iterable[str] = ()) -> None:
        """Refuse a key that is not known, with the nearest one that is, and a required key that is missing."""
        required = tuple(required)
        known = (*required, *optional)
        for key in self:
            if key not in known:
                near = nearest(key, known)
                hint = f"did you mean {' or '.join(near)}?" if near else f"the keys here are {', '.join(known)}"
                raise self.error(f"unknown key: {hint}", key)
        for key in required:
            if key not in self:
                raise self.error(f"the key {key!r} is missing")

    def text(self, key: str, default: str | None = None) -> str:
        """Text that is not empty."""
        if key not in self and default is not None:
            return default
        return self._text(self._get(key), key)

    def choice(self, key: str, choices: Iterable[str], default: str | None = None) -> str:
        """One of `choices`."""
        value, choices = self.text(key, default), tuple(choices)
        if value not in choices:
            near = nearest(value, choices)
            hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(choices)}"
            raise self.error(f"{value[:60]!r} is not known: {hint}", key)
        return value

    def date(self, key: str, default: str | None = None) -> str:
        """A day, month or year, as 2026-09-01, 2026-09 or 2026."""
        if key not in self and default is not None:
            return default
        node = self._get(key)
        if not isinstance(node, Scalar) or not _DATE.fullmatch(node.text):
            raise self.error("expected a date such as 2026-09-01, 2026-09 or 2026", key)
        return node.text

    def boolean(self, key: str, default: bool | None = None) -> bool:
        """`true` or `false`."""
        if key not in self and default is not None:
            return default
        node = self._get(key)
        if not isinstance(node, Scalar) or not node.plain or node.text not in ("true", "false"):
            raise self.error("expected true or false", key)
        return node.text == "true"

    def integer(self, key: str, low: int = 0, high: int = 10**9, default: int | None = None) -> int:
        """A whole number from `low` to `high`."""
        if key not in self and default is not None:
            return default
        return self._integer(self._get(key), key, low, high)

    def number(self, key: str) -> float:
        """A finite number, written as YAML 1.1 reads numbers."""
        node = self._get(key)
        if not isinstance(node, Scalar):
            raise self.error("expected a number", key)
        text = node.text
        if node.plain and len(text) <= 40 and (_INTEGER.fullmatch(text) or _FLOAT.fullmatch(text)):
            value = float(text)
            if value - value == 0:  # neither infinite nor NaN
                return value
            raise self.error(f"{text} is not finite", key)
        raise self.error(_why_not_a_number(node), key)

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of texts that do not repeat."""
        if key not in self and default is not None:
            return default
        values = tuple(self._text(node, key) for node in self._items(key))
        for index, value in enumerate(values):
            if value in values[:index]:
                raise self.error(f"{value!r} is listed twice", key)
        return values

    def integers(self, key: str, low: int = 0, high: int = 10**9) -> tuple[int, ...]:
        """A list of whole numbers from `low` to `high`."""
        return tuple(self._integer(node, key, low, high) for node in self._items(key))

    def block(self, key: str) -> Block:
        """The mapping under `key`."""
        node = self._get(key)
        if not isinstance(node, Mapping):
            raise self.error("expected `key: value` lines below it", key)
        return Block(node, self.file, self._path(key), self.line(key))

    def blocks(self, key: str) -> tuple[Block, ...]:
        """The list of mappings under `key`."""
        blocks = []
        for index, node in enumerate(self._items(key)):
            if not isinstance(node, Mapping):
                raise self.error(f"item {index + 1} must be `key: value` lines", key)
            blocks.append(Block(node, self.file, f"{self._path(key)}[{index}]", node.line))
        return tuple(blocks)

    def _path(self, key: str) -> str:
        return ".".join(part for part in (self.field, key) if part)

    def _get(self, key: str) -> Node:
        if key not in self._node.items:
            raise self.error(f"the key {key!r} is missing")
        return self._node.items[key]

    def _items(self, key: str) -> list[Node]:
        node = self._get(key)
        if not isinstance(node, Sequence):
            raise self.error("expected a list such as [a, b]", key)
        return node.items

    def _text(self, node: Node, key: str) -> str:
        if not isinstance(node, Scalar):
            raise self.error("expected text", key)
        if not node.text.strip():
            raise self.error("expected text, it is empty", key)
        if node.plain and (
            _NOT_TEXT.fullmatch(node.text) or _INTEGER.fullmatch(node.text) or _FLOAT.fullmatch(node.text)
        ):
            raise self.error(f"YAML does not read {node.text} as text: write it in quotes", key)
        return node.text.strip()

    def _integer(self, node: Node, key: str, low: int, high: int) -> int:
        if not isinstance(node, Scalar) or not node.plain or not _INTEGER.fullmatch(node.text) or len(node.text) > 30:
            raise self.error("expected a whole number", key)
        value = int(node.text)
        if not low <= value <= high:
            raise self.error(f"{value} is out of range, {low} to {high}", key)
        return value


def _why_not_a_number(node: Scalar) -> str:
    text = node.text
    shown = repr(text[:40])
    if not node.plain:
        return f"expected a number, {shown} is text: write it without quotes"
    if text.lower().lstrip("+-") in (".inf", ".nan", "inf", "nan", "infinity"):
        return f"expected a finite number, not {shown}; what is not known is written {{unknown: reason}}"
    match = _MEANT_FLOAT.fullmatch(text)
    if match and len(text) <= 40:
        sign, whole, part, exponent_sign, exponent = match.groups()
        right = (
            f"{sign}{whole.replace('_', '')}{part if part and part != '.' else '.0'}e{exponent_sign or '+'}{exponent}"
        )
        return f"expected a number, YAML 1.1 reads {shown} as text: write {right}"
    if text.lower() in ("", "~", "null"):
        return "expected a number, it is empty; what is not known is written {unknown: reason}"
    return f"expected a number such as 989.4 or 1.0e-6, not {shown}"
