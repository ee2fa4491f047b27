"""A measured step beside the predicted one: which single item or constant could explain the difference, and how plausibly.

Every constant is solved for with the generated equations of the step, which are monotone in each: the value is bracketed, then
halved down to. What is plausible is a range in hardware/assumptions/gap.yaml, not a fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log
from typing import Any, Literal

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.entries import Number
from costmodel.catalog.units import parse_measure
from costmodel.errors import InputError
from costmodel.report import Record, Table, human
from costmodel.runtime import call
from costmodel.search.evaluate import inputs, math_module
from costmodel.search.layout import Layout
from costmodel.search.workload import Workload
from costmodel.studies.estimate import TIME_ITEMS

RANGES = "gap"
SCALED = {
    "matmul_share": ("matmul_share", "half_share"),
    "nic_share": (
        *("simple_nic_share", "ll128_nic_share", "ll_nic_share", "exchange_nic_share"),
        *("nic_share", "dcn_share"),
    ),
    "domain_share": (
        *("simple_share", "ll128_share", "ll_share", "in_network_share", "exchange_share", "exchange_ll_share"),
        *("domain_share", "nvls_share", "link_share"),
    ),
}
"""What is scaled together under one name, the first that the machine has told for all of them."""
WIDER = 10.0
"""How many times beyond what is plausible a value is still looked for."""
HALVINGS = 60
CLOSED = 1e-3
"""Share of the step below which there is no gap to explain."""
Verdict = Literal["plausible", "implausible", "impossible"]
ORDER: tuple[Verdict, ...] = ("plausible", "implausible", "impossible")


@dataclass(frozen=True, slots=True)
class Reason:
    """An item or a constant as the only reason of the gap, in its own SI unit: of an item, seconds.

    `needed` is None where no value explains all of it; `explains` is the share that the plausible range explains at most.
    """

    name: str
    meaning: str
    unit: str
    now: float
    needed: float | None
    low: float
    high: float
    explains: float
    verdict: Verdict

    def record(self) -> Record:
        """As scripts take it."""
        return {
            "reason": self.name,
            "meaning": self.meaning,
            "unit": self.unit,
            "now": self.now,
            "needed": self.needed,
            "low": self.low,
            "high": self.high,
            "explains_at_most": self.explains,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True)
class Gap:
    """Measured and predicted seconds, and the reasons, the most plausible first."""

    measured_s: float
    predicted_s: float
    constants: tuple[Reason, ...]
    items: tuple[Reason, ...]

    @property
    def gap_s(self) -> float:
        """Measured less predicted."""
        return self.measured_s - self.predicted_s

    def result(self) -> Mapping[str, object]:
        """As scripts take it."""
        return {
            "measured_s": self.measured_s,
            "predicted_s": self.predicted_s,
            "gap_s": self.gap_s,
            "constants": [one.record() for one in self.constants],
            "items": [one.record() for one in self.items],
        }

    def tables(self) -> list[Table]:
        """For people."""
        longer = "longer" if self.gap_s > 0 else "shorter"
        said = (
            f"measured {human.seconds(self.measured_s)}, predicted {human.seconds(self.predicted_s)}: "
            f"{human.seconds(abs(self.gap_s))} {longer}, {human.percent(abs(self.gap_s) / self.predicted_s)}"
        )
        if not self.constants:
            return [Table("Measured and predicted", notes=(said,))]
        headers = ("if only this were otherwise", "now", "would be", "plausible", "explains\nat most", "alone")
        return [
            Table("Measured and predicted: constants", headers, [_row(one) for one in self.constants], (said,)),
            Table("Measured and predicted: items of the step", headers, [_row(one) for one in self.items]),
        ]


def _row(one: Reason) -> tuple[str, ...]:
    def shown(value: float | None) -> str:
        return human.seconds(value) if one.unit == "s" else human.number(value)

    return (
        one.meaning,
        shown(one.now),
        shown(one.needed),
        f"{shown(one.low)} .. {shown(one.high)}",
        human.percent(one.explains),
        one.verdict,
    )


def measured_seconds(text: str | float) -> float:
    """A measured time as it is typed; raises InputError for one that is none."""
    if isinstance(text, str):
        value = parse_measure(text, "s", "--measured")
    else:
        InputError.unless(text, (int, float), "a measured step is a number of seconds, or text such as '12.3 s'")
        value = float(text)
    if not (isfinite(value) and value > 0):
        raise InputError(f"--measured {str(text)[:30]} is no time of a step: give one above 0, such as 12.3s")
    return value


def gap(measured_s: float, workload: Workload, layout: Layout, catalog: Catalog) -> Gap:
    """What could explain that a step of this layout takes so long. Raises InputError for an impossible placement."""
    given = inputs(workload, layout, catalog)
    function = math_module(workload).evaluate
    taken = set(function.__code__.co_varnames[: function.__code__.co_kwonlyargcount])
    values = call(function, given)
    predicted = float(values["step_time"])
    ranges = catalog.assumptions(RANGES)
    if abs(measured_s / predicted - 1) < CLOSED:
        return Gap(measured_s, predicted, (), ())

    def step(changed: Mapping[str, float]) -> float:
        return float(call(function, {**given, **changed})["step_time"])

    found = []
    for name, range_ in ranges.items():
        knob = _knob(name, range_, given, taken, measured_s)
        if knob is not None and (reason := _reason(knob, step, predicted, measured_s)) is not None:
            found.append(reason)
    items = [
        _item(name, said, float(values[f"time_{name}"]), measured_s - predicted, ranges["item_factor"])
        for name, said in TIME_ITEMS.items()
        if values[f"time_{name}"] > 0
    ]
    return Gap(measured_s, predicted, _ordered(found), _ordered(items))


@dataclass(frozen=True, slots=True)
class _Knob:
    """A constant that can be set: what it is now, where it is plausible and where it is looked for."""

    name: str
    meaning: str
    unit: str
    now: float
    low: float
    high: float
    least: float
    most: float
    at: Callable[[float], Mapping[str, float]]


def _knob(name: str, range_: Number, given: Mapping[str, Any], taken: set[str], measured_s: float) -> _Knob | None:
    """The constant of that name, or None where the equations of this machine and model do not have it."""
    low, high = range_.at("low"), range_.at("high")
    if name == "step_overhead_share":
        now = float(given["step_overhead"])
        low, high = low * measured_s, high * measured_s
        return _Knob(
            "step_overhead", "stragglers, data, logging, the host", "s", now, low, max(high, now), 0.0, measured_s,
            lambda value: {"step_overhead": value},
        )  # fmt: skip
    names = [one for one in SCALED.get(name, (name,)) if one in taken and float(given.get(one, 0.0)) > 0]
    if name not in SCALED and name in taken:
        names = [name]
    if not names:
        return None
    now = float(given[names[0]])
    least, most = (low, high) if low == 0 else (min(low, now) / WIDER, max(high, now) * WIDER)

    def at(value: float) -> Mapping[str, float]:
        return {one: value if one == names[0] else float(given[one]) * value / now for one in names}

    return _Knob(name, range_.meaning, range_.unit, now, min(low, now), max(high, now), least, most, at)


def _reason(
    knob: _Knob, step: Callable[[Mapping[str, float]], float], predicted: float, measured_s: float
) -> Reason | None:
    """The constant as the only reason; None where the step does not depend on it."""
    times = {end: step(knob.at(end)) for end in (knob.least, knob.most, knob.low, knob.high)}
    if all(abs(time / predicted - 1) < CLOSED * CLOSED for time in times.values()):
        return None
    share = max((times[end] - predicted) / (measured_s - predicted) for end in (knob.low, knob.high))
    needed = _root(lambda value: step(knob.at(value)) - measured_s, knob.least, knob.most)
    verdict = _verdict(needed, knob.low, knob.high)
    explains = min(1.0, max(0.0, share))
    return Reason(knob.name, knob.meaning, knob.unit, knob.now, needed, knob.low, knob.high, explains, verdict)


def _item(name: str, said: str, seconds: float, missing_s: float, range_: Number) -> Reason:
    """An item of the step as the only reason: items add up to the step, so that it takes the whole gap."""
    low, high = range_.at("low"), range_.at("high")
    needed = seconds + missing_s if seconds + missing_s >= 0 else None
    low, high = low * seconds, high * seconds
    explains = min(1.0, ((high if missing_s > 0 else low) - seconds) / missing_s)
    return Reason(f"time_{name}", said, "s", seconds, needed, low, high, explains, _verdict(needed, low, high))


def _verdict(needed: float | None, low: float, high: float) -> Verdict:
    if needed is None:
        return "impossible"
    return "plausible" if low <= needed <= high else "implausible"


def _root(difference: Callable[[float], float], low: float, high: float) -> float | None:
    """Where a monotone function is 0 between two values, or None where it has one sign; halved in logarithms where it can be."""
    at_low, at_high = difference(low), difference(high)
    if at_low == 0 or at_high == 0:
        return low if at_low == 0 else high
    if (at_low > 0) == (at_high > 0):
        return None
    for _ in range(HALVINGS):
        middle = exp((log(low) + log(high)) / 2) if low > 0 else (low + high) / 2
        if middle in {low, high}:
            break
        if (difference(middle) > 0) == (at_low > 0):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _ordered(found: Sequence[Reason]) -> tuple[Reason, ...]:
    """Plausible ones first, those that need least change in front; then by how much of the gap they explain."""

    def key(one: Reason) -> tuple[int, float]:
        if one.needed is None or one.verdict != "plausible":
            return ORDER.index(one.verdict), -one.explains
        return 0, abs(one.needed - one.now) / (one.high - one.low)

    return tuple(sorted(found, key=key))
