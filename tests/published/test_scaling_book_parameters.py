"""What "How To Scale Your Model" prints about parameters, FLOPs and KV caches, from the equations with its own numbers."""

from math import inf
from pathlib import Path
from typing import Any

import pytest
import yaml

from costmodel.catalog.catalog import Catalog
from costmodel.catalog.resolve import resolve_model
from costmodel.catalog.shape import equation_inputs
from costmodel.equations.model.cache import KeyValueCache
from costmodel.equations.model.flops import Flops
from costmodel.symbolic import compile_math
from tests.equations.model.shapes import CACHE_INPUTS, DENSE, FLOP_INPUTS, WINDOWS

CASES = yaml.safe_load((Path(__file__).parent / "scaling_book_parameters.yaml").read_text(encoding="utf-8"))
flops = compile_math(Flops.system)
cache = compile_math(KeyValueCache.system, ["cache_per_token", "cache_per_sequence"])


def quantities(case: dict[str, Any]) -> dict[str, float]:
    """Every quantity of the case's shape and workload."""
    unknown = set(case) - {
        "id",
        "source",
        "why",
        "shape",
        "model",
        "workload",
        "quantity",
        "times",
        "over",
        "expected",
        "tolerance",
    }
    assert not unknown
    given = (
        equation_inputs(resolve_model(case["model"], Catalog.open()))
        if "model" in case
        else DENSE | WINDOWS | case["shape"]
    )
    inputs = {"sequence_length": 1, "document_length": inf, "cache_value_bytes": 1} | given | case.get("workload", {})
    return flops(**{name: inputs[name] for name in FLOP_INPUTS}) | cache(
        **{name: inputs[name] for name in CACHE_INPUTS}
    )


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_printed_figure(case: dict[str, Any]):
    found = quantities(case)
    value = found[case["quantity"]] * case.get("times", 1) / found.get(case.get("over", ""), 1)
    assert value == pytest.approx(case["expected"], rel=case["tolerance"])


def test_names_are_not_repeated():
    assert len({case["id"] for case in CASES}) == len(CASES) == 29
