from __future__ import annotations

import copy
import pickle

import pytest

from costmodel.report import Breakdown

PARTS = Breakdown({"compute": 3.0, "bubble": 1.0})


def test_reads_like_a_mapping_in_order() -> None:
    assert list(PARTS) == ["compute", "bubble"]
    assert PARTS["bubble"] == 1.0
    assert PARTS == {"compute": 3.0, "bubble": 1.0}
    assert sum(PARTS.values()) == 4.0
    with pytest.raises(KeyError, match="memory"):
        PARTS["memory"]


def test_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PARTS["compute"] = 0.0
    with pytest.raises(AttributeError, match="cannot be changed"):
        PARTS._parts = ()


def test_hashes_pickles_and_copies() -> None:
    again = pickle.loads(pickle.dumps(PARTS))  # noqa: S301  our own bytes
    assert again == PARTS and hash(again) == hash(PARTS)
    assert copy.deepcopy(PARTS) == PARTS
    assert eval(repr(PARTS)) == PARTS  # noqa: S307  our own text
