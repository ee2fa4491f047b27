"""The tree under an answer: its numbers are the answer's, its branches the ones taken, and it can be read."""

import math

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import EquationError
from costmodel.symbolic import (
    Axis,
    Chapter,
    EquationSystem,
    at_best,
    best,
    bytes_,
    bytes_per_second,
    choice,
    choose,
    compile_math,
    count,
    cube_root,
    equation,
    part,
    row,
    rows,
    seconds,
    select,
    smallest,
    total,
    worst,
)
from costmodel.symbolic import given as given_
from costmodel.symbolic.explain import definition, tree
from costmodel.symbolic.point import Decision, Point
from costmodel.symbolic.render import as_latex, as_markdown, as_nested, as_records, as_text, said
from costmodel.symbolic.text import plain
from tests.symbolic.random_systems import KIND, PHASE, SecondOpinion, along_size, points, systems
from tests.symbolic.worth import worth

MATMUL = Axis("matmul", ("qkv", "out", "up", "down"))
TILE = Axis("tile", ("small", "wide", "tall"))


class Group(Chapter):
    """One group of ranks."""

    n = given_(count, "ranks", owner="layout")
    S = given_(bytes_, "the array")
    W = given_(bytes_per_second, "one link, one way", owner="link")
    alpha = given_(seconds, "one step", owner="link")

    ring = equation(seconds, (n - 1) * (alpha + S / n / W), "n - 1 steps", source="a textbook, section 1")
    direct = equation(seconds, alpha + S / W, "all at once", source="a textbook, section 2", valid="a full mesh")
    gather = equation(
        seconds, select(n > 1, smallest(ring, direct), 0), "the quicker one", source="a textbook, section 1"
    )


class Step(Chapter):
    """A small step."""

    width = given_(count, "columns of each product", MATMUL, owner="model")
    rate = given_(count, "columns a second by tile", TILE, owner="chip")
    gap = given_(seconds, "before each product", owner="chip")
    schedule = choice(("plain", "eager"), "how the pieces follow each other")
    group = part(Group)

    time = equation(seconds, gap + best(width / rate, TILE) * sp.Symbol("SECOND"), "one product, by its best tile")
    layer = equation(seconds, total(time, MATMUL), "all products")
    slowest = equation(seconds, worst(time, MATMUL), "the slowest product")
    first = equation(seconds, row(time, MATMUL, "qkv"), "the first product")
    twice = equation(seconds, choose(schedule, {"plain": layer + group.gather, "eager": layer}), "by schedule")
    step = equation(seconds, twice + first / 2, "the whole", approximate="small")


VALUES = {"width": [6, 2, 12, 4], "rate": [1, 2, 2], "gap": 1, "schedule": 0, "n": 4, "S": 8, "W": 1, "alpha": 1}


def point(**changed):
    inputs = {**VALUES, **changed}
    return Point(Step.system, compile_math(Step.system, looped=[MATMUL, TILE])(**inputs), [MATMUL, TILE])


PRINTED = """
step = 27 s   the whole (approximate: small)
    = first / 2 + twice
    = 4 / 2 + 25
  first = 4 s   the first product
      = time[qkv]
    time[qkv] = 4 s   one product, by its best tile
        = gap + best(width / rate over tile)
        = 1 + 6 / 2
        best over tile: bound by both wide and tall
  twice = 25 s   by schedule
      = choose(schedule, plain: group_gather + layer, eager: layer)
      = 9 + 16
      schedule is plain
    group_gather = 9 s   the quicker one [1]
        = smallest(group_ring, group_direct) if n > 1 else 0
        since n > 1 is true
        smallest: bound by both group_ring and group_direct
    layer = 16 s   all products
        = total(time over matmul)
        = 4 + 2 + 7 + 3
        largest part over matmul: up (44%)
    schedule = plain   how the pieces follow each other (layout)

[1] a textbook, section 1
"""


