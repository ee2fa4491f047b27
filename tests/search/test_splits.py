"""The best split of the layers against every split there is, and what `train` and `plan` say of it."""

from dataclasses import replace

import pytest

from costmodel.errors import InputError
from costmodel.search.evaluate import evaluate
from costmodel.search.layout import parse_layout
from costmodel.search.splits import best_split
from costmodel.search.workload import Workload, scalar_inputs
from costmodel.studies.plan import plan
from costmodel.studies.train import train
from tests.equations.training.drawn import CATALOG, decoder, machine

WIDE = {"hidden_size": 4096, "ffn_size": 14336, "heads": 32, "kv_heads": 8, "head_size": 128}


def workload(layers, vocabulary=128256, batch=64):
    return Workload(machine("dgx-h100:24"), decoder(layers=layers, vocabulary=vocabulary, **WIDE), 4096, batch)


def every_split(of, layout):
    """Step times of all splits that are legal and of the one that balances."""
    splits = [(0, 0)] + [(a, b) for a in range(1, 20) for b in range(1, 20)]
    for first, last in splits:
        found = evaluate(of, replace(layout, first=first, last=last), CATALOG)
        if found["legal"] > 0:
            yield found["step_time"], (first, last)


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        (32, "tp=2 pp=4"),
        (31, "tp=2 pp=4"),
        (33, "tp=1 pp=3"),
        (32, "tp=4 pp=2"),
        (32, "tp=2 pp=4 v=2"),
        (32, "tp=2 pp=4 schedule=zb-h1"),
        (31, "tp=2 pp=4 schedule=zb-v"),
        (32, "tp=2 pp=4 schedule=dualpipe"),
        (22, "tp=2 pp=4 p2p=overlap"),
    ],
)
@pytest.mark.parametrize("vocabulary", [32000, 262144])
def test_no_split_is_faster(layers, words, vocabulary):
    layout = parse_layout(words, 24)
    of = workload(layers, vocabulary, 12 * layout.dp)
    best = best_split(of, layout, scalar_inputs(of, CATALOG))
    fastest = min(every_split(of, layout))
    assert evaluate(of, best, CATALOG)["step_time"] <= fastest[0] * 1.001


def test_a_split_that_is_said_stays_and_others_have_none():
    of = workload(32)
    for words in ("tp=2 pp=4 first=9 last=7", "tp=8", "tp=2 pp=4 schedule=zb-v first=4 last=4"):
        layout = parse_layout(words, 24)
        assert best_split(of, layout, scalar_inputs(of, CATALOG)) == layout


def test_the_head_takes_the_place_of_layers():
    """A head of 262,144 rows costs as much as several layers: the last stage gets fewer."""
    of = workload(32, 262144, 48)
    best = best_split(of, parse_layout("tp=2 pp=4", 24), scalar_inputs(of, CATALOG))
    assert best.last < 8 < best.first
    assert (32 - best.first - best.last) % 2 == 0


def test_where_both_ends_are_on_one_rank_the_last_is_the_lighter():
    of = workload(32, 262144, 48)
    for schedule in ("dualpipe", "zb-v"):
        best = best_split(of, parse_layout(f"tp=2 pp=4 schedule={schedule}", 24), scalar_inputs(of, CATALOG))
        assert 1 <= best.last <= best.first


def answer(layout, **more):
    return train("llama-3-8b", "dgx-h100:64", layout=layout, batch=512, catalog=CATALOG, **more)


def test_train_says_how_much_faster_a_split_is():
    told = answer("tp=2 pp=4")
    better = told.results()[0]["faster_split"]
    assert better["step_time_s"] < told.estimates[0].step_time_s
    again = answer(better["layout"])
    assert again.estimates[0].step_time_s == pytest.approx(better["step_time_s"])
    assert again.results()[0]["faster_split"] is None
    assert any("first=" in note for note in told.notes[0])


def test_layers_that_cannot_be_balanced_are_refused_with_a_split_that_is_legal():
    with pytest.raises(InputError, match=r"the nearest legal one is \"tp=2 pp=5 .*first=\d+ last=\d+"):
        train("llama-3-8b", "dgx-h100:80", layout="tp=2 pp=5", batch=512, catalog=CATALOG)


def test_a_layout_that_plan_prints_costs_in_train_what_it_cost_there():
    found = plan("llama-3-8b", "dgx-h100:64", batch=128, sequence_length=32768, top=10, catalog=CATALOG)
    times = [estimate.step_time_s for estimate in found.best]
    assert times == sorted(times)
    for estimate in found.best:
        again = train(
            "llama-3-8b",
            "dgx-h100:64",
            layout=str(estimate.layout),
            batch=128,
            sequence_length=32768,
            catalog=CATALOG,
        )
        assert again.estimates[0].step_time_s == pytest.approx(estimate.step_time_s)


def test_memory_follows_the_split():
    """The first stage holds its layers' weights and activations, the embedding apart."""
    of = workload(32)
    wide, narrow = (
        evaluate(of, parse_layout(f"tp=2 pp=4 zero=0 first={first} last={12 - first}", 24), CATALOG) for first in (8, 4)
    )
    assert wide["stage_layers"] == [8, 10, 4]
    difference = wide["stage_parameters"][0] - narrow["stage_parameters"][0]
    assert difference == pytest.approx(4 * wide["layer_parameters"])
