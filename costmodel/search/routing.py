"""How tokens go to experts: how evenly, how many are dropped, at which precision."""

from __future__ import annotations

import math
from dataclasses import dataclass

from costmodel.catalog.units import ELEMENT_BYTES
from costmodel.errors import InputError

WORDS = {
    "imbalance": "rows of the busiest rank over those of the mean one (default 1)",
    "capacity": "the same at most: what exceeds it is dropped (default: nothing is)",
    "dispatch": "precision on the way to experts, such as fp8 (default: that of activations)",
    "combine": "precision on the way back",
}
MOST = 1000.0


@dataclass(frozen=True, slots=True)
class ExpertRouting:
    """How tokens go to experts; see WORDS. No capacity is 0, no precision of its own is empty."""

    imbalance: float = 1.0
    capacity: float = 0.0
    dispatch_dtype: str = ""
    combine_dtype: str = ""

    def inputs(self, activations: str) -> dict[str, float]:
        """As the equations take it, with activations of that precision."""
        return {
            "expert_imbalance": self.imbalance,
            "expert_capacity": self.capacity,
            "dispatch_bytes": ELEMENT_BYTES[self.dispatch_dtype or activations],
            "combine_bytes": ELEMENT_BYTES[self.combine_dtype or activations],
        }


def parse_routing(text: str) -> ExpertRouting:
    """The routing that words such as `imbalance=1.2 dispatch=fp8` describe; raises InputError with the nearest choice."""
    given: dict[str, str] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise InputError(f"routing: {word[:40]!r} is not key=value; the keys are {', '.join(WORDS)}")
        if key not in WORDS:
            raise InputError.unknown("routing key", key, WORDS)
        if key in given:
            raise InputError(f"routing: {key} is given twice")
        given[key] = value
    return ExpertRouting(
        _load(given, "imbalance", 1.0),
        _load(given, "capacity", 0.0),
        _precision(given, "dispatch"),
        _precision(given, "combine"),
    )


def _load(given: dict[str, str], key: str, default: float) -> float:
    if key not in given:
        return default
    try:
        value = float(given[key])
    except ValueError:
        value = math.nan
    if not 1 <= value <= MOST:
        raise InputError(f"routing: {key}={given[key][:40]} must be a number from 1 to {MOST:g}: 1 is perfectly even")
    return value


def _precision(given: dict[str, str], key: str) -> str:
    value = given.get(key, "").lower()
    if value and value not in ELEMENT_BYTES:
        raise InputError.unknown("precision of a token on its way", value, ELEMENT_BYTES)
    return value
