"""Facts of an entry: a number with unit, source and confidence, or an unknown with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from costmodel.catalog.entries import Fact, Number, Unknown
from costmodel.catalog.reader import Block
from costmodel.catalog.units import QUANTITIES, UNITS, unit_hint

# How far a number is to be trusted, most first, and what each word means.
CONFIDENCE = {
    "datasheet": "printed by the vendor, read there",
    "paper": "printed in a published paper, read there",
    "vendor-code": "stands in source code that the vendor owns",
    "quoted": "printed by the vendor, read where a third party quotes it with its link",
    "measured": "a published measurement",
    "logbook": "stands in a public log of a training run",
    "derived": "computed from other numbers, as the note says",
    "fitted": "fitted to published measurements, as the note says",
    "secondary": "stated by a third party",
    "preliminary": "printed by the vendor before the part was on sale",
    "near": "copied from a sister part",
    "uncertain": "the sources conflict or are thin",
    "hearsay": "an analyst's or press figure without a primary source",
    "recalled": "general knowledge, no document at hand: verify before relying on it",
    "guess": "a judgement, nothing else at hand",
}

_NUMBER_KEYS = ("value", "unit", "source", "confidence")


def fact(block: Block, key: str, quantity: str, low: float = 0.0, high: float = float("inf")) -> Fact:
    """The fact under `key`, a `quantity` of units.QUANTITIES from `low` to `high` in its SI unit.

    Raises CatalogError when it is not `{value, unit, source, confidence}` or `{unknown: reason}`, or out of range.
    """
    inner = block.block(key)
    if "unknown" in inner:
        inner.keys_are(("unknown",), ("date",))
        return Unknown(inner.text("unknown"), _where(inner))
    return _number(inner, quantity, low, high)


def number(block: Block, key: str, quantity: str, low: float = 0.0, high: float = float("inf")) -> Number:
    """As `fact`, where an unknown makes no sense."""
    return _number(block.block(key), quantity, low, high)


def constant(block: Block, key: str) -> Number:
    """A named constant under `key`: a number of any quantity with its meaning, and its range `low` to `high` where one is given."""
    inner = block.block(key)
    inner.keys_are(("meaning", *_NUMBER_KEYS), ("note", "date", "low", "high"))
    quantity, factor = UNITS[_unit(inner, "")]
    found = _read(inner, quantity, float("-inf"), float("inf"), inner.text("meaning"))
    low, high = (inner.number(end) * factor if end in inner else None for end in ("low", "high"))
    for end, sound in (("low", low is None or low <= found.value), ("high", high is None or high >= found.value)):
        if not sound:
            raise inner.error(f"the value {found.stated} lies outside its range", end)
    return replace(found, low=low, high=high)


def facts(block: Block, fields: Mapping[str, tuple[str, float, float]]) -> dict[str, Fact]:
    """The facts of `block` whose keys, quantities and ranges `fields` lists; a key that it does not list is refused."""
    block.keys_are((), fields)
    return {key: fact(block, key, *fields[key]) for key in block}


def _number(inner: Block, quantity: str, low: float, high: float) -> Number:
    inner.keys_are(_NUMBER_KEYS, ("note", "date"))
    return _read(inner, quantity, low, high)


def _read(inner: Block, quantity: str, low: float, high: float, meaning: str = "") -> Number:
    unit = _unit(inner, quantity)
    given, factor = UNITS[unit]
    si, allowed = QUANTITIES[quantity]
    if given != quantity:
        raise inner.error(f"{unit!r} is a unit of {given}; expected {quantity}: {', '.join(allowed)}", "unit")
    stated = inner.number("value")
    value = stated * factor
    if not low <= value <= high:
        raise inner.error(f"{stated:g} {unit} is out of range, {low:g} to {high:g} {si}", "value")
    confidence = inner.choice("confidence", CONFIDENCE)
    return Number(
        value=value,
        unit=si,
        source=inner.text("source"),
        confidence=confidence,
        note=inner.text("note", ""),
        stated=f"{stated:.15g} {unit}",
        date=inner.date("date", ""),
        where=_where(inner),
        meaning=meaning,
    )


def _unit(inner: Block, quantity: str) -> str:
    unit = inner.text("unit")
    if unit not in UNITS:
        raise inner.error(f"unknown unit {unit[:40]!r}: {unit_hint(unit, quantity)}", "unit")
    return unit


def _where(inner: Block) -> str:
    return f"{inner.file}:{inner.line()}: {inner.field}"
