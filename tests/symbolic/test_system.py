"""Definitions, chapters inside chapters, and what a badly formed system is told."""

from fractions import Fraction

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import EquationError
from costmodel.symbolic import (
    Axis,
    Chapter,
    EquationSystem,
    best,
    both,
    bytes_,
    bytes_per_second,
    choice,
    choose,
    column,
    compile_math,
    count,
    either,
    equation,
    part,
    rows,
    seconds,
    select,
    smallest,
    total,
)
from costmodel.symbolic import given as given_

KIND = Axis("kind", ("dense", "sparse"))


class Ring(Chapter):
    """Ranks in a cycle."""

    n = given_(count, "ranks in the group", owner="layout")
    S = given_(bytes_, "the whole gathered array")
    W = given_(bytes_per_second, "one link, one way")
    alpha = given_(seconds, "one step")

    shard = equation(bytes_, S / n, "what one rank starts with", source="by definition")
    gather = equation(seconds, (n - 1) * (alpha + shard / W), "n - 1 steps", valid="one direction used")


class Step(Chapter):
    """Two groups that share their links."""

    tp = column(count, "tensor parallel degree")
    dp = column(count, "data parallel degree")
    activation = given_(bytes_, "one micro-batch's activations")
    gradient = given_(bytes_, "one rank's gradients")

    along_tp = part(Ring, n=tp, S=activation)
    along_dp = part(Ring, n=dp, S=2 * gradient)

    time = equation(seconds, along_tp.gather + along_dp.gather, "one after the other")


def test_a_chapter_is_a_system_of_named_quantities():
    ring = Ring.system
    assert list(ring.equations) == ["n", "S", "W", "alpha", "shard", "gather"]
    assert {e.name for e in ring.inputs()} == {"n", "S", "W", "alpha"}
    shard = ring["shard"]
    assert (shard.unit, shard.meaning, shard.source) == (bytes_, "what one rank starts with", "by definition")
    assert ring["gather"].valid == "one direction used"
    assert ring["n"].owner == "layout"
    assert shard.uses == ("S", "n")
    assert ring["n"].is_input
    with pytest.raises(EquationError, match="n is an input: it has no expression"):
        _ = ring["n"].expression


def test_parts_are_prefixed_their_inputs_bound_and_the_rest_shared():
    system = Step.system
    assert system.check() == []
    assert {e.name for e in system.inputs()} == {"tp", "dp", "activation", "gradient", "W", "alpha"}
    answer = compile_math(system)(tp=4, dp=3, activation=8, gradient=6, W=2, alpha=10)
    assert answer["along_tp_shard"] == 2
    assert answer["along_tp_gather"] == 3 * (10 + 1)
    assert answer["along_dp_shard"] == 4
    assert answer["time"] == 33 + 2 * (10 + 2)


@given(n=st.integers(1, 64), m=st.integers(1, 64), S=st.integers(1, 1000), W=st.integers(1, 9), alpha=st.integers(0, 9))
def test_a_part_equals_the_chapter_asked_alone(n, m, S, W, alpha):
    alone, step = compile_math(Ring.system), compile_math(Step.system)
    frac = {"W": Fraction(W), "alpha": Fraction(alpha)}
    whole = step(tp=n, dp=m, activation=Fraction(S), gradient=Fraction(S), **frac)
    assert whole["along_tp_gather"] == alone(n=n, S=Fraction(S), **frac)["gather"]
    assert whole["along_dp_gather"] == alone(n=m, S=Fraction(2 * S), **frac)["gather"]


def test_a_part_hands_its_symbols_out_as_attributes():
    system = EquationSystem("outer")
    view = system.include(Ring.system, "ring_")
    assert view.gather == sp.Symbol("ring_gather")
    assert view.n == sp.Symbol("n")
    with pytest.raises(AttributeError, match="no quantity 'gathr' in this part; gather"):
        _ = view.gathr
    with pytest.raises(AttributeError, match="nothing like it is defined there"):
        _ = view.zzz


