"""What the generated modules call: whole-number functions, and the driver of numpy modules over tables of rows.

numpy is imported by the parts that need it only: one answer from a `math` module does without.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

BLOCK = 500_000
"""Elements in one statement: enough that numpy's overhead is small, few enough that blocks stay in the caches."""


def ceil_log2(n: Any) -> int:
    """The smallest k with 2^k >= n, for n >= 1."""
    return (math.ceil(n) - 1).bit_length()


def floor_log2(n: Any) -> int:
    """The largest k with 2^k <= n, for n >= 1."""
    return math.floor(n).bit_length() - 1


def nearest_whole(x: Any) -> int:
    """The nearest whole number."""
    return round(x)


def ones_below(n: Any) -> int:
    """How many ones the binary forms of 0 .. n-1 hold together."""
    whole, total = math.ceil(n), 0
    for bit in range(whole.bit_length()):
        full, rest = divmod(whole, 2 << bit)
        total += (full << bit) + max(0, rest - (1 << bit))
    return total


def ceil_log2s(n: Array) -> Array:
    """ceil_log2 of every element; exact, since the exponent of a float is."""
    import numpy as np

    mantissa, exponent = np.frexp(n)
    return np.where(mantissa == 0.5, exponent - 1, exponent).astype(float)


def floor_log2s(n: Array) -> Array:
    """floor_log2 of every element."""
    import numpy as np

    return (np.frexp(n)[1] - 1).astype(float)


def nearest_wholes(x: Array) -> Array:
    """The nearest whole number of every element."""
    import numpy as np

    return np.rint(x)


def stacked(axis: int, *parts: Array) -> Array:
    """One part for each row of an axis that the parts do not have."""
    import numpy as np

    shape = list(np.broadcast_shapes(*(np.shape(part) for part in parts)))
    where: list[slice] = [slice(None)] * len(shape)
    shape[axis] = len(parts)
    out = np.empty(shape)
    for i, part in enumerate(parts):
        where[axis] = slice(i, i + 1)
        out[tuple(where)] = part
    return out


def row(x: Array, axis: int, number: int) -> Array:
    """One row of an axis, its dimension kept."""
    return x if x.shape[axis] == 1 else x.take([number], axis=axis)


def at_smallest(value: Array, key: Array, axis: int) -> Array:
    """The value where the key is smallest along an axis."""
    return _at(value, key.argmin(axis=axis, keepdims=True), key, axis)


def at_largest(value: Array, key: Array, axis: int) -> Array:
    """The value where the key is largest along an axis."""
    return _at(value, key.argmax(axis=axis, keepdims=True), key, axis)


def _at(value: Array, index: Any, key: Array, axis: int) -> Array:
    import numpy as np

    shape = list(np.broadcast_shapes(value.shape, key.shape))
    whole = np.broadcast_to(value, shape)
    shape[axis] = 1
    return np.take_along_axis(whole, np.broadcast_to(index, shape), axis=axis)


