"""Every equation of every chapter: its units balance, its axes are there, it says what it means."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

import costmodel.equations
from costmodel.symbolic import Chapter, Equation, EquationSystem

OWNERS = {"chip", "link", "cluster", "model", "layout", "workload", "assumption"}


def _chapters() -> dict[str, EquationSystem]:
    found = {}
    for module in pkgutil.walk_packages(costmodel.equations.__path__, "costmodel.equations."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Chapter) and value.__module__ == module.name:
                found[f"{module.name.removeprefix('costmodel.equations.')}.{value.__name__}"] = value.system
    return found


CHAPTERS = _chapters()


def _equations(system: EquationSystem) -> list[Equation]:
    return list(system.equations.values())


@pytest.mark.parametrize("name", CHAPTERS)
def test_units_balance_and_axes_exist(name: str) -> None:
    assert CHAPTERS[name].check() == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_quantity_says_what_it_is(name: str) -> None:
    silent = [e.name for e in _equations(CHAPTERS[name]) if len(e.meaning) < 4 or e.meaning.strip() != e.meaning]
    assert silent == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_owners_are_known(name: str) -> None:
    strange = {e.owner for e in _equations(CHAPTERS[name]) if e.owner} - OWNERS
    assert strange == set()


def test_inputs_of_a_training_step_have_an_owner() -> None:
    for name in ("training_on_switches.OnSwitches", "training_on_torus.OnTorus"):
        orphans = [e.name for e in CHAPTERS[name].inputs(["step_time", "device_used", "mfu"]) if not e.owner]
        assert orphans == [], name


def test_every_chapter_is_described() -> None:
    assert len(CHAPTERS) > 30
    for module in pkgutil.walk_packages(costmodel.equations.__path__, "costmodel.equations."):
        assert import_module(module.name).__doc__, module.name
