"""The fewest and cheapest changes with which a layout would fit."""

from dataclasses import replace

import pytest

from costmodel.search.candidates import candidates
from costmodel.search.evaluate import evaluate
from costmodel.search.grid import search
from costmodel.search.layout import parse_layout
from costmodel.search.nearest import changes_that_fit
from costmodel.search.workload import Workload
from costmodel.studies.train import train
from tests.equations.training.drawn import CATALOG, decoder, machine

KINDS = (
    ("micro_batch_size",),
    ("schedule", "virtual_stages"),
    ("zero",),
    ("recompute",),
    ("tp", "cp", "pp", "dp", "sequence_parallel", "cp_type"),
)


def grid(layers=32, on="dgx-h100:16", batch=32):
    model = decoder(layers=layers, hidden_size=4096, ffn_size=14336, heads=32, kv_heads=8, vocabulary=128256)
    workload = Workload(machine(on), model, 8192, batch)
    return search(workload, CATALOG, candidates(layers, batch, 8192))


def kinds_changed(one, other):
    return {kind for kind in KINDS if any(getattr(one, name) != getattr(other, name) for name in kind)}


@pytest.mark.parametrize("words", ["zero=0", "zero=1 mbs=4", "tp=2 zero=1 mbs=8", "pp=2 zero=1 mbs=4", "zero=0 mbs=16"])
def test_no_fewer_changes_fit_and_none_of_that_kind_is_faster(words):
    found, wanted = grid(), parse_layout(words, 16)
    changes = changes_that_fit(found, wanted, 10)
    numbers = {len(kinds_changed(change.layout, wanted)) for change in changes}
    assert len(numbers) == 1
    few = numbers.pop()
    by_kinds = {frozenset(kinds_changed(change.layout, wanted)): change for change in changes}
    assert len(by_kinds) == len(changes)
    times = [change.step_time_s for change in changes]
    assert times == sorted(times)
    tried = found.candidates
    for recompute in tried.recomputes:
        for zero, shard, _ in tried.sharing:
            for size in tried.micro_batches:
                other = replace(wanted, recompute=recompute, zero=zero, shard=shard, micro_batch_size=size)
                values = evaluate(found.workload, other, CATALOG)
                if values["legal"] <= 0 or values["device_used"] > found.capacity:
                    continue
                changed = frozenset(kinds_changed(other, wanted))
                assert len(changed) >= few
                if len(changed) == few:
                    assert by_kinds[changed].step_time_s <= values["step_time"] * (1 + 1e-9)


def test_what_is_told_is_what_an_answer_says():
    found, wanted = grid(), parse_layout("zero=0 mbs=4", 16)
    for change in changes_that_fit(found, wanted, 4):
        values = evaluate(found.workload, change.layout, CATALOG)
        assert values["step_time"] == pytest.approx(change.step_time_s)
        assert values["device_used"] == pytest.approx(change.device_used_bytes)
        assert values["device_used"] <= found.capacity
        words = dict(word.split("=") for word in change.words.split())
        assert words
        assert all(f"{key}={value}" in str(change.layout).split() for key, value in words.items())
        assert not set(change.words.split()) & set(wanted.without_placement.split())


def test_nothing_fits():
    assert changes_that_fit(grid(layers=128, on="dgx-h100:1", batch=1), parse_layout("mbs=1", 1), 4) == []


def test_train_says_them_only_of_a_layout_that_does_not_fit():
    def answer(layout, on="dgx-h100:16", model="llama-3-8b"):
        return train(model, on, layout=layout, batch=64, catalog=CATALOG)

    short = answer("zero=0 mbs=4")
    told = short.results()[0]["changes_to_fit"]
    assert told
    assert train("llama-3-8b", "dgx-h100:16", layout=told[0]["layout"], batch=64, catalog=CATALOG).exit_code == 0
    assert "It would fit with" in [table.title for table in short.tables()]
    assert answer("tp=8").results()[0]["changes_to_fit"] is None
    assert answer(None).results()[0]["changes_to_fit"] is None
    hopeless = answer("tp=8", "dgx-h100:8", "llama-3.1-405b")
    assert hopeless.results()[0]["changes_to_fit"] == []
    assert any("no layout of this model" in note for table in hopeless.tables() for note in table.notes)
