"""The options that describe the code of a training, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from costmodel.search.software import Software


def software_of(
    attention: str | None, dropout: bool, launch: str | None, overlap: str, expert_kernels: str, reduce_in: str | None
) -> Software:
    """The software that the options name. Raises InputError, with the nearest choice, for a word that is none."""
    from costmodel.search.software import Software

    words = tuple(word.strip() for word in overlap.lower().split(","))
    return Software(
        attention=(attention or "").lower(),
        dropout=dropout,
        launches=(launch or "").lower(),
        overlap=() if words == ("none",) else words,
        experts=expert_kernels.lower(),
        reduction=(reduce_in or "").lower(),
    )
