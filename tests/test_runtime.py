"""What generated modules call: whole-number functions to the last bit, tables with repeated rows, blocks."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel import runtime, runtime_arrays
from costmodel.errors import EquationError
from costmodel.runtime import Run, Table
from costmodel.symbolic import Axis, Chapter, bytes_, column, count, equation, numpy_module, total
from costmodel.symbolic import given as given_
from costmodel.symbolic.write import load

POWERS = [2**k for k in range(41)]
NEAR_POWERS = [n for power in POWERS for n in (power - 1, power, power + 1) if n >= 1]
counts = st.integers(1, 2**40) | st.sampled_from(NEAR_POWERS)


@given(counts)
def test_logarithms_are_exact(n):
    up, down = runtime.ceil_log2(n), runtime.floor_log2(n)
    assert 2**up >= n > 2 ** (up - 1) or (n == 1 and up == 0)
    assert 2**down <= n < 2 ** (down + 1)


def test_logarithms_at_and_beside_every_power_of_two_up_to_2_to_the_40():
    for k, power in enumerate(POWERS):
        assert runtime.ceil_log2(power) == runtime.floor_log2(power) == k
        assert runtime.ceil_log2(power + 1) == k + 1
        assert runtime.floor_log2(2 * power - 1) == k


@pytest.mark.parametrize(
    ("single", "many"),
    [
        (runtime.ceil_log2, runtime_arrays.ceil_log2s),
        (runtime.floor_log2, runtime_arrays.floor_log2s),
        (runtime.ones_below, runtime_arrays.ones_belows),
        (runtime.nearest_whole, runtime_arrays.nearest_wholes),
    ],
)
def test_the_versions_for_arrays_agree_to_the_last_bit(single, many):
    numbers = np.array([NEAR_POWERS, [n + 0.5 for n in NEAR_POWERS]])
    assert many(numbers).tolist() == [[single(n) for n in line] for line in numbers.tolist()]


@given(st.integers(0, 3000))
def test_ones_below_counts_ones(n):
    assert runtime.ones_below(n) == sum(i.bit_count() for i in range(n))
    assert runtime_arrays.ones_belows(np.array([float(n)])).tolist() == [runtime.ones_below(n)]


@given(st.integers(0, 40))
def test_ones_below_a_power_of_two_is_half_of_all_bits(k):
    assert runtime.ones_below(2**k) == k * 2**k // 2


def test_halves_round_to_even_in_both_versions():
    halves = [0.5, 1.5, 2.5, 3.5]
    assert (
        [runtime.nearest_whole(x) for x in halves]
        == runtime_arrays.nearest_wholes(np.array(halves)).tolist()
        == [0, 2, 2, 4]
    )


@given(st.integers(1, 12), st.integers(0, 12), st.integers(0, 12))
def test_chance_that_none_is_drawn_by_counting(population, marked, draws):
    marked, draws = min(marked, population), min(draws, population)
    expected = Fraction(comb(population - marked, draws), comb(population, draws))
    assert runtime.none_drawn(Fraction(population), marked, draws) == expected
    several = runtime_arrays.none_drawns(
        np.array([float(population)] * 2), np.array(float(marked)), np.array([draws, 0.0])
    )
    assert np.allclose(several, [float(expected), 1], rtol=1e-12)


columns = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(st.integers(1, 4), min_size=width, max_size=width), min_size=1, max_size=30)
)


@given(columns)
def test_unique_rows_hold_each_combination_once(lines):
    table = Table({f"c{i}": values for i, values in enumerate(zip(*lines, strict=True))})
    representatives, number = table.unique([f"c{i}" for i in range(len(lines[0]))])
    seen = [tuple(lines[i]) for i in representatives]
    assert len(set(seen)) == len(seen)
    assert set(seen) == {tuple(line) for line in lines}
    assert [seen[i] for i in number] == [tuple(line) for line in lines]


def test_many_columns_do_not_overflow_the_code_of_a_row():
    rng = np.random.default_rng(1)
    columns = {f"c{i}": rng.integers(0, 1000, 1000) for i in range(30)}
    representatives, number = Table(columns).unique(list(columns))
    assert len(representatives) == 1000
    assert sorted(number.tolist()) == list(range(1000))


def test_no_columns_have_one_row():
    representatives, number = Table({"a": [1, 2, 3]}).unique([])
    assert representatives.tolist() == [0]
    assert number.tolist() == [0, 0, 0]


KIND = Axis("kind", ("dense", "sparse"))


class Layers(Chapter):
    """Work that depends on some columns early and on all of them late."""

    tp = column(count, "a degree")
    dp = column(count, "another")
    width = given_(bytes_, "bytes by kind", KIND)
    price = given_(count, "a factor")

    shard = equation(bytes_, total(width / tp, KIND), "depends on tp alone")
    whole = equation(bytes_, shard * price / dp, "depends on both")


LEVELS = {"by_tp": ["tp"], "layouts": ["tp", "dp"]}


def layers(wanted=("whole",)):
    return load(numpy_module("layers", Layers.system, wanted, [KIND], LEVELS), "layers")


TABLE = Table({"tp": [1, 2, 4, 2, 1, 1], "dp": [1, 1, 1, 5, 5, 5]})


@pytest.mark.parametrize("block", [1, 2, 3, 4, 100])
def test_blocks_do_not_show_in_the_answer(block, monkeypatch):
    monkeypatch.setattr(runtime, "BLOCK", block)
    run = Run(layers(), TABLE, {"width": [4, 8], "price": 10}).coarse()
    assert run.values["shard"].ravel().tolist() == [12, 6, 3]
    found = [(rows, block["whole"].ravel().tolist()) for rows, block in run.blocks()]
    assert [i for rows, _ in found for i in range(rows.start, rows.stop)] == list(range(6))
    assert [x for _, values in found for x in values] == [120, 60, 30, 12, 24, 24]
    assert all(rows.stop - rows.start <= block for rows, _ in found)


@given(st.integers(1, 8), st.sets(st.integers(1, 5)))
def test_runs_of_rows_stay_in_one_block(block, others):
    starts = [0, *sorted(others)]
    ends = [*starts[1:], 6]
    longest = max(end - start for start, end in zip(starts, ends, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "BLOCK", block)
        rows = Run(layers(), TABLE, {"width": [4, 8], "price": 10}).coarse().cut(starts)
    assert (rows[0].start, rows[-1].stop) == (0, 6)
    assert [r.start for r in rows[1:]] == [r.stop for r in rows[:-1]]
    assert {r.start for r in rows} <= set(starts)
    assert all(r.stop - r.start <= max(block, longest) for r in rows)


def test_one_number_stands_for_every_row_of_an_axis():
    run = Run(layers(), TABLE, {"width": 6, "price": 10}).coarse()
    assert run.values["shard"].ravel().tolist() == [12, 6, 3]


def test_a_further_leading_dimension_sweeps_an_input():
    run = Run(layers(), TABLE, {"width": [4, 8], "price": np.array([1, 10]).reshape(2, 1, 1)}).coarse()
    ((_, found),) = run.blocks()
    assert found["whole"].shape == (2, 1, 6)
    assert found["whole"][1].ravel().tolist() == [120, 60, 30, 12, 24, 24]


def test_a_column_may_be_one_number_instead():
    run = Run(layers(), Table({"tp": [1, 2]}), {"width": [4, 8], "price": 10, "dp": 2}).coarse()
    ((_, found),) = run.blocks()
    assert found["whole"].ravel().tolist() == [60, 30]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"width": [4, 8]}, "no value was given for the input price"),
        ({"width": [4, 8, 1], "price": 1}, "width was given 3 rows along kind, which has 2"),
        ({"width": [4, 8], "price": [1, 2]}, "price varies along no product axis but was given with 1 dimensions"),
    ],
)
def test_inputs_of_another_shape_are_refused(inputs, said):
    with pytest.raises(EquationError, match=said):
        Run(layers(), TABLE, inputs)


def test_a_quantity_on_a_coarse_level_is_asked_alone():
    run = Run(layers(["shard"]), TABLE, {"width": [4, 8]}).coarse()
    ((rows, found),) = run.blocks()
    assert (rows.start, rows.stop) == (0, 3)
    assert found["shard"].ravel()[run.index("by_tp", "layouts")].tolist() == [12, 6, 3, 6, 12, 12]
