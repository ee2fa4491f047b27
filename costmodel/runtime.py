"""What the generated modules call, and how they are called: whole-number functions, one answer, tables of rows.

What those over tables call is in `runtime_arrays`.

numpy is imported by the parts that need it only: one answer from a `math` module does without.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

from costmodel.errors import EquationError, InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

BLOCK = 500_000
"""Elements in one statement: enough that numpy's overhead is small, few enough that blocks stay in the caches."""


REUSED = 31 * 2**20
"""Bytes up to which freed memory is kept for the next array; glibc takes at most 32 MiB for this."""


def keep_freed_memory() -> None:
    """Have freed arrays used again as they are, where the C library learns from what it is asked (glibc does).

    Otherwise it hands every large array back to the system when it is freed, and the next one, zeroed page by page, costs as much
    as the arithmetic. The array asked for here is never touched and takes no memory.
    """
    import numpy as np

    np.empty(REUSED, np.uint8)


def call(function: Callable[..., Mapping[str, Any]], inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call a generated function with those of `inputs` that it takes; raises InputError naming one that is missing."""
    names = function.__code__.co_varnames[: function.__code__.co_kwonlyargcount]
    missing = [name for name in names if name not in inputs]
    if missing:
        raise InputError(f"the equations need {', '.join(missing)}, which this catalog does not give")
    return function(**{name: inputs[name] for name in names})


def ceil_log2(n: float) -> int:
    """The smallest k with 2^k >= n, for n >= 1."""
    return (math.ceil(n) - 1).bit_length()


def floor_log2(n: float) -> int:
    """The largest k with 2^k <= n, for n >= 1."""
    return math.floor(n).bit_length() - 1


def nearest_whole(x: float) -> int:
    """The nearest whole number, halves to even."""
    return round(x)


def ones_below(n: float) -> int:
    """How many ones the binary forms of 0 .. n-1 hold together."""
    whole, total = math.ceil(n), 0
    for bit in range(whole.bit_length()):
        full, rest = divmod(whole, 2 << bit)
        total += (full << bit) + max(0, rest - (1 << bit))
    return total


def none_drawn(population: Any, marked: Any, draws: Any) -> Any:
    """The chance that `draws` out of `population`, without putting back, hit none of the `marked`."""
    chance: Any = 1
    for drawn in range(math.ceil(draws)):
        chance = chance * max(population - marked - drawn, 0) / (population - drawn)
    return chance


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

    `inputs` are numbers, or arrays along the product axes that the module's INPUTS names, in the order of its ORDER (or
    with a dimension for each of those axes, one for the rows, and further ones before), or columns of the table. Raises
    EquationError for an input that is missing or has other dimensions.
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
            column: Array = self.table.columns[name][representatives]
            return column.reshape([1] * len(order) + [-1])
        if name not in inputs:
            raise EquationError(f"no value was given for the input {name}")
        given = np.asarray(inputs[name], float)
        own = [axis for axis in order if axis in axes]
        if given.ndim <= len(order):
            if given.ndim not in {0, len(own)}:
                along = ", ".join(own) or "no product axis"
                raise EquationError(f"{name} varies along {along} but was given with {given.ndim} dimensions")
            sizes = dict(zip(own, given.shape, strict=False))
            given = given.reshape([sizes.get(axis, 1) for axis in order] + [1])
        return self._whole(name, given, own)

    def _whole(self, name: str, given: Array, own: Sequence[str]) -> Array:
        """An input with all the rows of every axis that some formula runs over, one number standing for all of them."""
        import numpy as np

        order, rows, shape = self.module.ORDER, self.module.ROWS, list(given.shape)
        for axis in own:
            place = order.index(axis) - len(order) - 1
            size = rows.get(axis, 0)
            if size and shape[place] not in {1, size}:
                raise EquationError(f"{name} was given {shape[place]} rows along {axis}, which has {size}")
            shape[place] = size or shape[place]
        whole: Array = np.broadcast_to(given, shape)
        return whole

    def _rows(self, level: str) -> tuple[Any, Any]:
        """As Table.unique; a level that tells all rows apart is the table itself, and so is the finest even where rows repeat."""
        import numpy as np

        found = None if level == self.finest else self.table.unique(self.levels[level])
        if found is None or len(found[0]) == self.table.size:
            every = np.arange(self.table.size)
            return every, every
        return found

    def _whole_table(self, level: str) -> bool:
        """Whether a level has the rows of the table, in their order."""
        return len(self._rows(level)[0]) == len(self._rows(self.finest)[0])

    def index(self, coarse: str, fine: str) -> Any:
        """For each row of the level `fine`, the number of its row in the level `coarse`."""
        return self._rows(coarse)[1][self._rows(fine)[0]]

    def _gathered(self, name: str, level: str, block: slice) -> Array:
        """What a coarser level holds, or the level itself, for some rows of a level."""
        value, own = self.values[name], self.module.LEVEL[name]
        if value.shape[-1] == 1 or not self.levels[own]:
            return value
        if own == level or (self._whole_table(own) and self._whole_table(level)):
            return value[..., block]
        taken: Array = value.take(self.index(own, level)[block], axis=-1)
        return taken

    def _call(self, level: str, block: slice) -> Sequence[Array]:
        """One level's quantities in one block of its rows."""
        return self._whole_rank(
            getattr(self.module, level)(*(self._gathered(name, level, block) for name in self.spec[level][0]))
        )

    def _whole_rank(self, values: Sequence[Array]) -> list[Array]:
        """Constants with every dimension too."""
        import numpy as np

        rank = len(self.module.ORDER) + 1
        return [value if np.ndim(value) >= rank else np.array(value, float, ndmin=rank) for value in values]

    @cached_property
    def _sizes(self) -> tuple[dict[str, int], int]:
        """Rows of each product axis, and elements along further dimensions before them."""
        import numpy as np

        order = self.module.ORDER
        shapes = {self.values[name].shape for name in self.module.INPUTS}
        along = np.broadcast_shapes((1,) * len(order), *(shape[-len(order) - 1 : -1] for shape in shapes))
        sizes = dict(zip(order, along, strict=True))
        further = math.prod(np.broadcast_shapes(*(shape[: -len(order) - 1] for shape in shapes)))
        return sizes | self.module.ROWS, further

    def _elements(self, level: str, *functions: str) -> tuple[int, int]:
        """Rows of a level, and elements of one row in the widest statement of its functions, of one slice at a time."""
        sizes, further = self._sizes
        rows = len(self._rows(level)[0]) if self.levels[level] else 1
        statements = [held for function in functions or (level,) for held in self.module.WIDEST[function]]
        own = self.module.SLICED if functions else ""
        return rows, further * max(math.prod(sizes[axis] for axis in held if axis != own) for held in statements)

    def coarse(self) -> Run:
        """Evaluate every level but the last."""
        return self._evaluate([level for level in self.spec if level not in self.module.BLOCKS])

    def shared(self) -> Run:
        """Evaluate every level that is worked out once, whatever parts the rest is worked out in."""
        apart = {*self.module.BLOCKS, *self.module.PARTS}
        return self._evaluate([level for level in self.spec if level not in apart])

    def _evaluate(self, levels: Sequence[str]) -> Run:
        import numpy as np

        with np.errstate(all="ignore"):
            for level in levels:
                rows, each = self._elements(level)
                step = max(1, BLOCK // each)
                parts = [self._call(level, slice(low, low + step)) for low in range(0, rows, step)]
                for name, *values in zip(self.spec[level][1], *parts, strict=True):
                    varies = len(parts) > 1 and (step == 1 or any(v.shape[-1] > 1 for v in values))
                    self.values[name] = np.concatenate(values, axis=-1) if varies else values[0]
        return self

    def cut(self, runs: Sequence[int] | None = None) -> list[slice]:
        """The rows of the last level in blocks; with `runs`, the first rows of runs that belong together, of whole runs."""
        import numpy as np

        rows, each = self._elements(self._last, *self.module.BLOCKS)
        step = max(1, BLOCK // each)
        ends = np.append(np.asarray(runs)[1:], rows) if runs is not None else np.arange(1, rows + 1)
        blocks, low = [], 0
        while low < rows:
            place = int(np.searchsorted(ends, low + step, side="right"))
            # A run that is longer than a block is taken whole.
            high = int(ends[place - 1] if place and ends[place - 1] > low else ends[place])
            blocks.append(slice(low, high))
            low = high
        return blocks

    @property
    def _last(self) -> str:
        """The level whose rows are taken in blocks."""
        return self.finest if self.module.SLICED else str(self.module.BLOCKS[-1])

    def block(self, rows: slice) -> dict[str, Array]:
        """The quantities wanted on some rows of the last level; several threads may ask at once."""
        import numpy as np

        pieces = [found for _, found in self.slices(rows)]
        if len(pieces) == 1:
            return pieces[0]
        place = self._place(self.module.SLICED)
        return {name: np.concatenate([piece[name] for piece in pieces], axis=place) for name in pieces[0]}

    def _place(self, axis: str) -> int:
        """The dimension of a product axis, from the end."""
        return int(self.module.ORDER.index(axis)) - len(self.module.ORDER) - 1

    def slices(self, rows: slice) -> Iterator[tuple[slice, dict[str, Array]]]:
        """The quantities wanted on some rows, for one row after another of the axis that is sliced, or for all of them at once."""
        import numpy as np

        *before, level = self.module.BLOCKS
        names, kept = self.spec[level]
        found: dict[str, Array] = {}
        with np.errstate(all="ignore"):
            for name in before:
                found |= zip(self.spec[name][1], self._call(name, rows), strict=True)
        arguments = [found[name] if name in found else self._gathered(name, self._last, rows) for name in names]
        found = {name: value for name, value in found.items() if name in self.module.MEANING}
        for at, own in self._sliced(arguments):
            with np.errstate(all="ignore"):
                values = self._whole_rank(getattr(self.module, level)(*own))
            yield at, found | dict(zip(kept, values, strict=True))

    def _sliced(self, arguments: list[Array]) -> Iterator[tuple[slice, list[Array]]]:
        """The arguments for each row of the axis that is sliced; once where there is none, or none of them varies along it."""
        place = self._place(self.module.SLICED) if self.module.SLICED else -1
        size = max((value.shape[place] for value in arguments), default=1) if self.module.SLICED else 1
        if size == 1:
            yield slice(None), arguments
            return
        for number in range(size):
            at = slice(number, number + 1)
            where: tuple[Any, ...] = (..., at, *[slice(None)] * (-place - 1))
            yield at, [value[where] if value.shape[place] > 1 else value for value in arguments]

    def blocks(self) -> Iterator[tuple[slice, dict[str, Array]]]:
        """The last level, block by block: which rows, and the quantities wanted there."""
        for rows in self.cut():
            yield rows, self.block(rows)
