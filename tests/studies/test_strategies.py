"""The best layout of each strategy, beside the best of all."""

from costmodel.catalog.catalog import Catalog
from costmodel.search.layout import parse_layout
from costmodel.studies.strategies import EXPERT_STRATEGIES, STRATEGIES, strategies


def test_each_strategy_is_itself_and_none_beats_the_best_of_all():
    found = {row["strategy"]: row for row in strategies("llama-3-8b", "dgx-h100:16", 32_768, "1M", Catalog.open())}
    assert list(found) == list(STRATEGIES)
    layouts = {name: parse_layout(row["layout"], 16) for name, row in found.items() if row["layout"]}
    fsdp, cp, mixed = layouts["FSDP alone"], layouts["FSDP and CP"], layouts["TP, PP and DP"]
    assert (fsdp.tp, fsdp.cp, fsdp.pp, fsdp.zero) == (1, 1, 1, 3)
    assert cp.cp > 1 == cp.tp == cp.pp
    assert min(mixed.tp, mixed.pp) > 1 == mixed.cp
    assert mixed.zero <= 1
    times = [row["step_time_s"] for row in found.values() if row["step_time_s"]]
    assert times[0] == min(times)


def test_strategies_of_experts_say_who_holds_one():
    found = {row["strategy"]: row for row in strategies("mixtral-8x7b", "dgx-h100:64", 4096, "1M", Catalog.open())}
    assert list(found) == list(EXPERT_STRATEGIES)
    layouts = {name: parse_layout(row["layout"], 64) for name, row in found.items() if row["layout"]}
    assert (layouts["experts on every rank"].ep, layouts["experts on every rank"].etp) == (1, 1)
    shared, sliced = layouts["EP and FSDP"], layouts["expert TP alone"]
    assert shared.ep > 1 == shared.tp == shared.pp
    assert shared.zero == 3
    assert sliced.etp > 1 == sliced.ep
    times = [row["step_time_s"] for row in found.values() if row["step_time_s"]]
    assert times[0] == min(times)
