"""The fit of what products sustain in training: the files hold what it gives, and the error where it has not looked."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.equations.training.drawn import CATALOG

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fit_training.py"


@cache
def fit_training():
    spec = importlib.util.spec_from_file_location("fit_training", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["fit_training"] = module
    spec.loader.exec_module(module)
    return module


@cache
def found():
    return fit_training().cases(CATALOG)


def parts():
    script = fit_training()
    held = [case for case in found() if script.held_back(case)]
    return [case for case in found() if not script.held_back(case)], held


def test_a_share_a_class_and_no_more():
    script = fit_training()
    chips = [chip for named in script.CLASSES.values() for chip in named]
    assert len(script.CLASSES) == 6 and len(chips) == len(set(chips))
    assert all(CATALOG.chip(chip).name == chip for chip in chips)


def test_the_files_hold_what_the_fit_gives():
    script = fit_training()
    for kind, share in script.fit(parts()[0], CATALOG).items():
        attainable = CATALOG.chip(script.CLASSES[kind][0]).attainable
        for name, kernel in script.KERNELS.items():
            if name in attainable and name != "training_attention_older_kernel":
                assert attainable[name].value == pytest.approx(share * attainable[kernel].value, rel=0.01), (kind, name)


def test_interpolated_errors_are_those_of_the_equations():
    script = fit_training()
    case = next(case for case in found() if case.kind == "a100")
    now = script.present("a100", CATALOG)
    assert case.error(now, now) == pytest.approx(script.math.expm1(case.logarithms[16]))
    assert case.error(now * 1.05, now) < case.error(now, now) < case.error(now * 0.95, now)


def test_errors_where_the_fit_has_not_looked():
    """Leaving one source out at a time, and on the quarter of the rows that is held back."""
    script = fit_training()
    fitting, held = parts()
    assert len(held) > 100 and len(fitting) > 300
    unseen = script.statistics("unseen", script.unseen(found(), CATALOG))
    assert unseen.median_abs_error <= 0.068
    assert unseen.p90_abs_error <= 0.21
    assert abs(unseen.bias) <= 0.02
    back = script.errors("held back", held, script.fit(fitting, CATALOG), CATALOG)
    assert back.median_abs_error <= 0.062
    assert back.p90_abs_error <= 0.17
    assert abs(back.bias) <= 0.03
