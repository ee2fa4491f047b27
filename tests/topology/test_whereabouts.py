"""Placements by where each axis lies: all splits that agree, the split of given degrees, and what is refused."""

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.topology.grammar import AXES, parse_placement
from costmodel.topology.machine import parse_machine
from costmodel.topology.placements import agreeing, members, placements, reached
from costmodel.topology.whereabouts import OTHER_WORDS, WORDS, Whereabouts, parse_whereabouts, says_where
from tests.topology.hand_made import CATALOG

MACHINES = {
    "tpu-v5p:4x4x8": ("x", "y", "z"),
    "tpu-v5p:4x4x12": ("x", "y", "z"),
    "tpu-v6e:8x16": ("x", "y"),
    "dgx-h100:512": ("domain", "leaf", "spine"),
    "gb200-nvl72:576": ("domain", "leaf"),
    "workstation:4": ("domain",),
}


def machine(on, slices=1):
    return parse_machine(on, slices, CATALOG)


def written(text, on, slices=1):
    table = agreeing(text, machine(on, slices))
    return [str(table.placement(row)) for row in range(len(table))]


@st.composite
def whereabouts(draw):
    """A machine and where each of some axes lies: every dimension has one axis or several."""
    on = draw(st.sampled_from(sorted(MACHINES)))
    axes = draw(st.permutations(AXES).map(lambda axes: axes[: draw(st.integers(1, 4))]))
    lies = {name: draw(st.sets(st.sampled_from(axes), min_size=1)) for name in MACHINES[on]}
    words = tuple((axis, tuple(name for name in MACHINES[on] if axis in lies[name])) for axis in axes)
    return on, Whereabouts(tuple((axis, names) for axis, names in words if names))


@given(whereabouts())
def test_all_splits_that_agree_are_there_once(case):
    """Against a filter of every placement with the nesting that was written."""
    on, where = case
    made = machine(on)
    order = [axis for axis, _ in where.words]
    every = placements(made, (*order, *(axis for axis in AXES if axis not in order)), all_levels=True, mirrored=True)
    rows = [filled_levels(every.placement(row)) for row in range(len(every))]
    expected = {row for row in rows if all(axis in where.on(name) for name, factors in row for axis, _ in factors)}
    table = agreeing(str(where), made)
    found = [filled_levels(table.placement(row)) for row in range(len(table))]
    assert len(found) == len(set(found))
    assert set(found) == expected


def filled_levels(placement):
    """Parts by the name of the dimension; where one level alone joins anything it may be called the network."""
    return frozenset(("leaf" if name == "network" else name, factors) for name, factors in placement.parts)


