"""Least absolute error in logarithms, held to the catalog: which constants a set of measurements can move, and by how much.

Nothing here knows what is measured. A constant is the logarithm of a factor on what the catalog has, so that 0 is the catalog;
residuals are logarithms of predicted over measured times. What is minimised is

    sum of |residual| + held x sum of |constant|

so that a constant leaves the catalog only where more than `held` measurements, less those that disagree, ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Residuals = Callable[[Sequence[float]], Sequence[float]]

SHARPNESS = (0.1, 0.03, 0.01, 0.001, 0.0001)
"""Below these an absolute value is taken as a parabola, one after the other: the steps are Newton's."""
MOST_STEPS = 12
STEP = 1e-3
"""Of a difference quotient, in logarithms."""
LEAST_GAIN = 1e-5
LEAST_MOVE = 1e-3
"""Of one measurement, in logarithms: what a constant has to gain to leave the catalog."""
ALIKE = 0.5
"""Share of a constant's effect that another one has too, from which on the two are called alike."""
MOST_DAMPING = 1e7


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a constant may go, in logarithms; 0 lies inside."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Told:
    """Whether measurements tell a constant: by how many of them they weigh on it, and what it moves together with."""

    weight: float
    own_weight: float
    like: tuple[int, ...]

    def is_told(self, held: float) -> bool:
        """Whether what they say of it alone can outweigh the catalog: twice where it trades with others, which it moves too."""
        return self.own_weight > (2 * held if self.like else held)


def fit(
    residuals: Residuals,
    bounds: Sequence[Bounds],
    held: float,
    start: Sequence[float] | None = None,
    sharpness: Sequence[float] = SHARPNESS,
    steps: int = MOST_STEPS,
) -> list[float]:
    """The constants where the sum is least, from the catalog or from `start`; one that gains nothing stays at 0."""
    import numpy as np

    point = np.array(start if start is not None else [0.0] * len(bounds))
    for width in sharpness:
        point = _descend(residuals, point, bounds, held, width, steps)
    return _simplest(residuals, point, bounds, held)


def objective(values: Sequence[float], point: Sequence[float], held: float) -> float:
    """What is minimised."""
    return sum(abs(value) for value in values) + held * sum(abs(value) for value in point)


def sensitivities(residuals: Residuals, point: Sequence[float], bounds: Sequence[Bounds]) -> Array:
    """How much each residual changes with each constant: a row a measurement, a column a constant."""
    import numpy as np

    here = np.array(residuals(point))
    columns = []
    for place, bound in enumerate(bounds):
        moved = list(point)
        step = STEP if moved[place] + STEP <= bound.high else -STEP
        moved[place] += step
        columns.append((np.array(residuals(moved)) - here) / step)
    return np.array(columns).T.reshape(len(here), len(bounds))


def told(jacobian: Array, held: float) -> list[Told]:
    """What the measurements say of each constant beside those before it in the list.

    A constant that moves the predictions as those before it do, to less than `held` measurements, is not told apart from them.
    """
    import numpy as np

    found: list[Told] = []
    basis: list[tuple[int, Array]] = []
    for place in range(jacobian.shape[1]):
        column = jacobian[:, place]
        rest, like = column.copy(), []
        for earlier, direction in basis:
            along = float(rest @ direction)
            if abs(along) > ALIKE * float(np.linalg.norm(column)):
                like.append(earlier)
            rest -= along * direction
        weight, own = float(np.abs(column).sum()), float(np.abs(rest).sum())
        found.append(Told(weight, own, tuple(like)))
        if found[-1].is_told(held):
            basis.append((place, rest / np.linalg.norm(rest)))
    return found


def _descend(
    residuals: Residuals, point: Array, bounds: Sequence[Bounds], held: float, width: float, steps: int
) -> Array:
    """Newton's steps on the sum with absolute values that are parabolas below `width`, damped until they gain."""
    import numpy as np

    low, high = (np.array([getattr(bound, end) for bound in bounds]) for end in ("low", "high"))
    damping = 1e-3
    here: Array = np.array([*residuals(point.tolist())])
    value = _smoothed(here, width) + held * _smoothed(point, width)
    for _ in range(steps):
        jacobian = sensitivities(residuals, point.tolist(), bounds)
        weights = 1 / np.maximum(np.abs(here), width)
        pull = held / np.maximum(np.abs(point), width)
        slope = jacobian.T @ (weights * here) + pull * point
        curve = jacobian.T @ (weights[:, None] * jacobian) + np.diag(pull)
        before = value
        while damping < MOST_DAMPING:
            damped = curve + damping * np.diag(np.diag(curve) + 1e-9)
            candidate = np.clip(point - np.linalg.solve(damped, slope), low, high)
            there: Array = np.array([*residuals(candidate.tolist())])
            worth = _smoothed(there, width) + held * _smoothed(candidate, width)
            if worth < value:
                point, here, value = candidate, there, worth
                damping = max(damping / 10, 1e-6)
                break
            damping *= 10
        if before - value <= LEAST_GAIN * (1 + before):
            break
    return point


def _smoothed(values: Array, width: float) -> float:
    import numpy as np

    size = np.abs(values)
    return float(np.where(size > width, size, (size * size / width + width) / 2).sum())


def _simplest(residuals: Residuals, point: Array, bounds: Sequence[Bounds], held: float) -> list[float]:
    """The point with every constant at 0 that gains nothing by being elsewhere."""
    best = [min(max(float(value), bound.low), bound.high) for value, bound in zip(point, bounds, strict=True)]
    value = objective(residuals(best), best, held)
    for place in sorted(range(len(best)), key=lambda one: abs(best[one])):
        without = [*best[:place], 0.0, *best[place + 1 :]]
        worth = objective(residuals(without), without, held)
        if worth <= value + LEAST_MOVE:
            best, value = without, worth
    return best


def folds(groups: Sequence[str], most: int) -> list[list[int]]:
    """Numbers of the measurements to leave out together: those of one group, or of several where there are more than `most`.

    Groups are in the order of their first measurement; every so many-th go together, so that no fold is one end of a curve.
    """
    order = list(dict.fromkeys(groups))
    count = min(most, len(order))
    fold_of = {group: number % count for number, group in enumerate(order)}
    found: list[list[int]] = [[] for _ in range(count)]
    for number, group in enumerate(groups):
        found[fold_of[group]].append(number)
    return found
