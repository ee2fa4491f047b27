"""A whole in named parts, in order: a mapping that cannot be changed, so that an answer stays what it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


class Breakdown(Mapping[str, float]):
    """Parts by name, in the order given. Hashes, compares with any mapping, pickles and copies; nothing can be assigned."""

    __slots__ = ("_parts",)
    _parts: tuple[tuple[str, float], ...]

    def __init__(self, parts: Mapping[str, float] | Iterable[tuple[str, float]] = ()) -> None:
        object.__setattr__(self, "_parts", tuple(dict(parts).items()))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a breakdown cannot be changed: {name}")

    def __getitem__(self, name: str) -> float:
        for part, value in self._parts:
            if part == name:
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (part for part, _ in self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        return f"Breakdown({dict(self._parts)!r})"

    def __reduce__(self) -> tuple[type[Breakdown], tuple[dict[str, float]]]:
        return Breakdown, (dict(self._parts),)