def test_a_tree_as_it_is_printed():
    assert as_text(tree(point(), "step", 2), width=72) == PRINTED.strip()


def test_the_branch_not_taken_is_not_shown():
    shown = {q.shown for _, q, _ in tree(point(schedule=1), "twice", 9).walk()}
    assert "group_gather" not in shown
    assert "layer" in shown
    alone = {q.shown for _, q, _ in tree(point(n=1), "group_gather", 9).walk()}
    assert alone == {"group_gather", "n"}


def test_rows_are_bound_before_going_down():
    slowest = tree(point(rate=[1, 4, 2]), "slowest", 9)
    (time,) = slowest.parts
    assert time.shown == "time[up]"
    assert time.rows == (("matmul", "up"),)
    assert [q.shown for q in time.parts] == ["gap", "width[up]", "rate[wide]"]
    assert [q.value for q in time.parts] == [1, 12, 4]
    assert time.decisions == (Decision("best", "tile", "wide", (), (("small", 12.0), ("wide", 3.0), ("tall", 6.0))),)
    assert time.decisions[0].runner_up == ("tall", 6.0)


def test_only_the_largest_part_of_a_sum_is_followed():
    layer = tree(point(), "layer", 9)
    assert [q.shown for q in layer.parts] == ["time[qkv]", "time[out]", "time[up]", "time[down]"]
    assert [bool(q.parts) for q in layer.parts] == [False, False, True, False]


def test_a_long_sum_shows_its_largest_row_alone():
    many = Axis("many", tuple(f"r{i}" for i in range(30)))
    x = EquationSystem("long")
    n = x.input("n", count, "a number", axes=(many,))
    x.define("whole", count, 2 * total(n, many), "twice the sum")
    found = tree(Point(x, compile_math(x, looped=[many])(n=list(range(30))), [many]), "whole")
    assert found.numbers == "2 * 435"
    assert [q.shown for q in found.parts] == ["n[r29]"]


def test_the_row_to_look_at_can_be_said():
    assert tree(point(), "time", rows={"matmul": "down"}).value == 3
    assert tree(point(), "time").shown == "time[up]"
    with pytest.raises(EquationError, match="axis matmul has no row 'side'; its rows are qkv, out, up, down"):
        tree(point(), "time", rows={"matmul": "side"})
    with pytest.raises(EquationError, match="there is no axis 'layers'; the axes are matmul, tile"):
        tree(point(), "time", rows={"layers": "1"})
    with pytest.raises(EquationError, match=r"Step has no quantity 'tim'; did you mean time"):
        tree(point(), "tim")


def test_a_quantity_without_a_value_is_named():
    values = compile_math(Step.system, ["first"], looped=[MATMUL, TILE])(width=VALUES["width"], rate=[1, 2, 2], gap=1)
    with pytest.raises(EquationError, match="no value of step is known at this point"):
        tree(Point(Step.system, values, [MATMUL, TILE]), "step")


def test_a_picked_row_tells_what_decided():
    x = EquationSystem("picked")
    memory = x.input("memory", count, "by row", axes=(KIND,))
    speed = x.input("speed", count, "by row", axes=(KIND,))
    x.define("kept", count, at_best(memory, 1 / speed, KIND), "memory of the fastest")
    found = tree(Point(x, compile_math(x, looped=[KIND])(memory=[5, 6, 7], speed=[1, 4, 2]), [KIND]), "kept")
    assert found.value == 6
    assert [q.shown for q in found.parts] == ["memory[sparse]", "speed[sparse]"]
    assert said(found.decisions[0]) == "at best over kind: sparse, then head (0.5)"


def test_what_was_told_is_not_told_again():
    told = as_text(tree(point(), "step", 9))
    assert told.count("= gap + best(width / rate over tile)") == len({"qkv", "out", "up", "down"})
    assert "time[qkv] = 4 s   as above" in told