@given(whereabouts())
def test_each_axis_has_its_columns_as_one_layout_has(case):
    on, where = case
    made = machine(on)
    table = agreeing(str(where), made)
    for row in {0, len(table) // 2, len(table) - 1}:
        placement = table.placement(row)
        degrees = {axis: int(table.columns[axis][row]) for axis in AXES}
        assert prod(degrees.values()) == made.chips
        assert members(placement, degrees, made) == {name: column[row] for name, column in table.columns.items()}
        assert str(parse_placement(str(placement))) == str(placement)


@given(whereabouts(), st.data())
def test_given_degrees_leave_the_splits_that_have_them(case, data):
    on, where = case
    table = agreeing(str(where), machine(on))
    row = data.draw(st.integers(0, len(table) - 1))
    degrees = {axis: int(table.columns[axis][row]) for axis in AXES}
    found = agreeing(str(where), machine(on), degrees)
    wanted = np.all([table.columns[axis] == degrees[axis] for axis in AXES], axis=0)
    assert len(found) == wanted.sum()
    assert all((found.columns[axis] == degrees[axis]).all() for axis in AXES)


@given(whereabouts())
def test_what_is_printed_is_read_back(case):
    _, where = case
    assert says_where(str(where))
    assert parse_whereabouts(str(where)) == where
    assert parse_whereabouts(str(where).replace(",", " ")) == where


@given(st.text(max_size=60) | st.from_regex(r"(tp|fsdp|x):[a-z+,. 0-9:]{1,30}", fullmatch=True))
def test_any_text_is_read_or_an_input_error(text):
    if not says_where(text):
        return
    try:
        agreeing(text, machine("tpu-v5p:4x4x8"))
    except InputError:
        return


@pytest.mark.parametrize("text", ["x:tp4.dp4/y:dp20", "domain:tp8/network:dp32", "tp-dp-pp", "best", "jax", "", "x:tp"])
def test_other_ways_of_writing_a_placement_are_told_apart(text):
    assert not says_where(text)


@pytest.mark.parametrize(
    ("on", "text", "expected"),
    [
        ("tpu-v5p:4x4x8", "tp:x cp:y fsdp:z", ["x:tp4/y:cp4/z:dp8"]),
        ("tpu-v5p:4x4x8", "tp:x,fsdp:yz", ["x:tp4/y:dp4/z:dp8"]),
        ("tpu-v5p:4x4x8", "data:zy tp:x", ["x:tp4/y:dp4/z:dp8"]),
        ("tpu-v5p:4x4x4", "tp:x pp:x dp:yz", ["x:pp4/y:dp4/z:dp4", "x:tp2.pp2/y:dp4/z:dp4", "x:tp4/y:dp4/z:dp4"]),
        ("tpu-v5p:4x4x4", "pp:x tp:x dp:yz", ["x:tp4/y:dp4/z:dp4", "x:pp2.tp2/y:dp4/z:dp4", "x:pp4/y:dp4/z:dp4"]),
        ("dgx-h100:512", "tp:domain,dp:leaf,pp:spine", ["domain:tp8/leaf:dp32/spine:pp2"]),
        ("dgx-h100:512", "tp:domain dp:network", ["domain:tp8/network:dp64"]),
        ("dgx-h100:512", "tp:domain dp:spine", ["domain:tp8/network:dp64"]),
        ("dgx-h100:64", "tp:domain dp:leaf", ["domain:tp8/leaf:dp8"]),
        ("dgx-h100:8", "tp:domain", ["domain:tp8"]),
    ],
)
def test_splits_by_hand(on, text, expected):
    assert written(text, on) == expected


def test_slices_are_a_dimension_of_a_torus():
    assert written("tp:x fsdp:yz+slices", "tpu-v5p:4x4x4", 2) == ["x:tp4/y:dp4/z:dp4/slices:dp2"]
    with pytest.raises(InputError, match=r"slices joins 2, .* such as tp:x,fsdp:yz\+slices$"):
        written("tp:x fsdp:yz", "tpu-v5p:4x4x4", 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tp:x", "y joins 4, and no axis lies there; name every dimension, such as tp:x,dp:yz$"),
        ("tp:x fsdp:y", "z joins 8, .* such as tp:x,fsdp:yz$"),
        ("tp:X,fsdp:yz", "is not a dimension and its factors; expected an order .* such as tp:x,fsdp:yz$"),
        ("x:tp,y:dp,z:dp", "is not a dimension and its factors; expected an order .* such as tp:x,fsdp:yz$"),
        ("tp:w fsdp:xyz", "unknown dimension in a placement 'w': choose from x, y, z"),
        ("ep:x tp:yz", "unknown axis in a placement 'ep'"),
        ("tpp:x dp:yz", "unknown axis in a placement 'tpp'.*tp"),
        ("tp:x tp:y fsdp:z", "tp is named twice; write tp:xy"),
        ("tp:x data:y fsdp:z", "fsdp and data are the same axis; write data:yz"),
        ("tp:xx fsdp:yz", "tp names x twice; write tp:x$"),
        ("tp: x", "'tp:' is not an axis and the dimensions"),
        ("tp:x+ fsdp:yz", "'x[+]' does not name dimensions"),
        ("tp:x/fsdp:yz", "is not an axis and the dimensions"),
        ("tp:" + "x" * 400, "longer than 300"),
    ],
)
def test_what_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        reached(text, machine("tpu-v5p:4x4x8"))


def test_degrees_that_no_split_has_are_answered_with_the_nearest():
    with pytest.raises(InputError, match="cannot give tp=2 dp=64 on tpu-v5p:4x4x8; the nearest degrees: tp=4 dp=32"):
        agreeing("tp:x,fsdp:yz", machine("tpu-v5p:4x4x8"), {"tp": 2, "dp": 64})


def test_several_splits_are_not_chosen_from_without_a_search():
    degrees = {"tp": 4, "dp": 32}
    assert members("tp:x,fsdp:yz", degrees, machine("tpu-v5p:4x4x8"))["tp_x"] == 4
    with pytest.raises(InputError, match="3 placements agree"):
        members("tp:xy,fsdp:xyz", degrees, machine("tpu-v5p:4x4x8"))


def test_limits_of_a_search_do_not_hold_for_what_was_asked():
    table = reached("tp:xyz", machine("tpu-v5p:4x4x8"), limits={"tp": 16})
    assert table.columns["tp"].tolist() == [128]


def test_every_word_stands_for_an_axis():
    assert set(WORDS) == {*AXES, *OTHER_WORDS}
    for word, other in product(WORDS, AXES):
        if OTHER_WORDS.get(word, word) != other:
            assert len(written(f"{word}:x,{other}:yz", "tpu-v5p:4x4x8")) == 1


def test_what_is_said_to_do_does():
    with pytest.raises(InputError, match="no axis lies there") as caught:
        reached("tp:x", machine("tpu-v5p:4x4x8", 2))
    would_do = str(caught.value).rpartition("such as ")[2]
    assert would_do == "tp:x,dp:yz+slices"
    assert len(reached(would_do, machine("tpu-v5p:4x4x8", 2))) == 1


def test_the_network_is_among_the_nearest_names():
    with pytest.raises(InputError, match="'netwrok': did you mean network"):
        reached("tp:domain,dp:netwrok", machine("dgx-h100:64"))
