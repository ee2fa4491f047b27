"""The kinds of measurement that there are, each in a module of its own that is loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, cast

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.studies.validation.coverage import with_interval
from costmodel.studies.validation.outcome import Outcome
from costmodel.studies.validation.rows import id_of, published, read_table

NAMES = ("training", "memory", "collectives", "kernels")
WITH_MODELS = ("training", "memory")
"""Kinds whose rows name models, which `outcomes` takes a file of as its third argument."""
FITTED_TABLES = {
    "training": ("training",),
    "memory": ("training", "megatron_memory"),
    "collectives": ("collectives/in_node", "collectives/published"),
}
"""The shipped tables whose rows the factors of a kind's intervals are of; kernels bring intervals of their own."""
WITH_WHOLE = ("collectives", "kernels")
"""Kinds of which a package on the index holds whole tables."""


class Kind(Protocol):
    """What the module of a kind offers."""

    def knows(self, columns: tuple[str, ...]) -> bool:
        """Whether a table with these columns is of the kind."""

    def outcomes(self, catalog: Catalog, table: Path | None = None) -> Iterator[Outcome]:
        """What comes of each row of the table, or of the shipped ones."""


def offered() -> tuple[str, ...]:
    """The kinds that are there."""
    return tuple(name for name in NAMES if find_spec(f"{__package__}.{name}") is not None)


def module(name: str) -> Kind:
    """The module of a kind; raises InputError with the nearest name where there is none."""
    if name not in offered():
        raise InputError.unknown("kind of measurement", name, offered())
    return cast("Kind", import_module(f"{__package__}.{name}"))


def of_table(table: Path) -> tuple[str, ...]:
    """The kinds whose columns a table has; raises InputError where it has those of none."""
    columns, _ = read_table(table)
    found = tuple(name for name in offered() if module(name).knows(columns))
    if not found:
        raise InputError(
            f"the columns of {str(table)[:200]!r} are those of no kind of measurement ({', '.join(offered())}): "
            f"docs/reference/published-runs.md lists them"
        )
    return found


def outcomes(name: str, catalog: Catalog, table: Path | None, models: Path | None) -> Iterator[Outcome]:
    """What comes of each row of a kind, with its interval."""
    run = cast("Callable[..., Iterator[Outcome]]", module(name).outcomes)
    found = run(catalog, table, models) if name in WITH_MODELS else run(catalog, table)
    ids = None if table is None else _shipped_ids(name)
    return (with_interval(one, catalog, shipped=ids is None or one.id in ids) for one in found)


def _shipped_ids(name: str) -> frozenset[str]:
    """The ids of the shipped rows of a kind, which factors of intervals were fitted to in whichever file they come again."""
    return frozenset(id_of(row) for table in FITTED_TABLES.get(name, ()) for row in read_table(published(table))[1])


def whole(name: str, catalog: Catalog, *, every: bool) -> Iterator[Outcome]:
    """What comes of each row of the whole tables of a kind, with its interval; raises InputError for a kind that has none.

    Rows that do not count are predicted where `every` is true: there are a million of them.
    """
    if name not in WITH_WHOLE:
        raise InputError(f"there are no whole tables of {name}: --whole is for {' or '.join(WITH_WHOLE)}")
    run = cast("Callable[..., Iterator[Outcome]]", vars(import_module(f"{__package__}.{name}"))["whole"])
    found = run(catalog, every=every)
    return (replace(with_interval(one, catalog, shipped=False), unseen=one.unseen) for one in found)


__all__ = ["NAMES", "WITH_WHOLE", "module", "of_table", "offered", "outcomes", "whole"]
