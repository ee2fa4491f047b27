"""The one table of units, and how sizes and counts written by people are read.

Inside costmodel everything is base SI: bytes, seconds, FLOP, bytes per second, watts. GB is 1e9 and GiB is 2**30.
"""

from __future__ import annotations

import re

from costmodel.errors import InputError, nearest

_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}

# quantity -> (SI unit, {unit as written: factor to SI})
QUANTITIES: dict[str, tuple[str, dict[str, float]]] = {
    "bytes": ("B", {"B": 1.0} | {f"{p}B": f for p, f in (_DECIMAL | _BINARY).items()}),
    "bytes per second": (
        "B/s",
        {"B/s": 1}
        | {f"{p}B/s": f for p, f in (_DECIMAL | _BINARY).items()}
        | {f"{p}bit/s": f / 8 for p, f in _DECIMAL.items()},
    ),
    "operations per second": (
        "FLOP/s",
        {"FLOP/s": 1.0} | {f"{p}{op}/s": f for p, f in _DECIMAL.items() if p != "k" for op in ("FLOP", "OP")},
    ),
    "duration": ("s", {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "day": 86400}),
    "frequency": ("Hz", {"Hz": 1, "MHz": 1e6, "GHz": 1e9}),
    "events per second": ("1/s", {"1/s": 1, "1/h": 1 / 3600, "1/day": 1 / 86400, "T/s": 1e12}),
    "power": ("W", {"W": 1, "kW": 1e3, "MW": 1e6}),
    "price per hour": ("USD/h", {"USD/h": 1}),
    "price": ("USD", {"USD": 1}),
    "share": ("share", {"share": 1, "percent": 0.01}),
    "ratio": ("ratio", {"ratio": 1}),
    "count": ("count", {"count": 1}),
    "bytes per clock": ("B/clock", {"B/clock": 1}),
}
UNITS: dict[str, tuple[str, float]] = {
    unit: (quantity, factor) for quantity, (_, units) in QUANTITIES.items() for unit, factor in units.items()
}

