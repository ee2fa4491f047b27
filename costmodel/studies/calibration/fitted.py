"""One kind of measurement fitted: which constants moved, and the error before and after, each measurement judged by the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log
from statistics import median

from costmodel.catalog.entries import Number
from costmodel.errors import InputError
from costmodel.studies.calibration.cases import Kind
from costmodel.studies.calibration.constants import Constant, Place, Values, as_written, rounded, values_at
from costmodel.studies.calibration.fit import LEAST_MOVE, Residuals, Told, fit, folds, sensitivities, told
from costmodel.studies.validation.statistics import quantile

ROUNDS = 2
"""How often what is told is looked at again where the fit has moved to."""
UNSEEN = "hardly any of these measurements depends on it"
AGAIN, STEPS_AGAIN = (0.01,), 4
"""Of a fit that starts from that of all measurements, which is not far."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Predicted over measured less one, without sign; None where nothing was judged."""

    median: float | None
    p90: float | None

    @classmethod
    def of(cls, predicted: Iterable[float], measured: Iterable[float]) -> Errors:
        """Of so many times in seconds."""
        sizes = sorted(abs(one / other - 1) for one, other in zip(predicted, measured, strict=True))
        return cls(median(sizes), quantile(sizes, 0.9)) if sizes else cls(None, None)


@dataclass(frozen=True, slots=True)
class Moved:
    """A constant before and after, in the SI unit of its number; `low` and `high` are its ends over the parts left out.

    `why` says why it is unchanged, and is empty where it moved.
    """

    constant: Constant
    before: float
    after: float
    low: float
    high: float
    why: str


@dataclass(frozen=True, slots=True)
class Fitted:
    """A kind after its fit. `values` are the numbers of the catalog that changed, as an overlay holds them."""

    kind: Kind
    folds: int
    groups: int
    before: Errors
    after: Errors
    on_the_same: Errors
    constants: tuple[Moved, ...]
    values: Values
    notes: tuple[str, ...]

    @property
    def moved(self) -> bool:
        """Whether anything did."""
        return bool(self.values)


def fitted(
    kind: Kind, settings: Mapping[str, Number], given: Values, progress: Callable[[int], None] = lambda _: None
) -> Fitted:
    """Fit the constants of a kind; `given` are numbers that earlier kinds have changed already.

    Raises InputError where a prediction is no number.
    """
    held = settings["held_measurements"].value
    fitting = _Fitting(kind, given)
    point = fitting.fit(held)
    parts = folds([case.group for case in kind.cases], int(settings["most_folds"].value))
    measured = [case.measured_s for case in kind.cases]
    catalog = fitting.times([0.0] * len(kind.constants))
    judged, points = list(catalog), [point]
    if len(parts) > 1:
        for number, part in enumerate(parts, 1):
            left_out = set(part)
            kept = [place for place in range(len(measured)) if place not in left_out]
            points.append(fitting.again(point, kept, held))
            times = fitting.times(points[-1])
            for place in part:
                judged[place] = times[place]
            progress(number)
    before, after = (
        sum(abs(log(one / other)) for one, other in zip(times, measured, strict=True)) for times in (catalog, judged)
    )
    notes, refused = list(kind.notes), False
    if any(point) and after >= before:
        notes.append(
            "what was fitted predicts measurements that are left out no better than the catalog: its constants are kept"
            if len(parts) > 1
            else "all measurements are repeats of one: nothing can judge a fit to them, and the catalog's constants are kept"
        )
        point, points, judged, refused = [0.0] * len(point), [[0.0] * len(point)], list(catalog), True
    notes += _at_an_end(kind.constants, point)
    values = as_written(kind.constants, values_at(kind.constants, point))
    same = list(kind.predict({**given, **values}))
    values |= _intervals(kind, judged, settings, moved=values)
    return Fitted(
        kind,
        len(parts),
        len({case.group for case in kind.cases}),
        Errors.of(catalog, measured),
        Errors.of(judged, measured) if len(parts) > 1 else Errors(None, None),
        Errors.of(same, measured),
        tuple(_moved(kind.constants, point, points, fitting.told, held, refused=refused)),
        values,
        tuple(notes),
    )


