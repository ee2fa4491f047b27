"""Numbers as people read them: 5.50 s, 12.3 ms, 76.2 GiB, 1.20 TB/s. The only place where units are prefixed.

Sizes are binary (KiB, GiB), rates decimal (GB/s, TFLOP/s), as the field writes them. Every function takes SI and
gives `-` for what is not known (None or NaN).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

_DECIMAL = ("", "k", "M", "G", "T", "P", "E", "Z")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SHORT = ("", "K", "M", "B", "T")
_SECONDS = ("ns", "us", "ms", "s")

UNKNOWN = "-"
DIGITS = 3


def number(value: float | None, digits: int = DIGITS) -> str:
    """`value` with `digits` significant digits, whole from 1000 on: 0.0123, 5.50, 1,234; extremes as 1.23e+30."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "0"
    if not 1e-5 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}"
    rounded = _rounded(value, digits)
    return f"{rounded:,.{_decimals(rounded, digits)}f}"


def span(ends: tuple[float | None, float | None], shown: Callable[[float | None], str], between: str = " to ") -> str:
    """From one end to the other, as `shown` writes each: 1.20 to 1.45 ms where both have the same unit."""
    low, high = (shown(end) for end in ends)
    first, _, unit = low.partition(" ")
    return f"{first if unit and high.endswith(f' {unit}') else low}{between}{high}"


def _decimals(value: float, digits: int) -> int:
    return max(digits - 1 - math.floor(math.log10(abs(value))), 0)


def _rounded(value: float, digits: int = DIGITS) -> float:
    """`value` as `number` will show it, so that 999.9 ms is known to be 1.00 s before a unit is chosen."""
    return round(value, _decimals(value, digits))


def _prefixed(value: float | None, step: float, units: Sequence[str], start: int = 0) -> str:
    """`value`, given in units[start], in the unit that leaves at least 1 before the point where there is one."""
    if value is None or not math.isfinite(value) or value == 0:
        return f"{number(value)} {units[start]}".rstrip() if value is not None and not math.isnan(value) else UNKNOWN
    place = start
    while place + 1 < len(units) and abs(_rounded(value)) >= step:
        value, place = value / step, place + 1
    while place > 0 and abs(_rounded(value)) < 1:
        value, place = value * step, place - 1
    return f"{number(value)} {units[place]}".rstrip()


def count(value: float | None) -> str:
    """A count as it is spoken: 405 B parameters, 16.8 M tokens; exact below ten thousand."""
    if value is not None and abs(value) < 10_000 and value == int(value):
        return f"{int(value):,}"
    return _prefixed(value, 1e3, _SHORT)


def seconds(value: float | None) -> str:
    """A time of a step or less: 5.50 s, 12.3 ms, 4.10 us."""
    return _prefixed(value, 1e3, _SECONDS, start=3)


def duration(value: float | None) -> str:
    """A time of a run: days from two days on, hours from two hours on, else seconds."""
    if value is None or not math.isfinite(value):
        return seconds(value)
    hour, day = 3600.0, 86400.0
    if abs(value) >= 2 * day:
        return f"{number(value / day)} days"
    return f"{number(value / hour)} hours" if abs(value) >= 2 * hour else seconds(value)


def size(value: float | None) -> str:
    """Bytes of memory or of a message: 76.2 GiB."""
    return _prefixed(value, 1024.0, _BINARY)


def rate(value: float | None, unit: str = "B/s") -> str:
    """Something a second, decimal prefixes: 1.20 TB/s, 989 TFLOP/s, 3.21 Mtokens/s."""
    text = _prefixed(value, 1e3, _DECIMAL)
    if text == UNKNOWN:
        return text
    digits, _, prefix = text.partition(" ")
    return f"{digits} {prefix}{unit}"


def flops(value: float | None) -> str:
    """FLOP/s: 989 TFLOP/s."""
    return rate(value, "FLOP/s")


def percent(value: float | None) -> str:
    """A fraction as a percentage with one decimal: 41.3%."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{100 * value:.1f}%"


def dollars(value: float | None) -> str:
    """US dollars, in thousands or millions where that is shorter: $2.99, $41.2 M."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"${value:,.2f}" if abs(value) < 1e3 else f"${_prefixed(value, 1e3, ('', 'k', 'M', 'B'))}"


def energy(joules: float | None) -> str:
    """Energy in watt-hours: 27.1 GWh."""
    return rate(None if joules is None else joules / 3600.0, "Wh")
