"""What the generated modules over tables call: functions of whole numbers, rows of axes, choices, arrays that are used again.

numpy is imported when a function is called, so that what only names them does without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def ceil_log2s(n: Array) -> Array:
    """ceil_log2 of every element; exact, since the exponent of a float is."""
    import numpy as np

    mantissa, exponent = np.frexp(n)
    return np.where(mantissa == 0.5, exponent - 1, exponent).astype(float)


def floor_log2s(n: Array) -> Array:
    """floor_log2 of every element."""
    import numpy as np

    return (np.frexp(n)[1] - 1).astype(float)


def ones_belows(n: Array) -> Array:
    """ones_below of every element."""
    import numpy as np

    whole, total = np.ceil(n), np.zeros(np.shape(n))
    for bit in range(int(np.max(whole, initial=0)).bit_length()):
        full = whole // (2 << bit)
        total += full * (1 << bit) + np.maximum(0, whole - full * (2 << bit) - (1 << bit))
    return total


def nearest_wholes(x: Array) -> Array:
    """The nearest whole number of every element."""
    import numpy as np

    return np.rint(x)


def none_drawns(population: Array, marked: Array, draws: Array) -> Array:
    """none_drawn of every element."""
    import numpy as np

    chance = np.ones(np.broadcast_shapes(np.shape(population), np.shape(marked), np.shape(draws)))
    for drawn in range(int(np.max(np.ceil(draws), initial=0))):
        factor = np.maximum(population - marked - drawn, 0) / (population - drawn)
        chance = np.where(drawn < draws, chance * factor, chance)
    return chance


def stacked(axis: int, *parts: Array) -> Array:
    """One part for each row of an axis; a part that varies along the axis itself gives its own row."""
    import numpy as np

    rows = [row(part, axis, i) for i, part in enumerate(parts)]
    shape = list(np.broadcast_shapes((1,) * -axis, *(np.shape(part) for part in rows)))
    where: list[slice] = [slice(None)] * len(shape)
    shape[axis] = len(rows)
    out = np.empty(shape)
    for i, part in enumerate(rows):
        where[axis] = slice(i, i + 1)
        out[tuple(where)] = part
    return out


def row(x: Array, axis: int, number: int) -> Array:
    """One row of an axis, its dimension kept; plain numbers are the same in every row."""
    import numpy as np

    varies = np.ndim(x) >= -axis and x.shape[axis] > 1
    return np.take(x, [number], axis=axis) if varies else x


def branch_taken(condition: Array, value: Callable[[], Array], otherwise: Callable[[], Array]) -> Array:
    """The value where a condition holds, else the other; of one condition for all elements the other branch is not computed."""
    import numpy as np

    if condition.size == 1:
        return value() if condition.item() else otherwise()
    return np.where(condition, value(), otherwise())


def onto_first(function: np.ufunc, first: Any, second: Any) -> Array:
    """A function of two arrays, written over the first, which nobody needs again, where it has the shape of the result."""
    return _onto(first, function, first, second)


def onto_second(function: np.ufunc, first: Any, second: Any) -> Array:
    """The same over the second."""
    return _onto(second, function, first, second)


def _onto(spare: Any, function: np.ufunc, first: Any, second: Any) -> Array:
    import numpy as np

    fits = isinstance(spare, np.ndarray) and spare.dtype == float and spare.shape == np.broadcast(first, second).shape
    result: Array = function(first, second, out=spare) if fits else function(first, second)
    return result


def at_smallest(value: Array, key: Array, axis: int) -> Array:
    """The value where the key is smallest along an axis."""
    import numpy as np

    return _at(value, np.argmin(key, axis=axis, keepdims=True), axis)


def at_largest(value: Array, key: Array, axis: int) -> Array:
    """The value where the key is largest along an axis."""
    import numpy as np

    return _at(value, np.argmax(key, axis=axis, keepdims=True), axis)


def _at(value: Array, index: NDArray[np.int64], axis: int) -> Array:
    import numpy as np

    if np.ndim(value) < -axis or value.shape[axis] == 1:
        # The key alone varies along the axis: every row holds the same value.
        return value
    shape = list(np.broadcast_shapes(value.shape, index.shape))
    whole = np.broadcast_to(value, shape)
    shape[axis] = 1
    return np.take_along_axis(whole, np.broadcast_to(index, shape), axis=axis)
