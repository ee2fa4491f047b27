"""A part of a table: some of its rows and some rows of the product axes, with what was worked out once for the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from costmodel.runtime import Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class PartRun(Run):
    """Evaluates the levels of parts and the last of a module on a part of the table of another run.

    `whole` has evaluated what all parts share; `rows` of its table and the rows `kept` of each of the first product axes are the
    part.
    """

    def __init__(self, whole: Run, rows: NDArray[np.int64], kept: Sequence[NDArray[np.int64]]) -> None:
        import numpy as np

        self.module, self.table = whole.module, whole.table
        self.levels, self.spec, self.finest = whole.levels, whole.spec, whole.finest
        self._every = np.arange(len(rows))
        self._of_level: dict[str, tuple[Any, Any]] = {}
        self._taken: dict[str, Any] = {}
        for level in whole.levels:
            self._number(level, whole.index(level, self.finest)[rows])
        inner = len(self.module.ORDER) - len(kept) + 1
        own = [*self.module.PARTS, *self.module.BLOCKS]
        needed = {*self.module.INPUTS, *self.module.MEANING}.union(*(self.spec[level][0] for level in own))
        self.values = {
            name: self._cut(whole.values[name], self._taken[whole.module.LEVEL[name]], kept, inner)
            for name in needed
            if name in whole.values
        }

    def _number(self, level: str, numbers: NDArray[np.int64]) -> None:
        """Number the rows of a level that occur in the part; `numbers` are those of the whole, one for each row of the part."""
        import numpy as np

        occurs = np.zeros(int(numbers.max()) + 1, bool)
        occurs[numbers] = True
        taken = np.flatnonzero(occurs)
        if level == self.finest or len(taken) == len(numbers):
            self._taken[level], self._of_level[level] = numbers, (self._every, self._every)
            return
        own = (np.cumsum(occurs) - 1)[numbers]
        first = np.empty(len(taken), np.int64)
        first[own[::-1]] = self._every[::-1]
        self._taken[level], self._of_level[level] = taken, (first, own)

    @staticmethod
    def _cut(value: Array, taken: NDArray[np.int64], kept: Sequence[NDArray[np.int64]], inner: int) -> Array:
        """What a quantity is in the part: `taken` rows of its level, the rows `kept` of each product axis."""
        ends = value.ndim - inner
        for axis, rows in enumerate(kept, ends - len(kept)):
            if value.shape[axis] > 1 and value.shape[axis] > len(rows):
                value = value.take(rows, axis=axis)
        if value.shape[-1] > 1:
            value = value.take(taken, axis=-1)
        return value

    def coarse(self) -> Run:
        """Evaluate the levels of parts."""
        return self._evaluate(self.module.PARTS)

    def _rows(self, level: str) -> tuple[Any, Any]:
        return self._of_level[level]