ELEMENT_BYTES: dict[str, float] = {"fp32": 4, "int32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "fp4": 0.5}
"""What an element of each number format takes, scales apart."""

_AMBIGUOUS = re.compile(r"(?P<prefix>[kKMGTPmgtp]?i?)(?P<what>bps|Bps|b|flops?|ops?)(?P<per>/s|/sec)?", re.IGNORECASE)


def unit_hint(unit: str, quantity: str = "") -> str:
    """What to write in place of `unit`, which is not in the table, for a number of `quantity`: the end of a sentence."""
    units = QUANTITIES[quantity][1] if quantity else UNITS
    if unit in UNITS:
        return f"that is a unit of {UNITS[unit][0]}, choose from {', '.join(units)}"
    match = _AMBIGUOUS.fullmatch(unit)
    if match is None:
        near = nearest(unit, units)
        return f"did you mean {' or '.join(near)}?" if near else f"the units are {', '.join(units)}"
    prefix = match["prefix"].upper().replace("I", "i")
    decimal = (prefix[:1].replace("K", "k") if prefix else "") or ""
    what, rate = match["what"], bool(match["per"]) or match["what"].lower() == "bps"
    if what.lower().startswith(("flop", "op")):
        return f"write {decimal or 'T'}{'FLOP' if what.lower().startswith('f') else 'OP'}/s"
    end = "/s" if rate else ""
    binary = f"{decimal.upper()}iB{end}" if decimal else ""
    if what in ("B", "Bps"):  # KB, gB, GBps: bytes are meant, the prefix or the spelling is not ours
        choices = [f"{decimal}B{end} (powers of 1000)", f"{binary} (powers of 1024)"] if decimal else [f"B{end}"]
        return "write " + " or ".join(choices if not prefix.endswith("i") else [binary])
    choices = [f"{decimal}bit{end}", binary if prefix.endswith("i") else f"{decimal}B{end}"]
    known = [choice for choice in choices if choice in units]
    return f"it does not say bits or bytes: write {' or '.join(known or choices)}"


# -- what people write on a command line ----------------------------------------------------------

_NUMBER = re.compile(r"(?P<whole>\d+(?:_\d{3})*)?(?:\.(?P<part>\d*))?(?:[eE](?P<power>[+-]?\d{1,3}))?", re.ASCII)
_LARGEST = 2**63


def parse_size(text: str, what: str = "size") -> int:
    """A positive whole number of bytes, such as `1GiB`, `16 MiB`, `1.5GB` or `4096`.

    Raises InputError, with what would be right, for anything else, `1Gb` and `1KB` among it.
    """
    number, unit = _split(text, what, "a size such as 1GiB, 16MB or 4096")
    units = QUANTITIES["bytes"][1]
    if unit and unit not in units:
        short = {"K": "KiB or kB", "k": "kB or KiB", "M": "MB or MiB", "G": "GB or GiB", "T": "TB or TiB"}.get(unit)
        raise InputError(
            f"{what} {text!r} has the unit {unit!r}: {f'write {short}' if short else unit_hint(unit, 'bytes')}"
        )
    return _whole(number, int(units[unit or "B"]), text, what, "bytes")


def parse_count(text: str, what: str = "count") -> int:
    """A positive whole number, such as `16384`, `16M` (k, M, B or G, T: powers of 1000) or `4Ki` (powers of 1024)."""
    number, suffix = _split(text, what, "a whole number such as 16384, 16M or 4Ki")
    suffixes = {"": 1, "K": 1000, "B": 10**9} | _DECIMAL | _BINARY
    if suffix not in suffixes:
        raise InputError(f"{what} {text!r} ends in {suffix!r}: the suffixes are k, M, B, T and Ki, Mi, Gi, Ti")
    return _whole(number, suffixes[suffix], text, what, "")


def _split(text: str, what: str, expected: str) -> tuple[tuple[int, int], str]:
    """The positive number at the start of `text`, exactly, as (numerator, denominator), and what follows it."""
    stripped = text.strip()
    if len(stripped) > 40:
        raise InputError(f"{what} {stripped[:20] + '...'!r} is too long: give {expected}")
    sign, unsigned = (stripped[0], stripped[1:]) if stripped[:1] in ("+", "-") else ("", stripped)
    if unsigned.lower() in ("nan", "inf", "infinity"):
        raise InputError(f"{what} {text!r} is not finite: give {expected}")
    match = _NUMBER.match(unsigned)
    rest = unsigned[match.end() :].strip() if match else ""
    if match is None or not (match["whole"] or match["part"]) or any(character.isdigit() for character in rest):
        raise InputError(f"{what} {text!r} is not a number: give {expected}")
    if sign == "-":
        raise InputError(f"{what} {text!r} is negative: give {expected}")
    whole, part, power = (match["whole"] or "0").replace("_", ""), match["part"] or "", int(match["power"] or 0)
    if abs(power) > 30:
        raise InputError(f"{what} {text!r} is out of range: give {expected}")
    numerator, denominator = int(whole + part) * 10 ** max(power, 0), 10 ** (len(part) + max(-power, 0))
    if numerator == 0:
        raise InputError(f"{what} {text!r} is zero: give {expected}")
    return (numerator, denominator), rest


def _whole(number: tuple[int, int], factor: int, text: str, what: str, unit: str) -> int:
    numerator, denominator = number
    value, rest = divmod(numerator * factor, denominator)
    if rest:
        raise InputError(f"{what} {text!r} is not a whole number{f' of {unit}' if unit else ''}")
    if value > _LARGEST:
        raise InputError(f"{what} {text!r} is larger than 2**63")
    return value


def parse_measure(text: str, si: str, what: str) -> float:
    """A number of 0 or more with a unit of the quantity that `si` is the base unit of: `2.2 s`, `50GB/s`, `420TFLOP/s`, `16M`.

    The base unit is meant where none is given; a count takes the suffixes of `parse_count`. Raises InputError for anything else.
    """
    units = next((units for base, units in QUANTITIES.values() if si and base == si), {})
    prefixes = {"": 1, **_DECIMAL, **_BINARY, **({} if si else {"K": 1000, "B": 10**9})}
    factors = units or {f"{prefix}{si}": float(factor) for prefix, factor in prefixes.items()}
    example = f"a number such as {f'2.5 {si}' if si else '16M or 0.5'}"
    amount, _, per = text.strip().partition(" 1/")
    zero = re.fullmatch(r"\+?(?:0+\.?0*|\.0+)\s*(?P<unit>[^\d.\s].*)?", amount)
    number, unit = ((0, 1), zero["unit"] or "") if zero else _split(amount, what, example)
    unit = f"1/{per}" if per and not unit else unit
    if unit and unit not in factors:
        raise InputError(f"{what} {text!r} has the unit {unit!r}: {_choices(unit, si, factors)}")
    value = number[0] / number[1] * (factors[unit] if unit else 1)
    if not value < float("inf"):
        raise InputError(f"{what} {text!r} is out of range: give {example}")
    return value


def _choices(unit: str, si: str, factors: dict[str, float]) -> str:
    quantity = next((quantity for quantity, (base, _) in QUANTITIES.items() if si and base == si), "")
    return unit_hint(unit, quantity) if quantity else f"write one of {', '.join(filter(None, factors))}"
