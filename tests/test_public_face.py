"""What `import costmodel` offers: every name loads, answers are frozen, and wrong types are met with a sentence."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

import costmodel


@pytest.mark.parametrize("name", costmodel.__all__)
def test_every_name_loads(name: str) -> None:
    assert getattr(costmodel, name) is not None
    assert name in dir(costmodel)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="simulate"):
        costmodel.simulate  # noqa: B018  the look-up is the test


def test_answers_cannot_be_changed() -> None:
    best = costmodel.plan("7B", on="dgx-h100:64").best[0]
    with pytest.raises(FrozenInstanceError):
        best.step_time_s = 0.0
    with pytest.raises(TypeError):
        best.time["matmul"] = 0.0
    assert isinstance(hash(best), int)
    assert sum(best.time.values()) == pytest.approx(best.step_time_s, rel=1e-12)


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda: costmodel.train("7B", on=None), "dgx-h100:512"),
        (lambda: costmodel.train(None, on="dgx-h100:8"), "models are names"),
        (lambda: costmodel.train([7], on="dgx-h100:8"), "a model is a name"),
        (lambda: costmodel.plan(7, on="dgx-h100:8"), "a model is a name"),
        (lambda: costmodel.collective("dispatch", None, "dgx-h100:64", routing={"tokens": 1}), "Routing"),
    ],
)
def test_wrong_types_are_met_with_a_sentence(ask, expected: str) -> None:
    with pytest.raises(costmodel.InputError, match=expected):
        ask()
