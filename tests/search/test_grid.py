"""The search over all layouts at once against one layout at a time."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.catalog.resolve import resolve_model
from costmodel.search.candidates import Candidates, candidates, only
from costmodel.search.evaluate import evaluate
from costmodel.search.grid import place_of, search
from costmodel.search.layout import CONTEXTS, parse_layout
from costmodel.search.nearest import nearest_legal
from costmodel.search.workload import Workload
from costmodel.studies.estimate import estimate
from costmodel.topology.grammar import AXES as DEGREES
from tests.equations.training.drawn import CATALOG, Case, decoder, machine, models

few = settings(max_examples=settings.default.max_examples // 4)
MACHINES = (
    ("dgx-h100:8", 1),
    ("dgx-h100:24", 1),
    ("meta-roce-24k:64", 1),
    ("gb200-nvl72:16", 1),
    ("mi300x-cluster:16", 1),
    ("tpu-v5e:4x4", 1),
    ("tpu-v5p:2x2x4", 1),
    ("tpu-v6e:2x4", 2),
    ("tpu-v5p:4x4x12", 1),
)
FEW = Candidates(
    micro_batches=(1, 2),
    schedules=(("1f1b", 1), ("interleaved", 2), ("interleaved", 3)),
    cp_types=CONTEXTS,
    most_cp=2,
)


@st.composite
def drawn(draw):
    where = machine(*draw(st.sampled_from(MACHINES)))
    model = draw(models(draw(st.sampled_from((1, 2, 4, 6))), layers=draw(st.integers(1, 12))))
    length = 2 ** draw(st.integers(7, 12))
    workload = Workload(where, model, length, where.chips * draw(st.integers(1, 4)))
    return Case(workload, parse_layout("", where.chips))


def placements(grid, index):
    """Every placement of the degrees at a position."""
    rows = grid.order[np.flatnonzero(grid.rows_of == index[-1])]
    return [str(grid.placed.placement(int(row))) for row in rows]


@few
@given(drawn(), st.data())
def test_every_point_is_what_one_answer_says(case, data):
    grid = search(case.workload, CATALOG, FEW)
    index = tuple(data.draw(st.integers(0, size - 1)) for size in grid.step_time.shape)
    found = [evaluate(case.workload, grid.layout(index, text), CATALOG) for text in placements(grid, index)]
    assert {one["legal"] for one in found} == {int(grid.legal[index])}
    for quantity in ("allocated", "device_used"):
        assert {one[quantity] for one in found} == {found[0][quantity]}
        told = found[0][quantity] if grid.legal[index] else np.inf
        assert getattr(grid, quantity)[index] == pytest.approx(told, rel=1e-12)
    least = min(one["step_time"] for one in found) if grid.legal[index] else np.inf
    assert grid.step_time[index] == pytest.approx(least, rel=1e-12)


@few
@given(drawn(), st.data())
def test_the_placement_settled_on_is_the_fastest(case, data):
    grid = search(case.workload, CATALOG, FEW)
    legal = np.argwhere(grid.legal)
    if not len(legal):
        return
    index = tuple(map(int, legal[data.draw(st.integers(0, len(legal) - 1))]))
    settled = grid.settled(index)
    assert settled.placement in placements(grid, index)
    assert evaluate(case.workload, settled, CATALOG)["step_time"] == pytest.approx(grid.step_time[index], rel=1e-12)


@few
@given(drawn())
def test_what_was_searched_is_legal_or_rejected_by_one_rule(case):
    grid = search(case.workload, CATALOG, FEW)
    assert grid.searched == int(np.prod(FEW.shape)) * len(grid.placed)
    assert grid.count(grid.legal) + sum(grid.broken.values()) == grid.searched
    assert grid.count(grid.fits) <= grid.count(grid.legal)
    assert np.isfinite(grid.step_time[grid.legal]).all() and np.isinf(grid.step_time[~grid.legal]).all()
    products = grid.degrees["tp"] * grid.degrees["cp"] * grid.degrees["pp"] * grid.degrees["dp"]
    assert (products == case.workload.machine.chips).all()


@pytest.mark.parametrize(
    ("on", "slices"), [("dgx-h100:8", 1), ("dgx-a100:16", 1), ("tpu-v5e:2x4", 1), ("tpu-v5p:2x2x2", 2)]
)
def test_the_best_is_the_best_of_all_tried_one_by_one(on, slices):
    workload = Workload(machine(on, slices), decoder(layers=4, vocabulary=200_000), 2048, 8)
    grid = search(workload, CATALOG, candidates(4, 8, 2048))
    least = np.inf
    for found in np.argwhere(grid.legal):
        index = tuple(map(int, found))
        for text in placements(grid, index):
            values = evaluate(workload, grid.layout(index, text), CATALOG)
            if values["margin"] >= 0:
                least = min(least, values["step_time"])
    told = estimate(workload, grid.settled(grid.best(grid.fits, grid.step_time, 1)[0]), CATALOG, 10**9)
    assert told.step_time_s == pytest.approx(least, rel=1e-12)
    assert told.fits == "yes"


def test_rules_are_counted_as_one_by_one():
    workload = Workload(machine("dgx-h100:8"), decoder(layers=3, heads=6, kv_heads=3), 1020, 6)
    grid = search(workload, CATALOG, FEW)
    broken = dict.fromkeys(grid.broken, 0)
    legal = 0
    for point in product(*map(range, FEW.shape)):
        for row in range(len(grid.placed)):
            degrees = {name: grid.placed.columns[name][row] for name in DEGREES}
            layout = FEW.layout(point, degrees, str(grid.placed.placement(row)))
            values = evaluate(workload, layout, CATALOG)
            standing = [value for name, value in values.items() if name.startswith("rule_")]
            legal += min(standing) > 0
            first = next((rule for rule, value in zip(broken, standing, strict=True) if value <= 0), None)
            if first:
                broken[first] += 1
    assert (legal, broken) == (grid.count(grid.legal), grid.broken)


@few
@given(drawn(), st.sampled_from(("step_time", "device_used")), st.integers(1, 30))
def test_the_best_few_are_the_smallest_in_order(case, key, most):
    grid = search(case.workload, CATALOG, FEW)
    values = getattr(grid, key)
    found = [values[index] for index in grid.best(grid.legal, values, most)]
    assert found == sorted(found)
    smallest = np.sort(np.where(grid.legal, values, np.inf).ravel())[:most]
    assert found == [value for value in smallest.tolist() if np.isfinite(value)]


@few
@given(drawn(), st.data())
def test_a_legal_layout_is_nearest_to_itself(case, data):
    grid = search(case.workload, CATALOG, FEW)
    legal = np.argwhere(grid.legal)
    if not len(legal):
        assert nearest_legal(grid, grid.layout((0, 0, 0, 0, 0, 0, 0, 0), "tp-dp-pp")) is None
        return
    index = tuple(map(int, legal[data.draw(st.integers(0, len(legal) - 1))]))
    wanted = grid.settled(index)
    assert replace(nearest_legal(grid, wanted), placement=wanted.placement) == wanted


@few
@given(drawn(), st.data())
def test_the_nearest_legal_layout_is_legal_and_can_be_placed(case, data):
    grid = search(case.workload, CATALOG, FEW)
    index = tuple(data.draw(st.integers(0, size - 1)) for size in grid.step_time.shape)
    near = nearest_legal(grid, grid.layout(index, "tp-dp-pp"))
    assert (near is None) == (not grid.legal.any())
    if near is not None:
        assert evaluate(case.workload, near, CATALOG)["legal"] == 1


def test_one_degree_apart_is_near():
    workload = Workload(machine("dgx-h100:64"), decoder(layers=32), 4096, 64)
    grid = search(workload, CATALOG, candidates(32, 64, 4096))
    wanted = replace(grid.settled(grid.best(grid.legal, grid.step_time, 1)[0]), tp=3, pp=4, dp=6, zero=1)
    near = nearest_legal(grid, wanted)
    assert near.pp == 4 and near.zero == 1 and near.tp in (2, 4) and near.tp * near.dp == 16


def test_progress_is_told_up_to_the_end():
    shares = []
    workload = Workload(machine("dgx-h100:512"), decoder(layers=16), 4096, 512)
    search(workload, CATALOG, candidates(16, 512, 2048), shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_candidates_of_one_layout_are_that_layout():
    workload = Workload(machine("dgx-h100:8"), decoder(), 1024, 8)
    grid = search(workload, CATALOG, FEW)
    layout = grid.layout((1, 2, 3, 1, 1, 0, 0, 0), "tp-dp-pp")
    assert only(layout).shape == (1, 1, 1, 1, 1, 1, 1)
    degrees = {"tp": layout.tp, "cp": layout.cp, "pp": layout.pp, "dp": layout.dp}
    assert only(layout).layout((0, 0, 0, 0, 0, 0, 0), degrees, "tp-dp-pp") == layout


@pytest.mark.parametrize(("layers", "expected"), [(126, {2, 3, 4, 6, 7, 8, 9, 14, 16}), (7, {3, 7, 9}), (1, {3})])
def test_chunks_divide_the_layers_or_the_layers_and_two(layers, expected):
    assert {v for schedule, v in candidates(layers, 64, 2048).schedules if schedule == "interleaved"} == expected


@given(st.integers(1, 5000))
def test_micro_batches_are_powers_of_two_that_divide_the_batch(batch):
    sizes = candidates(8, batch, 2048).micro_batches
    assert sizes[0] == 1 and all(batch % size == 0 and size & (size - 1) == 0 for size in sizes)
    assert sizes[-1] == 64 or batch % (2 * sizes[-1]) or 2 * sizes[-1] > batch


@few
@given(drawn(), st.sampled_from(("megatron", "llama3", "jax", "jax-split", "tp-pp-dp-cp")), st.data())
def test_a_search_of_what_a_name_reaches_is_a_part_of_the_whole(case, name, data):
    """Each tuple of degrees once, no faster than the best, and as one layout with that name is answered."""
    everything, some = (search(case.workload, CATALOG, FEW, placement=by) for by in ("best", name))
    assert len(some.order) == some.step_time.shape[-1]
    index = tuple(data.draw(st.integers(0, size - 1)) for size in some.step_time.shape)
    one = evaluate(case.workload, some.layout(index, name), CATALOG)
    assert one["legal"] == int(some.legal[index])
    if some.legal[index]:
        tuples = np.array([everything.degrees[axis] for axis in DEGREES])
        wanted = np.array([some.degrees[axis][index[-1]] for axis in DEGREES])
        (same,) = np.flatnonzero((tuples == wanted[:, None]).all(axis=0))
        assert some.step_time[index] == pytest.approx(one["step_time"], rel=1e-12)
        if name != "tp-pp-dp-cp":  # the whole has cp inside pp on every dimension
            assert some.step_time[index] >= everything.step_time[(*index[:-1], same)] * (1 - 1e-12)


def test_of_equals_the_one_with_less_memory_comes_first():
    workload = Workload(machine("dgx-h100:8"), decoder(layers=12), 1024, 16)
    grid = search(workload, CATALOG, FEW)
    found = [grid.device_used[index] for index in grid.best(grid.legal, np.zeros(grid.legal.shape), 50)]
    assert found == sorted(np.where(grid.legal, grid.device_used, np.inf).ravel())[:50]


def test_the_nearest_legal_layout_of_a_torus_that_the_default_order_cannot_fill():
    """Six ranks along an axis of four: the hint names a placement that can be had."""
    workload = Workload(machine("tpu-v5p:4x4x12"), decoder(heads=6, kv_heads=6, ffn_size=3072), 1020, 192)
    grid = search(workload, CATALOG, candidates(4, 192, 1020))
    near = nearest_legal(grid, parse_layout("tp=6 zero=1 sp=1 mbs=5", 192))
    assert near.tp == 6
    assert evaluate(workload, near, CATALOG)["legal"] == 1


@pytest.mark.parametrize(
    ("length", "most"), [(2048, 1), (8192, 1), (16383, 1), (16384, 2), (32768, 4), (131072, 16), (2**20, 16)]
)
def test_context_parallelism_is_tried_on_long_sequences_alone(length, most):
    tried = candidates(8, 64, length)
    assert tried.limits["cp"] == most
    assert tried.cp_types == (("ring",) if most == 1 else ("ring", "all-gather", "ulysses", "usp"))


def test_a_long_sequence_is_shared_where_that_is_fastest():
    """32 heads over 64 chips: the one sequence of a data-parallel rank at a time leaves tp and cp, and tp talks more."""
    workload = Workload(machine("dgx-h100:64"), decoder(layers=32, hidden_size=4096, heads=32, kv_heads=8), 131072, 16)
    grid = search(workload, CATALOG, candidates(32, 16, 131072))
    best = grid.settled(grid.best(grid.fits, grid.step_time, 1)[0])
    assert best.cp > 1 and best.tp * best.cp * best.pp * best.dp == 64
    told = evaluate(workload, best, CATALOG)
    assert told["legal"] == 1
    assert told["step_time"] == pytest.approx(grid.step_time[grid.best(grid.fits, grid.step_time, 1)[0]], rel=1e-12)


@pytest.mark.parametrize(
    ("model", "on", "recomputes"),
    [
        (
            "llama-3-8b",
            "dgx-h100:16",
            ("none", "core_attn+mlp", "layernorm+moe_act+mlp/2", "full-uniform-3", "full-block-1"),
        ),
        ("deepseek-v2-lite", "dgx-h100:16", ("mla_up_proj", "layernorm+moe", "core_attn+mlp+shared_experts", "moe/2")),
        ("llama-3-8b", "tpu-v5e:4x4", ("full", "mlp", "full-block-2")),
    ],
)
def test_modules_and_methods_are_searched_as_one_answer_says(model, on, recomputes):
    case = Case(Workload(machine(on), resolve_model(model, CATALOG), 4096, 32), parse_layout("", 16))
    schedules = (("1f1b", 1), ("interleaved", 2), ("zb-h1", 1))
    tried = replace(FEW, recomputes=recomputes, schedules=schedules, cp_types=CONTEXTS[:1], most_cp=1)
    tried = replace(tried, experts=(1, 4) if case.workload.has_experts else (1,))
    grid = search(case.workload, CATALOG, tried)
    legal = np.argwhere(grid.legal)
    assert {tried.recomputes[index[3]] for index in legal} == set(recomputes)
    for index in map(tuple, legal[:: max(1, len(legal) // 60)]):
        found = evaluate(case.workload, grid.settled(index), CATALOG)
        assert grid.step_time[index] == pytest.approx(found["step_time"], rel=1e-12)
        assert grid.allocated[index] == pytest.approx(found["allocated"], rel=1e-12)


def test_rows_that_searches_try_are_the_same_beside_rare_ones():
    """The equations that searches are spared change nothing of what they try."""
    workload = Workload(machine("dgx-h100:16"), resolve_model("llama-3-8b", CATALOG), 4096, 32)
    plain = replace(FEW, cp_types=CONTEXTS[:1], most_cp=1)
    usual, beside = (
        search(workload, CATALOG, replace(plain, recomputes=(*plain.recomputes, *more))) for more in ((), ("mlp",))
    )
    assert not plain.is_rare
    shared = [slice(None)] * 3 + [slice(len(plain.recomputes))]
    for name in ("step_time", "allocated", "device_used", "legal"):
        np.testing.assert_allclose(getattr(beside, name)[tuple(shared)], getattr(usual, name), rtol=1e-12)


def interrupting(_):
    raise KeyboardInterrupt


def test_an_interrupted_search_keeps_what_it_found_so_far(monkeypatch):
    monkeypatch.setattr("costmodel.runtime.BLOCK", 20_000)
    workload = Workload(machine("dgx-h100:4096"), decoder(layers=96), 4096, 1024)
    tried = candidates(96, 1024, 4096)
    whole = search(workload, CATALOG, tried)
    found = search(workload, CATALOG, tried, interrupting, so_far=True)
    assert 0 < found.share < 1 == whole.share
    assert 0 < found.count(found.legal) < whole.count(whole.legal)
    assert not (found.legal & ~whole.legal).any()
    assert (found.step_time[found.legal] == whole.step_time[found.legal]).all()
    with pytest.raises(KeyboardInterrupt):
        search(workload, CATALOG, tried, interrupting)


@given(st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=3, max_size=3))
def test_slices_name_the_same_places_as_lists_of_rows(kept):
    rows = [np.array(sorted(some)) for some in kept]
    numbers = np.arange(7**3).reshape(7, 7, 7)
    assert numbers[place_of(*rows)].tolist() == numbers[np.ix_(*rows)].tolist()
