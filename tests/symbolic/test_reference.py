"""The page of reference: chapters told from what they are made of."""

from types import ModuleType

from costmodel.symbolic import Chapter, bytes_, bytes_per_second, count, equation, given, part, seconds, select
from costmodel.symbolic.reference import chapters, own, section


class Copy(Chapter):
    """One copy."""

    S = given(bytes_, "the message")
    W = given(bytes_per_second, "the link")
    time = equation(seconds, S / W, "over the link", source="a book", valid="always", approximate="no start")


class Copies(Chapter):
    """Several copies, one after the other."""

    n = given(count, "copies")
    one = part(Copy)
    total_time = equation(seconds, select(n > 1, n * one.time, 0), "all of them", source="a book")


PAGE = ModuleType("costmodel.somewhere", "Copies of things.\n\nMore about them.")
PAGE.Copy, PAGE.Copies = Copy, Copies
for chapter in (Copy, Copies):
    chapter.__module__ = PAGE.__name__


def test_only_the_chapters_and_quantities_that_a_module_writes_itself():
    assert chapters(PAGE) == [Copy, Copies]
    assert [e.name for e in own(Copies)] == ["n", "total_time"]


def test_every_line_says_unit_definition_meaning_validity_and_source():
    text = section(PAGE)
    assert text.startswith("## somewhere.py\n\nCopies of things.")
    assert "- `S` [B]: the message" in text
    assert "- `time` [s] = `S / W`: over the link; valid: always; not exact: no start; source 1" in text
    assert "- `total_time` [s] = `n * one_time if n > 1 else 0`: all of them; source 1" in text
    assert text.endswith("1. a book")
