"""`plan`: the best layouts, those that tie, what trades time for memory, what was rejected, and what to do when nothing fits."""

import re
from functools import cache
from itertools import pairwise

import pytest

from costmodel.errors import InputError
from costmodel.search.candidates import candidates
from costmodel.search.grid import search
from costmodel.search.software import Software
from costmodel.search.workload import Workload
from costmodel.studies.differences import why
from costmodel.studies.estimate import TIME_ITEMS
from costmodel.studies.plan import TIE, plan
from costmodel.studies.train import train
from tests.equations.training.drawn import CATALOG, decoder, machine


@cache
def planned(model="llama-3-8b", on="dgx-h100:16", **options):
    return plan(model, on, **{"sequence_length": 4096, "batch": 64, "catalog": CATALOG} | options)


def test_the_best_come_first_fit_and_are_legal():
    answer = planned(top=10)
    assert len(answer.best) == 10
    times = [found.step_time_s for found in answer.best]
    assert times == sorted(times)
    assert {found.fits for found in answer.best} == {"yes"}
    for found in answer.best:
        again = train(
            "llama-3-8b", "dgx-h100:16", layout=str(found.layout), sequence_length=4096, batch=64, catalog=CATALOG
        )
        assert again.estimates[0] == found


def test_train_without_a_layout_takes_the_best_of_the_plan():
    chosen = train("llama-3-8b", "dgx-h100:16", sequence_length=4096, batch=64, catalog=CATALOG)
    assert chosen.estimates[0] == planned().best[0]


def test_ties_are_those_within_five_per_cent():
    answer = planned(top=100)
    best = answer.best[0].step_time_s
    near = sum(found.step_time_s <= best * (1 + TIE) for found in answer.best)
    assert near == min(answer.ties, 100)
    standing = [(row["slower_than_best"], row["tie"]) for row in answer.records()]
    assert all(tie == (slower <= TIE) for slower, tie in standing)
    assert standing[0] == (0, True)


def test_what_was_searched_is_rejected_or_fits():
    answer = planned()
    assert answer.searched == answer.fitting + sum(rejected.count for rejected in answer.rejected)
    assert answer.searched > answer.legal > answer.fitting > 0
    counts = [rejected.count for rejected in answer.rejected]
    assert counts == sorted(counts, reverse=True)
    memory = next(rejected for rejected in answer.rejected if "memory" in rejected.reason)
    assert memory.count == answer.legal - answer.fitting


def test_the_front_trades_time_for_memory():
    answer = planned("llama-3-70b", "dgx-h100:64")
    assert len(answer.front) > 1
    assert answer.front[0].step_time_s == answer.best[0].step_time_s
    for faster, lighter in pairwise(answer.front):
        assert lighter.step_time_s > faster.step_time_s
        assert lighter.device_used_bytes < faster.device_used_bytes
        assert lighter.fits == "yes"


def test_no_layout_that_fits_beats_one_of_the_front_in_both():
    where = machine("dgx-h100:16")
    workload = Workload(where, decoder(layers=24, hidden_size=4096, ffn_size=16384, heads=32, kv_heads=8), 4096, 64)
    grid = search(workload, CATALOG, candidates(24, 64, 4096))
    for found in planned(workload.model).front:
        better = (grid.step_time < found.step_time_s * (1 - 1e-9)) & (grid.device_used < found.device_used_bytes)
        assert not (better & grid.fits).any()


def test_faster_layouts_that_do_not_fit_say_how_much_they_lack():
    answer = planned("llama-3-70b", "dgx-h100:64")
    assert answer.too_big
    for big in answer.too_big:
        assert big.step_time_s < answer.best[0].step_time_s
        assert big.short_bytes > 0


def test_results_hold_what_scripts_were_promised():
    answer = planned()
    for result in answer.results():
        assert {"searched", "legal", "fitting", "search_seconds", "rejected", "step_time_s", "layout"} <= set(result)
        assert {"reason", "count"} == set(result["rejected"][0])
    extras = answer.extras()
    assert {"searched", "rejected", "pareto", "too_big", "ties", "remedy", "notes", "assumptions"} <= set(extras)
    assert extras["remedy"] is None
    assert len(answer.records()) == len(answer.results()) == 5
    assert {row["rank"] for row in answer.long_records()} == {1, 2, 3, 4, 5}
    assert answer.exit_code == 0


def test_nothing_fits_and_what_would_is_told():
    answer = plan("llama-3.1-405b", "dgx-h100:8", batch=64, top=3, catalog=CATALOG)
    assert answer.exit_code == 1
    assert answer.fitting == 0 and answer.ties == 0 and answer.front == () and answer.too_big == ()
    used = [found.device_used_bytes for found in answer.best]
    assert used == sorted(used)
    over, where = re.fullmatch(
        r"nothing fits: the smallest layout is ([\d.]+) GiB over the memory of a chip; (\S+) would hold it",
        answer.remedy,
    ).groups()
    assert float(over) == pytest.approx((used[0] - answer.best[0].capacity_bytes) / 2**30, rel=0.01)
    assert plan("llama-3.1-405b", where, batch=64, top=1, catalog=CATALOG).exit_code == 0
    name, chips = where.split(":")
    with_half = plan("llama-3.1-405b", f"{name}:{int(chips) // 2}", batch=64, top=1, catalog=CATALOG)
    assert with_half.exit_code == 1


