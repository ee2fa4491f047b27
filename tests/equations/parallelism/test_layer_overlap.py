"""Overlaps inside a layer: closed forms against their execution and against cases that were executed elsewhere."""

import csv
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.equations.parallelism.layer_overlap import ExpertPair, InPieces, LayerOverlap, RingExchange
from costmodel.symbolic import compile_math
from tests.equations.parallelism.test_context import RING
from tests.equations.parallelism.test_context import ring as ring_attention
from tests.simulators import context
from tests.simulators import overlap as simulator

CASES = Path(__file__).parents[2] / "published" / "overlap_cases.csv"
PHASES = (
    *("attention_forward", "dispatch_forward", "experts_forward", "combine_forward", "combine_backward"),
    *("experts_backward", "experts_weights", "dispatch_backward", "attention_backward"),
)
"""In the order of the cases."""
ring = compile_math(RingExchange.system)
pieces = compile_math(InPieces.system)
pair = compile_math(ExpertPair.system)
seconds = st.fractions(0, 10, max_denominator=16)


def rows():
    with CASES.open(encoding="utf-8") as file:
        return [
            pytest.param(
                row["form"],
                int(row["count"]),
                [Fraction(time) for time in row["times"].split(";")],
                float(row["whole"]),
                id=f"{row['form']}-{number}",
            )
            for number, row in enumerate(csv.DictReader(file))
        ]


@pytest.mark.parametrize(("form", "number", "times", "whole"), rows())
def test_cases_executed_elsewhere(form, number, times, whole):
    """Form and simulator both; the cases are printed to four decimals."""
    match form:
        case "ring-gather":
            found = ring(n=number, piece=times[0], hop=times[1])["whole"]
            told = simulator.gathered_in_a_ring(number, *times)
        case "ring-scatter":
            found = ring(n=number, piece=times[0], hop=times[1])["whole"]
            told = simulator.scattered_in_a_ring(number, *times)
        case "pieces":
            found = pieces(pieces=number, communicated=times[0], computed=times[1])["whole"]
            told = simulator.in_pieces([times[0]] * number, [times[1]] * number)
        case "ring-attention":
            _, exposed = ring_attention(number, RING, times[0], times[0], times[1], Fraction(0))
            found = number * times[0] + exposed["exposed_forward"]
            told = context.forward_running_ahead([[times[0]] * number] * number, times[1])
        case _:
            named = dict(zip(PHASES, times, strict=True))
            found, told = number * pair(**named)["period"], simulator.expert_pairs(number, named)
    assert found == told
    assert float(found) == pytest.approx(whole, abs=1e-4)


@given(st.integers(1, 16), seconds, seconds)
def test_a_ring_hides_all_but_what_is_longer_than_a_piece(ranks, piece, hop):
    found = ring(n=ranks, piece=piece, hop=hop)
    assert found["whole"] == simulator.gathered_in_a_ring(ranks, piece, hop)
    assert found["whole"] == simulator.scattered_in_a_ring(ranks, piece, hop)
    assert found["exposed"] == found["whole"] - ranks * piece


@given(st.integers(1, 16), seconds, seconds)
def test_pieces_show_one_and_what_is_longer(count, communicated, computed):
    found = pieces(pieces=count, communicated=communicated, computed=computed)
    assert found["whole"] == simulator.in_pieces([communicated] * count, [computed] * count)
    assert found["whole"] == simulator.in_pieces([computed] * count, [communicated] * count)
    assert found["exposed"] == found["whole"] - count * computed


@given(st.integers(1, 5), st.tuples(*[seconds] * len(PHASES)))
def test_two_micro_batches_of_experts(layers, times):
    named = dict(zip(PHASES, times, strict=True))
    period = pair(**named)["period"]
    assert layers * period == simulator.expert_pairs(layers, named)
    communicates = sum(named[phase] for phase in simulator.COMMUNICATES)
    computes = sum(named[phase] for phase in simulator.COMPUTES)
    assert max(communicates, computes) <= period <= communicates + computes


def test_a_pair_of_layers_as_it_was_profiled():
    """DeepSeek's profile of four layers, phases in ms a layer: 126.9 by the form, 129.0 measured, 232.7 one after the other."""
    profiled = {
        "combine_backward": 5.8,
        "attention_forward": 4.4,
        "experts_backward": 5.3,
        "dispatch_forward": 6.7,
        "dispatch_backward": 7.5,
        "experts_weights": 3.5,
        "experts_forward": 4.6,
        "attention_backward": 9.3 + 2.4,
        "combine_forward": 8.7,
    }
    assert 4 * pair(**profiled)["period"] == pytest.approx(126.9, rel=0.02)
    assert sum(profiled.values()) * 4 == pytest.approx(232.7, rel=0.01)


@given(st.integers(2, 16), seconds, seconds, st.tuples(*[seconds] * 4))
def test_overlapped_products_show_no_more_than_plain_ones(tp, gather, scatter, products):
    """Four products, which take as long forward as for their gradients; where nothing is to be computed nothing hides."""
    names = ("qkv", "attention_output", "ffn_in", "ffn_out")
    by_name = dict(zip(names, products, strict=True))
    found = layer(tp, gather, scatter, by_name)
    for way in ("forward", "backward"):
        assert 0 <= found[f"overlapped_{way}"] <= found[f"all_{way}"]
    assert found["overlapped_backward"] <= found["plain_backward"] <= found["all_backward"]
    nothing = layer(tp, gather, scatter, dict.fromkeys(names, Fraction(0)))
    assert nothing["overlapped_of_step"] == nothing["plain_of_step"] == nothing["all_of_step"]


def layer(tp, gather, scatter, products):
    from costmodel.equations.axes import MATMUL, PART

    evaluate = compile_math(LayerOverlap.system, list(LayerOverlap.system.equations), [PART, MATMUL])
    taken = [products.get(label, Fraction(0)) for label in MATMUL.labels]
    return evaluate(
        tp=tp,
        tp_all_gather=gather,
        tp_reduce_scatter=scatter,
        taken=[taken] * len(PART.labels),
        tp_overlap_pieces=4,
        mean_layers=3,
        micro_batches=2,
    )
