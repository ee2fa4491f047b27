"""The options that describe the code of a training, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from costmodel.errors import InputError

if TYPE_CHECKING:
    from costmodel.search.software import Software


def software_of(
    attention: str | None, dropout: bool, launch: str | None, overlap: str, expert_kernels: str, reduce_in: str | None
) -> Software:
    """The software that the options name. Raises InputError, with the nearest choice, for a word that is none."""
    from costmodel.search.software import Software

    for option, said in (("--attention", attention), ("--launch", launch), ("--reduce-in", reduce_in)):
        if said is not None and not said.strip():
            raise InputError(f"{option} is empty: name one, or leave it out")
    words = tuple(word.strip() for word in overlap.lower().split(","))
    if "none" in words and len(words) > 1:
        raise InputError(f"--overlap {overlap[:40]!r} names none beside others: give none alone, or tp, dp or tp,dp")
    return Software(
        attention=(attention or "").lower(),
        dropout=dropout,
        launches=(launch or "").lower(),
        overlap=() if words == ("none",) else words,
        experts=expert_kernels.lower(),
        reduction=(reduce_in or "").lower(),
    )