def test_where_no_number_of_chips_would_do_something_else_is_proposed():
    answer = plan("llama-3.1-405b", "rtx-4090-workstation", batch=8, top=1, catalog=CATALOG)
    assert answer.exit_code == 1
    assert "a shorter sequence, a smaller model or a chip with more memory would help" in answer.remedy


def test_why_the_best_is_best_adds_up():
    """What it gains less what it pays is by how much it is faster."""
    answer = planned("llama-3-70b", "dgx-h100:64", top=20)
    first = answer.best[0]
    other = next(b for b in answer.best[1:] if (b.layout.tp, b.layout.pp) != (first.layout.tp, first.layout.pp))
    told = why(answer.best)
    assert f"against tp={other.layout.tp} pp={other.layout.pp}" in told
    largest = max(TIME_ITEMS, key=lambda item: abs(other.time[item] - first.time[item]))
    assert TIME_ITEMS[largest] in told


def test_tables_name_the_best_the_others_and_the_rejected():
    titles = [table.title for table in planned().tables()]
    assert titles[0].startswith("llama-3-8b on dgx-h100:16")
    assert {"Fastest layouts", "Time of a step", "Memory of a chip", "Assumptions"} <= set(titles)


@pytest.mark.parametrize("top", [0, -1, 101])
def test_how_many_are_shown_has_bounds(top):
    with pytest.raises(InputError, match=f"--top {top} is out of range: from 1 to 100"):
        planned(top=top)


def test_where_no_layout_is_legal_the_rule_is_named():
    with pytest.raises(InputError, match=r"no layout of drawn is legal on dgx-h100:16 .*most break the rule that"):
        planned(decoder(layers=7, heads=7, kv_heads=7), batch=1)


def test_a_batch_of_tokens_moves_to_where_it_divides_well():
    """61 sequences over 64 chips divide badly; 64 are within a sixteenth of what was asked."""
    answer = plan("llama-3-8b", "dgx-h100:64", sequence_length=4096, batch="250K", catalog=CATALOG)
    assert answer.best[0].global_batch == 64
    assert "batch of 250,000 tokens rounded to 64 sequences of 4,096 = 262,144 tokens" in answer.notes


def test_a_thousand_is_told_from_1024():
    notes = train("llama-3-8b", "dgx-h100:8", layout="tp=8", sequence_length="8k", batch=8, catalog=CATALOG).notes[0]
    assert "sequences of 8,000 tokens, since k is a thousand; 8Ki is 8,192" in notes


def test_experts_choices_are_among_the_best():
    """Llama 3.1 405B on 16,384 H100: tp 8, pp 16, dp 128 and micro-batches of one, as it was trained (Llama team 2024, table 4);
    among the next ones too an interleaved pipeline, weights not sharded over data-parallel ranks, and sequence parallelism."""
    answer = plan("llama-3.1-405b", "dgx-h100:16384", sequence_length=8192, batch="16M", top=5, catalog=CATALOG)
    best = answer.best[0].layout
    assert (best.tp, best.cp, best.pp, best.dp, best.micro_batch_size) == (8, 1, 16, 128, 1)
    assert best.recompute == "light"
    for found in answer.best:
        assert found.layout.tp in {8, 16} and found.layout.pp >= 4
        assert found.layout.schedule == "interleaved" and found.layout.zero <= 1 and found.layout.sequence_parallel
    assert answer.best[0].mfu == pytest.approx(0.41, rel=0.1)


@pytest.mark.parametrize(
    ("model", "on"),
    [("llama-2-70b", "aws-p6-b300:5"), ("gemma-3-4b", "gcp-a2-ultra:1152"), ("llama-3.2-1b", "dgx-h100:1")],
)
def test_a_printed_layout_costs_the_same_when_it_is_given_back(model, on):
    for found in plan(model, on, catalog=CATALOG).best:
        again = train(model, on, layout=str(found.layout), catalog=CATALOG).estimates[0]
        assert (str(again.layout), again.step_time_s) == (str(found.layout), pytest.approx(found.step_time_s, rel=1e-9))


def test_a_layout_whose_experts_are_not_shared_costs_the_same_when_it_is_given_back():
    """ep=1 etp=1 beside tp=2, which is not what tp=2 alone stands for."""
    options = {"sequence_length": 8192, "batch": "1M", "slices": 4, "catalog": CATALOG}
    answer = plan("deepseek-v2-lite", "tpu-v3:8x8", top=8, **options)
    unshared = [found for found in answer.best if found.layout.tp > found.layout.ep == found.layout.etp == 1]
    assert unshared
    for found in unshared:
        assert " ep=1 etp=1 " in str(found.layout)
        again = train("deepseek-v2-lite", "tpu-v3:8x8", layout=str(found.layout), **options).estimates[0]
        assert (again.layout, again.time, again.memory) == (found.layout, found.time, found.memory)