class Table:
    """Rows of layouts, one column an input; finds the unique rows of a set of columns once and remembers them."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        import numpy as np

        self.columns: dict[str, Array] = {name: np.asarray(values, float) for name, values in columns.items()}
        self.size = len(next(iter(self.columns.values())))
        self._codes: dict[str, tuple[int, NDArray[np.int64]]] = {}
        self._unique: dict[tuple[str, ...], tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def unique(self, columns: Sequence[str]) -> tuple[Any, Any]:
        """A representative of each unique row of these columns, and for every row the number of its unique row."""
        import numpy as np

        key = tuple(sorted(columns))
        if key not in self._unique:
            code, combinations = np.zeros(self.size, np.int64), 1
            for name in key:
                values, numbers = self._code(name)
                code, combinations = code * values + numbers, combinations * values
                if combinations > 4 * self.size + 1024:  # keep the code small enough to be an index
                    _, code = np.unique(code, return_inverse=True)
                    combinations = int(code.max()) + 1
            seat = np.full(combinations, -1)
            seat[code[::-1]] = np.arange(self.size)[::-1]
            used = np.flatnonzero(seat >= 0)
            number = np.empty(combinations, np.int64)
            number[used] = np.arange(len(used))
            self._unique[key] = seat[used], number[code]
        return self._unique[key]

    def _code(self, name: str) -> tuple[int, Any]:
        import numpy as np

        if name not in self._codes:
            values, numbers = np.unique(self.columns[name], return_inverse=True)
            self._codes[name] = len(values), numbers
        return self._codes[name]


class Run:
    """Evaluates a generated numpy module over a table: coarse levels first, the last one in blocks of rows.

    `inputs` are scalars, or arrays along the one product axis that the module's INPUTS names, or columns of the table.
    """

    def __init__(self, module: ModuleType, table: Table, inputs: Mapping[str, Any]) -> None:
        self.module, self.table = module, table
        self.levels: dict[str, list[str]] = {
            name: [c for c in held if c in table.columns] for name, held in module.LEVELS.items()
        }
        self.spec: dict[str, tuple[list[str], list[str]]] = module.SPEC
        self.finest = list(module.LEVELS)[-1]
        self.values: dict[str, Array] = {}
        for name, axes in module.INPUTS.items():
            self.values[name] = self._input(name, axes, inputs)

    def _input(self, name: str, axes: Sequence[str], inputs: Mapping[str, Any]) -> Array:
        import numpy as np

        order = self.module.ORDER
        if name in self.table.columns:
            representatives = self._rows(self.module.LEVEL[name])[0]
            return self.table.columns[name][representatives].reshape([1] * len(order) + [-1])
        given = np.asarray(inputs[name], float)
        if given.ndim == len(order) + 1:
            return given
        shape = [1] * (len(order) + 1)
        if given.ndim:
            (axis,) = (a for a in axes if a in order)
            shape[order.index(axis)] = -1
        return given.reshape(shape)

    def _rows(self, level: str) -> tuple[Any, Any]:
        """As Table.unique; the finest level is the table itself, in its own order, even where rows repeat."""
        import numpy as np

        if level == self.finest:
            every = np.arange(self.table.size)
            return every, every
        return self.table.unique(self.levels[level])

    def index(self, coarse: str, fine: str) -> Any:
        """For each row of the level `fine`, the number of its row in the level `coarse`."""
        return self._rows(coarse)[1][self._rows(fine)[0]]

    def _arguments(self, level: str, block: slice) -> list[Array]:
        arguments = []
        for name in self.spec[level][0]:
            value, own = self.values[name], self.module.LEVEL[name]
            if value.shape[-1] == 1 or not self.levels[own]:
                arguments.append(value)
            elif own == level:
                arguments.append(value[..., block])
            else:
                arguments.append(value.take(self.index(own, level)[block], axis=-1))
        return arguments

    def _elements(self, level: str) -> tuple[int, int]:
        """Rows of a level, and elements in a statement of one row, at most."""
        import numpy as np

        shape = np.broadcast_shapes(*(self.values[name].shape[:-1] for name in self.spec[level][0]))
        rows = len(self._rows(level)[0]) if self.levels[level] else 1
        return rows, math.prod(shape)

    def coarse(self) -> Run:
        """Evaluate every level but the last."""
        import numpy as np

        with np.errstate(all="ignore"):
            for level in list(self.spec)[:-1]:
                function, keep = getattr(self.module, level), self.spec[level][1]
                rows, each = self._elements(level)
                step = max(1, BLOCK // each)
                parts = [function(*self._arguments(level, slice(low, low + step))) for low in range(0, rows, step)]
                for name, *values in zip(keep, *parts, strict=True):
                    varies = len(parts) > 1 and (step == 1 or any(np.shape(v)[-1] > 1 for v in values))
                    self.values[name] = np.concatenate(values, axis=-1) if varies else values[0]
        return self

    def blocks(self) -> Iterator[tuple[slice, dict[str, Array]]]:
        """The last level, block by block: which rows, and the quantities wanted there."""
        import numpy as np

        level = list(self.spec)[-1]
        function, keep = getattr(self.module, level), self.spec[level][1]
        rows, each = self._elements(level)
        step = max(1, BLOCK // each)
        with np.errstate(all="ignore"):
            for low in range(0, rows, step):
                block = slice(low, min(rows, low + step))
                yield block, dict(zip(keep, function(*self._arguments(level, block)), strict=True))