def test_records_are_flat_and_complete():
    records = as_records(tree(point(), "step", 9))
    assert len({(r["quantity"], r["rows"], r["depth"]) for r in records}) == len(records)
    by_name = {r["quantity"]: r for r in records}
    assert by_name["step"]["approximate"] == "small"
    assert by_name["schedule"]["value"] == "plain"
    assert by_name["width"]["owner"] == "model"
    assert by_name["group_ring"] | {"depth": 0} == {
        "depth": 0,
        "quantity": "group_ring",
        "rows": "",
        "value": 9,
        "unit": "s",
        "meaning": "n - 1 steps",
        "expression": "(n - 1) * (S / (W * n) + alpha)",
        "numbers": "(4 - 1) * (8 / (1 * 4) + 1)",
        "taken": "",
        "owner": "",
        "source": "a textbook, section 1",
        "valid": "",
        "approximate": "",
    }


def test_objects_nest_as_the_tree_does():
    nested = as_nested(tree(point(), "step", 9))
    assert [part["quantity"] for part in nested["parts"]] == ["first", "twice"]
    assert nested["parts"][0]["parts"][0] | {"parts": []} == {
        "quantity": "time",
        "rows": {"matmul": "qkv"},
        "value": 4,
        "unit": "s",
        "meaning": "one product, by its best tile",
        "expression": "gap + best(width / rate over tile)",
        "numbers": "1 + 6 / 2",
        "taken": ["best over tile: bound by both wide and tall"],
        "owner": "",
        "source": "",
        "valid": "",
        "approximate": "",
        "latex": r"\mathrm{gap} + \min_{\mathrm{tile}} \left(\frac{\mathrm{width}}{\mathrm{rate}}\right)",
        "parts": [],
    }


def test_quantities_that_share_their_parts_do_not_multiply():
    x = EquationSystem("shared")
    last = x.input("n", count, "a number")
    for i in range(40):
        root = x.define(f"x{i}", count, sp.sqrt(last), "uses it once")
        last = x.define(f"y{i}", count, root + last, "and again")
    here = Point(x, compile_math(x)(n=1))
    for found in (tree(here, "y39", 99), definition(x, "y39", 99)):
        assert len(as_text(found).splitlines()) < 500
        assert len(str(as_nested(found))) < 100_000


def test_markdown_and_latex():
    found = tree(point(), "group_gather", 1)
    formula = rf"\mathrm{{group\_gather}} = {found.latex}"
    assert as_markdown(found).splitlines()[:4] == [
        "- `group_gather` = 9 s: the quicker one [1]",
        f"  ${formula} = 9\\ \\text{{s}}$",
        "  since n > 1 is true",
        "  smallest: bound by both group_ring and group_direct",
    ]
    lines = as_latex(tree(point(), "first", 1)).splitlines()
    assert lines[0] == r"\begin{align*}"
    assert lines[1] == r"\mathrm{first} &= \left. \mathrm{time} \right|_{\mathrm{qkv}} && \text{the first product} \\"
    assert lines[2] == r"  &= 4\ \text{s} \\"
    assert lines[-1] == r"\end{align*}"


def test_a_definition_needs_no_numbers():
    told = as_text(definition(Step.system, "twice", 2), width=80)
    assert told.splitlines()[:4] == [
        "twice [s]   by schedule",
        "    = choose(schedule, plain: group_gather + layer, eager: layer)",
        "  schedule   how the pieces follow each other (layout)",
        "  group_gather [s]   the quicker one [1]",
    ]
    assert "=" not in as_text(definition(Step.system, "n", 3))
    assert [r["value"] for r in as_records(definition(Step.system, "twice", 2))] == [None] * 8


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (
            Decision("smallest", "", "ring", (), (("ring", 1.0), ("tree", 2.0), ("nvls", 3.0))),
            "smallest: ring, then tree (2)",
        ),
        (Decision("largest", "", "b", (), (("a", 1.0), ("b", 4.0), ("c", 3.0))), "largest: b, then c (3)"),
        (Decision("largest", "", "b", ("a", "c")), "largest: bound by b and a and c"),
        (Decision("if", "", "n > 1 is false"), "since n > 1 is false"),
        (Decision("total", "kind", "b", (), (("a", 1.0), ("b", 3.0))), "largest part over kind: b (75%)"),
        (Decision("total", "kind", "a", (), (("a", 0.0), ("b", 0.0))), "largest part over kind: a"),
        (Decision("smallest", "", "a" * 100, (), (("a" * 100, 1.0),)), "smallest: " + "a" * 57 + "..."),
    ],
)
def test_decisions_in_words(decision, words):
    assert said(decision) == words


