"""Placements as they are written: read, printed, and refused with what would do."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.topology.grammar import Order, Placement, fill, filled, parse_placement
from costmodel.topology.machine import parse_machine
from tests.topology.hand_made import CATALOG

AXES = ("tp", "cp", "dp", "pp")

factors = st.lists(
    st.tuples(st.sampled_from(AXES), st.integers(2, 4096)), min_size=1, max_size=4, unique_by=lambda factor: factor[0]
).map(tuple)
written_out = st.lists(
    st.tuples(st.sampled_from(["domain", "leaf", "spine", "network", "x", "y", "z", "slices"]), factors),
    min_size=1,
    max_size=4,
    unique_by=lambda part: part[0],
).map(lambda parts: Placement(tuple(parts)))
orders = st.permutations(AXES).flatmap(lambda axes: st.integers(1, 4).map(lambda n: Order(tuple(axes[:n]))))


def machine(on, slices=1):
    return parse_machine(on, slices, CATALOG)


@given(written_out | orders)
def test_what_is_printed_is_read_back(placement):
    assert parse_placement(str(placement), AXES) == placement


@given(st.text(max_size=60) | st.from_regex(r"[xyz]:[tdp0-9./:-]{1,30}", fullmatch=True))
def test_any_text_is_a_placement_or_an_input_error(text):
    try:
        placement = parse_placement(text)
    except InputError:
        return
    assert parse_placement(str(placement) or text) == placement


def test_factors_of_one_say_nothing():
    assert str(parse_placement("x:tp1.dp16/y:pp1")) == "x:dp16"


def test_levels_that_are_left_out_join_the_next():
    made = machine("dgx-h100:512")
    degrees = {"tp": 8, "dp": 64}
    for text, joined in (
        ("domain:tp8/leaf:dp32/spine:dp2", [["domain"], ["leaf"], ["spine"]]),
        ("domain:tp8/spine:dp64", [["domain"], ["leaf", "spine"]]),
        ("domain:tp8/network:dp64", [["domain"], ["leaf", "spine"]]),
    ):
        runs = filled(made, parse_placement(text), degrees)
        assert [[dimension.name for dimension in run.dimensions] for run in runs] == joined


def test_levels_of_one_block_need_no_name():
    runs = filled(machine("dgx-h100:64"), parse_placement("domain:tp8/leaf:dp8"), {"tp": 8, "dp": 8})
    assert [run.factors for run in runs] == [(("tp", 8),), (("dp", 8),), ()]


@pytest.mark.parametrize(
    ("on", "order", "degrees", "expected"),
    [
        ("dgx-h100:16384", "tp-dp-pp", (8, 128, 16), "domain:tp8/leaf:dp32/spine:dp4.pp16"),
        ("dgx-h100:512", "tp-dp-pp", (2, 256, 1), "domain:tp2.dp4/leaf:dp32/spine:dp2"),
        ("tpu-v5p:16x20x28", "tp-dp-pp", (4, 2240, 1), "x:tp4.dp4/y:dp20/z:dp28"),
        ("tpu-v5p:4x4x8", "tp-pp-dp", (8, 4, 4), "x:tp4/y:tp2.pp2/z:pp2.dp4"),
        ("tpu-v5p:4x4x4", "dp", (1, 64, 1), "x:dp4/y:dp4/z:dp4"),
    ],
)
def test_filling_in_an_order(on, order, degrees, expected):
    degrees = dict(zip(("tp", "dp", "pp"), degrees, strict=True))
    assert str(fill(machine(on), order.split("-"), degrees)) == expected


@given(
    st.sampled_from(["dgx-h100:512", "gb200-nvl72:1024", "tpu-v5p:8x8x16", "tpu-v5p:16x20x28"]),
    st.permutations(["tp", "dp", "pp"]),
    st.data(),
)
def test_a_filled_order_uses_all_chips_and_gives_each_axis_its_degree(on, order, data):
    made = machine(on)
    tp = data.draw(st.sampled_from([n for n in (1, 2, 4, 8, 16) if made.chips % n == 0]))
    pp = data.draw(st.sampled_from([n for n in (1, 2, 4, 5, 7) if made.chips % (tp * n) == 0]))
    degrees = {"tp": tp, "dp": made.chips // tp // pp, "pp": pp}
    try:
        placement = fill(made, order, degrees)
    except InputError:
        return
    assert {axis: placement.degrees().get(axis, 1) for axis in order} == degrees
    assert prod(prod(size for _, size in run.factors) for run in filled(made, placement, degrees)) == made.chips


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected an order"),
        ("tp-xx", "unknown axis in a placement 'xx'"),
        ("tp-tp-dp", "write tp-dp"),
        ("tp dp", "not understood"),
        ("x:tp0", "such as tp4"),
        ("x:tp4,dp4", "such as tp4"),
        ("x:4tp", "such as tp4"),
        ("x:tp4/", "not a dimension"),
        ("X:tp4", "not a dimension"),
        ("x:ep4", "unknown axis in a placement 'ep'"),
        ("x:tp4.dp2.tp2", "tp stands twice"),
        ("x:tp4/x:dp4", "x is filled twice"),
        ("x:tp" + "9" * 500, "expected an order"),
        ("x:tp99999999", "such as tp4"),
    ],
)
def test_what_is_not_a_placement(text, said):
    with pytest.raises(InputError, match=said):
        parse_placement(text)


@pytest.mark.parametrize(
    ("on", "text", "degrees", "advised"),
    [
        ("tpu-v5p:16x20x28", "x:tp4.dp5/y:dp20/z:dp28", (4, 2240, 1), "x:tp4.dp4/y:dp20/z:dp28"),
        ("tpu-v5p:16x20x28", "x:tp4.dp4/y:dp20", (4, 2240, 1), "x:tp4.dp4/y:dp20/z:dp28"),
        ("tpu-v5p:16x20x28", "y:dp20/x:tp4.dp4/z:dp28", (4, 2240, 1), "x:tp4.dp4/y:dp20/z:dp28"),
        ("tpu-v5p:16x20x28", "x:tp4.dp4/y:dp20/z:dp28", (8, 1120, 1), "x:tp8.dp2/y:dp20/z:dp28"),
        ("dgx-h100:512", "domain:tp8/leaf:dp32", (8, 64, 1), "domain:tp8/leaf:dp32/spine:dp2"),
        ("dgx-h100:512", "domain:tp16/leaf:dp32", (16, 32, 1), "domain:tp8/leaf:tp2.dp16/spine:dp2"),
    ],
)
def test_a_placement_that_does_not_fit_is_answered_with_one_that_does(on, text, degrees, advised):
    degrees = dict(zip(("tp", "dp", "pp"), degrees, strict=True))
    with pytest.raises(InputError, match=f"write {advised}") as caught:
        filled(machine(on), parse_placement(text), degrees)
    assert filled(machine(on), parse_placement(str(caught.value).rsplit(" ", maxsplit=1)[1]), degrees)


@pytest.mark.parametrize(
    ("on", "text", "said"),
    [
        ("dgx-h100:64", "domain:tp8", "leaf joins 8 and nothing makes 1; write domain:tp8/leaf:dp8"),
        ("dgx-h100:512", "domain:tp8", "network joins 64 and nothing makes 1"),
        ("dgx-h100:512", "domain:tp8/leaf:dp32", "spine joins 2 and nothing makes 1"),
    ],
)
def test_levels_that_join_nothing_are_not_spoken_of(on, text, said):
    made = machine(on)
    with pytest.raises(InputError, match=said):
        filled(made, parse_placement(text), {"tp": 8, "dp": made.chips // 8})


@pytest.mark.parametrize(
    ("on", "text", "said"),
    [
        ("dgx-h100:512", "w:tp8", "unknown dimension in a placement 'w': choose from domain, leaf, spine"),
        ("dgx-h100:64", "w:tp8", "choose from domain, leaf$"),
        ("dgx-h100:512", "domain:tp8/leaf:dp32/network:dp2", "network stands for leaf, spine"),
        ("dgx-h100:64", "domain:tp8/leaf:dp4/network:dp2", "network stands for leaf;"),
        ("tpu-v5p:4x4x4", "x:tp4/network:dp16", "unknown dimension"),
        ("workstation:4", "domain:tp2/network:dp2", "unknown dimension"),
    ],
)
def test_names_that_a_machine_does_not_have(on, text, said):
    with pytest.raises(InputError, match=said):
        filled(machine(on), parse_placement(text), {})


@pytest.mark.parametrize(
    ("order", "degrees", "said"),
    [
        ("dp-pp", {"tp": 8, "dp": 64, "pp": 1}, "write dp-pp-tp"),
        ("tp-dp", {"tp": 8, "dp": 60, "pp": 1}, "dp=64 fits"),
        ("tp-dp", {"tp": 3, "dp": 60, "pp": 1}, "makes 180 ranks, and dgx-h100:512 has 512 chips"),
    ],
)
def test_orders_that_do_not_fit_the_degrees(order, degrees, said):
    with pytest.raises(InputError, match=said):
        fill(machine("dgx-h100:512"), order.split("-"), degrees)


@pytest.mark.parametrize(("tp", "said"), [(8, "tp=4 fits"), (7, "write the placement out")])
def test_an_order_that_ends_inside_an_axis(tp, said):
    with pytest.raises(InputError, match=said):
        fill(machine("tpu-v5p:20x16x28"), ("tp", "dp"), {"tp": tp, "dp": 8960 // tp})
