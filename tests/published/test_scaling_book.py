"""What "How To Scale Your Model" prints about rooflines, chips and collectives, from the equations with its own constants."""

from functools import cache
from pathlib import Path

import pytest
import yaml

from costmodel.catalog.catalog import Catalog
from costmodel.equations.collectives import book, hierarchical, in_network, point_to_point, ring, switch, tree
from costmodel.equations.kernels import roofline
from costmodel.symbolic import compile_math
from costmodel.symbolic.reference import chapters
from costmodel.topology.machine import parse_machine
from tests.published import book_exercises

HERE = Path(__file__).parent
CASES = yaml.safe_load((HERE / "scaling_book_collectives.yaml").read_text(encoding="utf-8"))
OMITTED = yaml.safe_load((HERE / "scaling_book_omitted.yaml").read_text(encoding="utf-8"))
FILES = (book_exercises, roofline, book, hierarchical, in_network, point_to_point, ring, switch, tree)
KEYS = {"id", "source", "why", "quantity", "inputs", "machine", "link", "over", "expected", "tolerance"}


@cache
def evaluate(quantity):
    """The function of one quantity, written `Chapter.name`, and the names of its inputs."""
    chapter, name = quantity.split(".")
    (system,) = {vars(file)[chapter].system for file in FILES if chapter in vars(file)}
    return compile_math(system, [name]), {e.name for e in system.inputs([name])}


def value(case):
    name = case["quantity"]
    if "machine" in case:
        machine = parse_machine(case["machine"], 1, Catalog.open())
        facts = {
            "chips": machine.chips,
            "unit": machine.unit,
            "hosts": machine.chips / machine.cluster.chips_per_host,
        }
        return facts[name]
    if "link" in case:
        return getattr(Catalog.open().link(case["link"]), name).value
    function, needed = evaluate(name)
    assert set(case["inputs"]) == needed
    return function(**case["inputs"])[name.split(".")[1]]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_printed_figure(case):
    assert set(case) <= KEYS
    found = value(case) / (value(case["over"]) if "over" in case else 1)
    assert found == pytest.approx(case["expected"], rel=case["tolerance"])


def test_every_case_is_carried_or_left_out_for_a_reason():
    names = [case["id"] for case in CASES]
    assert len(set(names)) == len(names)
    for chapter, left_out in OMITTED.items():
        assert all(reason for reason in left_out.values()), chapter


@pytest.mark.parametrize("chapter", chapters(book_exercises))
def test_units_of_exercises_balance(chapter):
    assert chapter.system.check() == []