def test_scores_that_are_kept_can_be_dropped_alone():
    """As Megatron-LM's selective recomputation does; fused attention has none to drop, and the search does not look there."""
    options = {"sequence_length": 2048, "batch": 512, "dtype": "fp16", "top": 10, "catalog": CATALOG}
    kept, fused = (
        {
            one.layout.recompute
            for one in plan("gpt3-175b", "dgx-a100:512", software=Software(attention=kind), **options).best
        }
        for kind in ("unfused", "fused")
    )
    assert "attention" in kept
    assert "attention" not in fused


@pytest.mark.parametrize("name", ["megatron", "llama3", "tp-dp-pp", "domain:tp8/network:dp2", "tp:domain fsdp:network"])
def test_a_plan_of_what_one_placement_reaches(name):
    answer = planned(placement=name)
    everything = planned()
    assert answer.placement == name and everything.best_placed is None
    assert 0 < answer.searched < everything.searched
    assert answer.best_placed == everything.best[0]
    assert answer.best[0].step_time_s >= everything.best[0].step_time_s * (1 - 1e-9)
    again = train(
        "llama-3-8b", "dgx-h100:16", layout=str(answer.best[0].layout), sequence_length=4096, batch=64, catalog=CATALOG
    )
    assert again.estimates[0] == answer.best[0]


def test_what_the_best_placement_gains_is_told():
    """A small model on a slice does best with tensor parallelism on 2x2 or not at all; this order has it over z."""
    answer = planned("llama-3-70b", "tpu-v5p:4x4x8", placement="x:dp4/y:dp4/z:tp8", batch=128)
    best = planned("llama-3-70b", "tpu-v5p:4x4x8", batch=128).best[0]
    assert answer.best_placed.layout == best.layout
    gain = 100 * (1 - best.step_time_s / answer.best[0].step_time_s)
    told = [note for table in answer.tables() for note in table.notes if "was searched" in note]
    assert len(told) == 1 and f"{gain:.1f}% less: {best.layout}" in told[0]
    extras = answer.extras()
    assert extras["placement"] == "x:dp4/y:dp4/z:tp8"
    assert extras["best_placed"]["step_time_s"] == best.step_time_s


def test_a_plan_with_axes_where_they_are_said_to_lie():
    """All splits that agree are searched, and no other; what comes of it is written by dimension."""
    answer = planned("llama-3-8b", "tpu-v5p:4x4x4", placement="tp:x fsdp:xy pp:z", batch=64)
    placed = {str(found.layout.placement) for found in answer.best}
    assert placed <= {f"x:{x}/y:dp4/z:pp4" for x in ("tp4", "tp2.dp2", "dp4")}
    best = answer.best[0]
    degrees = {"tp", "pp", "dp", "sp", "placement"}
    words = [word for word in str(best.layout).split() if word.split("=")[0] not in degrees]
    for tp in (1, 2, 4):
        said = f"tp={tp} pp=4 dp={16 // tp} sp={int(tp > 1)} placement=tp:x,fsdp:xy,pp:z"
        layout = " ".join([said, *words])
        other = train("llama-3-8b", "tpu-v5p:4x4x4", layout=layout, sequence_length=4096, batch=64, catalog=CATALOG)
        assert best.step_time_s <= other.estimates[0].step_time_s * (1 + 1e-9)


def test_where_nothing_is_gained_that_is_told():
    fastest = planned().best[0].layout.placement
    notes = [note for table in planned(placement=fastest).tables() for note in table.notes]
    assert f"no other placement is faster than what {fastest} reaches" in notes


def test_an_unknown_placement_names_the_nearest():
    with pytest.raises(InputError, match="did you mean torchtitan"):
        planned(placement="torchtitn")


@pytest.mark.parametrize("overlap", ["shared", "micro-batch"])
def test_exchanges_of_experts_hide_where_a_plan_is_told_so(overlap):
    plain, hidden = (
        plan(
            "deepseek-v2", "h800-cluster:256", sequence_length=4096, batch=1024, top=3, catalog=CATALOG, ep_overlap=word
        )
        for word in (None, overlap)
    )
    assert hidden.best[0].step_time_s < plain.best[0].step_time_s
    for found in hidden.best:
        assert found.layout.ep_overlap == (overlap if found.layout.ep > 1 else "none")
        again = train(
            "deepseek-v2",
            "h800-cluster:256",
            sequence_length=4096,
            batch=1024,
            layout=str(found.layout),
            catalog=CATALOG,
        )
        assert again.estimates[0].step_time_s == pytest.approx(found.step_time_s, rel=1e-9)


def test_what_exchanges_hide_behind_is_for_experts():
    with pytest.raises(InputError, match="llama-3-8b has none; leave it out"):
        plan("llama-3-8b", "dgx-h100:8", catalog=CATALOG, ep_overlap="shared")
    with pytest.raises(InputError, match="did you mean micro-batch"):
        plan("mixtral-8x7b", "dgx-h100:8", catalog=CATALOG, ep_overlap="microbatch")
