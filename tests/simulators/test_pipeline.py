"""The pipeline simulator against cases worked out elsewhere, and against what can be drawn on paper."""

import csv
from fractions import Fraction
from pathlib import Path

import pytest

from tests.simulators import pipeline

CASES = Path(__file__).parents[1] / "published" / "pipeline_cases.csv"


def listed(text, length=1):
    values = [Fraction(value) for value in text.split(";")]
    return values * length if len(values) == 1 else values


def cases():
    with CASES.open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            name = f"{number + 2}-{row['schedule']}-{row['devices']}-{row['micro_batches']}-{row['chunks']}"
            yield pytest.param(row, id=name)


def order_of(row):
    devices, micro_batches, chunks = (int(row[key]) for key in ("devices", "micro_batches", "chunks"))
    if row["schedule"] == "gpipe":
        return pipeline.gpipe(devices, micro_batches)
    if row["schedule"] == "1f1b":
        return pipeline.one_forward_one_backward(devices, micro_batches)
    return pipeline.interleaved(devices, micro_batches, chunks, int(row["group"]))


@pytest.mark.parametrize("row", list(cases()))
def test_published_cases(row):
    stages = int(row["devices"]) * int(row["chunks"])
    forward, backward = (listed(row[key], stages) for key in ("forward_by_stage", "backward_by_stage"))
    found = pipeline.run(order_of(row), forward, backward, Fraction(row["message"]))
    assert found.makespan == Fraction(row["makespan"])
    assert found.bubble == Fraction(row["bubble"])
    if row["messages"]:
        assert found.in_flight == tuple(listed(row["in_flight_by_device"]))
        assert found.messages == int(row["messages"])


def test_two_devices_two_micro_batches():
    """F F B B on both, one later: 1 + 1 + 2, then 2 + 2 back on the first."""
    ones, twos = [Fraction(1)] * 2, [Fraction(2)] * 2
    found = pipeline.run(pipeline.one_forward_one_backward(2, 2), ones, twos)
    assert (found.makespan, found.bubble, found.in_flight) == (9, 3, (2, 1))


def test_one_device_never_idles_nor_sends():
    found = pipeline.run(pipeline.interleaved(1, 4, 2), [Fraction(1)] * 2, [Fraction(2)] * 2, Fraction(5))
    assert (found.makespan, found.bubble, found.messages) == (24, 0, 0)


def test_messages_that_block_cost_both_sides():
    """Two devices, one micro-batch: the activation and the gradient cross once each."""
    args = ([Fraction(1)] * 2, [Fraction(2)] * 2)
    assert pipeline.run_blocking(1, *args, Fraction(1, 2)) == 6 + 1
    assert (
        pipeline.run_blocking(4, *args, Fraction(0))
        == pipeline.run(pipeline.one_forward_one_backward(2, 4), *args).makespan
    )


def test_an_impossible_order_is_a_deadlock():
    backward_first = [[(pipeline.BACKWARD, 0, 0), (pipeline.FORWARD, 0, 0)]] * 2
    with pytest.raises(pipeline.DeadlockError):
        pipeline.run(backward_first, [Fraction(1)] * 2, [Fraction(1)] * 2)