def test_a_quantity_may_be_defined_after_the_one_that_uses_it():
    later = EquationSystem("later")
    later.define("twice", count, 2 * sp.Symbol("once"), "uses what comes next")
    later.define("once", count, sp.Integer(3), "comes next")
    system = EquationSystem("outer")
    system.include(later, "in_")
    assert compile_math(system)()["in_twice"] == 6


def test_shared_parts_are_defined_once():
    class Sizes(Chapter):
        """Shared by others."""

        hidden = given_(count, "features")
        wide = equation(count, 4 * hidden, "features between the matmuls")

    class Both(Chapter):
        """Uses it twice, once through another chapter."""

        sizes = part(Sizes, shared=True)
        again = part(Sizes, shared=True)
        area = equation(count, sizes.wide * again.wide, "a square")

    assert list(Both.system.equations) == ["hidden", "wide", "area"]
    assert compile_math(Both.system)(hidden=1)["area"] == 16


def test_a_condition_that_binding_settles_is_resolved():
    class Guarded(Chapter):
        """Nothing for one rank."""

        n = given_(count, "ranks")
        time = equation(seconds, select(n > 1, sp.Symbol("SECOND") / (n - 1), 0), "nothing for one rank")

    class Alone(Chapter):
        """One rank."""

        group = part(Guarded, n=1)
        time = equation(seconds, group.time, "the group's")

    assert compile_math(Alone.system)()["time"] == 0


def test_pythons_equality_is_refused_as_a_condition():
    n = sp.Symbol("n")
    for wrong in (lambda: select(n == 1, 0, n), lambda: both(n > 1, n == 2), lambda: either(n == 1, n == 2)):
        with pytest.raises(EquationError, match=r"write equal\(a, b\) where == stands"):
            wrong()


def test_a_choice_keeps_its_labels_in_a_part():
    class Schedules(Chapter):
        """A formula by label."""

        schedule = choice(("plain", "eager"), "how")
        n = given_(count, "a number")
        cost = equation(count, choose(schedule, {"plain": n, "eager": n / 2}), "by schedule")

    class Outer(Chapter):
        """Its own choice is put in."""

        of_stage = choice(("plain", "eager"), "how, on this stage")
        inner = part(Schedules, schedule=of_stage)
        twice = equation(count, 2 * inner.cost, "doubled")

    assert Outer.system.check() == []
    function = compile_math(Outer.system)
    assert [function(of_stage=i, n=8)["twice"] for i in (0, 1)] == [16, 8]
    other = EquationSystem("other")
    other.input("schedule", count, "how", labels=("plain",))
    with pytest.raises(EquationError, match="schedule holds other labels in other than in Schedules: bind it"):
        other.include(Schedules.system)


def test_what_is_bound_must_be_an_input_and_exist():
    system = EquationSystem("outer")
    with pytest.raises(EquationError, match=r"Ring\.shard is defined there and cannot be bound"):
        system.include(Ring.system, "a_", {"shard": sp.Integer(1)})
    with pytest.raises(EquationError, match="Ring has no input m, ranks"):
        system.include(Ring.system, "b_", {"ranks": sp.Integer(1), "m": sp.Integer(2)})


def test_inputs_of_unlike_units_are_not_shared():
    system = EquationSystem("outer")
    system.input("S", count, "a sequence")
    with pytest.raises(EquationError, match=r"S is \[\] in outer and \[B\] in Ring: bind it"):
        system.include(Ring.system)


@pytest.mark.parametrize("name", ["lambda", "inf", "add", "max", "locals", "FLOP", "system", "i_tile", "two words", ""])
def test_names_that_the_generated_code_needs_are_refused(name):
    with pytest.raises(EquationError, match="cannot name a quantity"):
        EquationSystem("x").input(name, count, "a number")


def test_a_second_definition_is_refused_by_name():
    system = EquationSystem("twice")
    n = system.input("n", count, "a number")
    system.define("m", count, n + 1, "one more")
    with pytest.raises(EquationError, match="m is defined twice in twice"):
        system.define("m", count, n + 2, "two more")
    with pytest.raises(EquationError, match="n is defined twice in twice"):
        system.define("n", count, n + 2, "two more")