def test_numbers_as_they_are_shown():
    shown = {0.0: "0", 8.0: "8", 123456.0: "123456", 4.5e10: "4.5e10", 1e-7: "1e-7", 0.00606412: "0.006064"}
    assert {x: plain(x) for x in shown} == shown
    assert plain(math.inf, "s") == "inf s"
    assert plain(-2.5, "s") == "-2.5 s"
    assert plain(1e100) == "1e100"


def test_lines_keep_to_the_width():
    for width in (60, 80, 100):
        assert all(len(line) <= width for line in as_text(tree(point(), "step", 9), width=width).splitlines())


def explained(drawn, values):
    inputs = along_size(values[0], 0) | {name: column[0] for name, column in values[1].items()}
    return Point(drawn.system, compile_math(drawn.system, looped=[KIND, PHASE])(**inputs), [KIND, PHASE]), inputs


@given(systems(), points())
def test_every_number_of_every_tree_is_the_answers(drawn, values):
    here, inputs = explained(drawn, values)
    opinion = SecondOpinion(drawn.system, inputs)
    for _, q, _ in tree(here, drawn.names[-1], 6).walk():
        at = {axis: {"kind": KIND, "phase": PHASE}[axis].number(label) for axis, label in q.rows}
        assert math.isclose(q.value, opinion.of(q.name, **at), rel_tol=1e-11)
        if q.taken is not None:
            assert math.isclose(worth(q.taken, q.values), q.value, rel_tol=1e-9)
            assert q.text
            assert q.latex
            assert bool(q.numbers) == bool(q.numbers_latex) == bool(q.taken.args)


@given(systems(), points(), st.integers(0, 3))
def test_every_tree_can_be_told_in_every_form(drawn, values, depth):
    here, _ = explained(drawn, values)
    found = tree(here, drawn.names[-1], depth)
    assert all(len(line) <= 100 or " " not in line.strip() for line in as_text(found, width=100).splitlines())
    assert len(as_records(found)) <= sum(1 for _ in found.walk())
    assert as_markdown(found)
    assert as_latex(found).count("&=") >= 1
    assert max(level for level, _, _ in found.walk()) <= depth
    assert definition(drawn.system, drawn.names[-1], depth, [KIND, PHASE]).text == found.text


def test_ties_up_to_rounding_bind_both():
    x = EquationSystem("tie")
    a, b = x.input("a", count, "one"), x.input("b", count, "other")
    x.define("least", count, smallest(a * 3, b), "one of two")
    x.define("root", count, cube_root(a), "a root")
    (decision,) = tree(Point(x, compile_math(x)(a=0.1, b=0.3)), "least").decisions
    assert decision.tied
    (decision,) = tree(Point(x, compile_math(x)(a=0.1, b=0.3000001)), "least").decisions
    assert not decision.tied


def test_rows_of_formulas_show_the_row_that_is_looked_at():
    x = EquationSystem("stack")
    a = x.input("a", count, "a number")
    x.define("stack", count, rows(KIND, {"dense": a, "sparse": a**2, "head": 1}), "by kind")
    here = Point(x, compile_math(x, looped=[KIND])(a=3), [KIND])
    found = tree(here, "stack")
    assert (found.shown, found.numbers) == ("stack[sparse]", "3**2")
    assert found.text == "rows(kind, dense: a, sparse: a**2, head: 1)"