class _Fitting:
    """The times of a kind by its constants, each point evaluated once, and those that the measurements tell."""

    def __init__(self, kind: Kind, given: Values) -> None:
        self.kind, self.given = kind, given
        self.known: dict[tuple[float, ...], list[float]] = {}
        self.told: list[Told] = []
        self.active: list[int] = []

    def times(self, point: Sequence[float]) -> list[float]:
        """Seconds of each case."""
        key = tuple(map(float, point))
        if key not in self.known:
            found = list(self.kind.predict({**self.given, **values_at(self.kind.constants, key)}))
            for case, time in zip(self.kind.cases, found, strict=True):
                if not (isfinite(time) and time > 0):
                    raise InputError(f"{case.name}: nothing is predicted for it, which leaves nothing to fit")
            self.known[key] = found
        return self.known[key]

    def residuals(self, cases: Sequence[int]) -> Residuals:
        """Of those cases, by the active constants."""

        def of(active: Sequence[float]) -> list[float]:
            times = self.times(self.whole(active))
            return [log(times[place] / self.kind.cases[place].measured_s) for place in cases]

        return of

    def whole(self, active: Sequence[float]) -> list[float]:
        """All constants, those that are not told at the catalog's."""
        point = [0.0] * len(self.kind.constants)
        for place, value in zip(self.active, active, strict=True):
            point[place] = float(value)
        return point

    def fit(self, held: float) -> list[float]:
        """The constants that the measurements tell, where they are least wrong; told again where that has moved."""
        everything, every_case = list(range(len(self.kind.constants))), range(len(self.kind.cases))
        bounds = [constant.bounds for constant in self.kind.constants]
        point = [0.0] * len(everything)
        for _ in range(ROUNDS):
            before, self.active = self.active, everything
            self.told = told(sensitivities(self.residuals(every_case), point, bounds), held)
            self.active = sorted({*before, *(place for place, one in enumerate(self.told) if one.is_told(held))})
            if self.active == before:
                break
            start = [point[place] for place in self.active]
            point = self.whole(fit(self.residuals(every_case), [bounds[place] for place in self.active], held, start))
        return point

    def again(self, point: Sequence[float], cases: Sequence[int], held: float) -> list[float]:
        """The same from some of the cases, starting at the fit of all."""
        bounds = [self.kind.constants[place].bounds for place in self.active]
        start = [point[place] for place in self.active]
        return self.whole(fit(self.residuals(cases), bounds, held, start, AGAIN, STEPS_AGAIN))


def _moved(
    constants: Sequence[Constant],
    point: Sequence[float],
    points: Sequence[Sequence[float]],
    tellings: Sequence[Told],
    held: float,
    *,
    refused: bool,
) -> Iterable[Moved]:
    for place, constant in enumerate(constants):
        number = constant.first
        ends = [rounded(number, number.value * exp(one[place])) if one[place] else number.value for one in points]
        why = "" if point[place] else _why(constants, tellings[place], held, refused=refused)
        yield Moved(constant, number.value, ends[0], min(ends), max(ends), why)


def _why(constants: Sequence[Constant], one: Told, held: float, *, refused: bool) -> str:
    """Why a constant is unchanged."""
    if one.weight <= held:
        return UNSEEN
    if not one.is_told(held):
        others = " and ".join(f"the {constants[other].name}" for other in one.like)
        return f"it is not told apart from {others or 'those before it'}"
    return "another predicts what is left out no better" if refused else "the measurements ask for no other"


def _at_an_end(constants: Sequence[Constant], point: Sequence[float]) -> list[str]:
    """A warning for each constant that would go on where nature ends."""
    ends = {
        constant.name: bound
        for constant, value in zip(constants, point, strict=True)
        for bound in (constant.bounds.low, constant.bounds.high)
        if value and abs(value - bound) < LEAST_MOVE
    }
    return [f"the {name} is at the end of what is possible: is this the machine that was measured?" for name in ends]


def _intervals(
    kind: Kind, judged: Sequence[float], settings: Mapping[str, Number], moved: Values
) -> dict[Place, float]:
    """Tenth and ninetieth percentile of measured over predicted, of kernels that moved and have measurements enough."""
    found: dict[Place, float] = {}
    for (chip, name), numbers in (kind.blocks or {}).items():
        ratios = sorted(
            case.measured_s / time for case, time in zip(kind.cases, judged, strict=True) if case.kernel == name
        )
        if len(ratios) < settings["interval_measurements"].value:
            continue
        if any((place.entry, place.path[1]) == (chip, name) for place in moved):
            for end, share in (("low", 0.1), ("high", 0.9)):
                found[Place("kernels", chip, ("kernels", name, end))] = rounded(numbers[end], quantile(ratios, share))
    return found