def test_a_cycle_is_told_in_order():
    system = EquationSystem("round")
    system.define("a", count, sp.Symbol("b") + 1, "a")
    system.define("b", count, sp.Symbol("c") + 1, "b")
    system.define("c", count, sp.Symbol("a") + 1, "c")
    with pytest.raises(EquationError, match="cycle: a -> b -> c -> a"):
        system.order()
    with pytest.raises(EquationError, match="cycle: b -> c -> a -> b"):
        system.order(["b"])


def test_a_missing_definition_names_who_uses_it():
    system = EquationSystem("gap")
    system.define("a", count, sp.Symbol("nowhere") + 1, "a")
    with pytest.raises(EquationError, match="nowhere, used by a, is neither an input nor defined in gap"):
        system.check()
    with pytest.raises(EquationError, match="gatehr, used by the request"):
        Ring.system.order(["gatehr"])
    with pytest.raises(EquationError, match=r"Ring has no quantity 'gatehr'; did you mean gather\?"):
        _ = Ring.system["gatehr"]


def test_a_misspelt_symbol_fails_on_its_own_line():
    with pytest.raises(NameError, match="ranksss"):

        class Wrong(Chapter):
            """A slip."""

            ranks = given_(count, "ranks")
            steps = equation(count, ranksss - 1, "steps")  # noqa: F821


def test_order_holds_only_what_is_wanted_definitions_first():
    names = [e.name for e in Step.system.order(["along_tp_gather"])]
    assert set(names) == {"activation", "tp", "along_tp_shard", "W", "alpha", "along_tp_gather"}
    assert names[-1] == "along_tp_gather"
    assert names.index("along_tp_shard") > names.index("tp")


def test_cut_makes_inputs_of_quantities():
    piece = Step.system.cut("along_tp_gather", "along_dp_gather")
    assert {e.name for e in piece.inputs(["time"])} == {"along_tp_gather", "along_dp_gather"}
    assert piece["along_tp_gather"].axes == {"tp"}
    assert piece["along_tp_gather"].unit == seconds
    assert compile_math(piece, ["time"])(along_tp_gather=1, along_dp_gather=2)["time"] == 3
    assert not Step.system["along_tp_gather"].is_input
    with pytest.raises(EquationError, match="did you mean along_tp_gather"):
        Step.system.cut("along_tp_gathers")


def test_axes_are_those_of_what_is_used_less_what_is_reduced_plus_what_is_stacked():
    system = EquationSystem("axes")
    tp = system.input("tp", count, "a column", axes=(Axis("tp"),))
    weight = system.input("weight", count, "by kind", axes=(KIND,))
    both = system.define("both", count, tp * weight, "both")
    system.define("whole", count, total(both, KIND), "one left")
    system.define("least", count, best(weight, KIND), "none left")
    system.define("stack", count, rows(KIND, {"dense": tp, "sparse": 1}), "one more")
    found = system.axes()
    assert found["both"] == {"tp", "kind"}
    assert found["whole"] == {"tp"}
    assert found["least"] == frozenset()
    assert found["stack"] == {"tp", "kind"}
    assert set(system.axes(["least"])) == {"weight", "least"}


def test_rows_must_be_those_of_the_axis_in_order():
    with pytest.raises(EquationError, match="rows of kind must be dense, sparse, in this order"):
        rows(KIND, {"sparse": 1, "dense": 2})
    with pytest.raises(EquationError, match="axis kind has no row 'thin'; its rows are dense, sparse"):
        KIND.number("thin")


def test_one_alternative_is_itself():
    system = EquationSystem("one")
    system.define("least", count, smallest(system.input("n", count, "a number")), "of one")
    assert compile_math(system)(n=3)["least"] == 3


def test_what_is_settled_alike_stands_once_in_an_extreme():
    class Rules(Chapter):
        a = column(count, "first")
        b = column(count, "second")
        c = column(count, "third")
        least = equation(count, smallest(select(a > 1, c, 1), c, select(b > 1, c, 1)), "of all")

    settled = Rules.system.settled({"a": 0, "b": 0})
    assert str(settled["least"].expression) == "smallest(1, c)"
    assert (
        compile_math(settled, ["least"])(c=3)["least"] == compile_math(Rules.system, ["least"])(a=0, b=0, c=3)["least"]
    )
