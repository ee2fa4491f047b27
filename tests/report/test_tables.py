"""Tables for people: aligned, within 80 columns, harmless."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.report import Table, markdown, tables
from tests.report.answers import Said


def test_a_table_as_it_is_printed():
    assert tables.render(Said()) == (
        "Collectives\nalgorithm     time\n---------  -------\nring       12.3 ms\ntree        450 us\n\n- One way.\n"
    )


def test_cells():
    assert [tables.cell(value) for value in (None, True, False, 16384, 0.5, float("nan"), "a")] == [
        "-", "yes", "no", "16,384", "0.500", "-", "a",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["1", "-1.5", "12.3 ms", "1.20 TB/s", "41.3%", "$2.99", "$41.2 M", "-", "", "1e-09", "~3 s"]
)
def test_quantities_are_on_the_right(text):
    assert tables.alignments([[text]]) == ["right"]


@pytest.mark.parametrize("text", ["ring", "8x16x16", "tp=8", "2 of 3 chips", "llama-3"])
def test_words_are_on_the_left(text):
    assert tables.alignments([[text]]) == ["left"]


@given(st.lists(st.tuples(st.text(max_size=150), st.text(max_size=150), st.integers(-(10**9), 10**9)), max_size=4))
def test_long_text_gives_way_to_80_columns(rows):
    shown = tables.render(Said(shown=(Table("title " * 30, ("left", "middle", "number"), rows, ("word " * 60,)),)))
    assert max(len(line) for line in shown.split("\n")) <= 80


def test_control_characters_never_reach_a_terminal():
    table = Table("\x1b[31mred", ("a",), (("\x1b]0;owned\x07",),), ("\x9b31m", "two\n\x1blines"))
    assert not set(tables.render(Said(shown=(table,)))) & {"\x1b", "\x07", "\x9b"}


def test_a_table_without_rows_and_one_of_notes_alone():
    empty = tables.render(Said(shown=(Table("None found", ("name", "time")), Table("", notes=("a\n  b",)))))
    assert empty == "None found\nname  time\n----  ----\n\na\n  b\n"


def test_texts_of_several_lines_stand_apart_from_lists_of_notes():
    shown = tables.render(Said(shown=(Table("why", notes=("a\n  b", "one", "two")), Table("", notes=("three",)))))
    assert shown == "why\na\n  b\n\n- one\n- two\n\n- three\n"


def test_indentation_of_cells_is_kept():
    shown = tables.render(Said(shown=(Table("", ("item", "time"), (("step", "2 s"), ("  bubble", "1 s"))),)))
    assert "\n  bubble " in shown


def test_markdown():
    table = Table("Time <s>", ("item", "time\n(s)"), (("a|b\nc\\d", "2 s"),), ("plain", "tree\n  leaf"))
    assert markdown.render(Said(shown=(table,))) == (
        "### Time &lt;s>\n\n"
        "| item         |   time (s) |\n"
        "|:-------------|-----------:|\n"
        "| a\\|b<br>c\\\\d |        2 s |\n\n"
        "- plain\n\n"
        "```text\ntree\n  leaf\n```\n"
    )


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=4))
def test_markdown_rows_are_lines_with_unescaped_bars_of_their_own(rows):
    shown = markdown.render(Said(shown=(Table("", ("a", "b"), rows),)))
    lines = shown.removesuffix("\n").split("\n")
    assert len(lines) == 2 + len(rows)
    for line in lines[2:]:
        assert line.replace("\\\\", "").replace("\\|", "").count("|") == 3
