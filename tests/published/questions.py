"""Questions that people asked, and the commands that answer them: how user_cases.yaml and peer_cases.yaml are read and run.

A case has an `id`, the `question` and what was `found` in our words, its `source`, and `checks`. A check names a command line, and
what is to come of it:

    run         OWN stands for the folder of models and clusters beside this file, {n} and {8n} for a number of `legal` and eight times it
    value       where its number stands: a path below results[0], or a list of paths, whose numbers are added up
    row         where there are several results, the one with this key, such as {algorithm: ring}
    plus        other numbers of the same form, each with a `run`, which are added, `times` what they say
    over        another number, which it is divided by
    times       a number that it is multiplied by
    equals      what is expected, in `unit`, `within` which share of it
    between     instead: the least and the most, in `unit`
    says        instead: the text at `value`
    refused     instead: words of the sentence with which bad input is met
    legal       instead: of the numbers `among`, those with which the command is not refused
    why         what the check is of, where that needs saying
"""

from __future__ import annotations

import contextlib
import io
import json
import shlex
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest
import yaml

from costmodel.catalog.units import UNITS
from costmodel.cli.boundary import run as command

HERE = Path(__file__).parent
NUMBER = {"run", "value", "row", "plus", "over", "times"}
CHECK = NUMBER | {"equals", "within", "unit", "between", "says", "refused", "legal", "why"}
CASE = {"id", "question", "found", "source", "checks"}
BAD_INPUT = 2


def read(name: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The cases of NAME_cases.yaml, and those left out with the reason of each, as NAME_omitted.yaml groups them."""
    cases = yaml.safe_load((HERE / f"{name}_cases.yaml").read_text("utf-8"))
    groups = yaml.safe_load((HERE / f"{name}_omitted.yaml").read_text("utf-8"))
    return cases, {case: reason for group in groups.values() for case, reason in group.items()}


def checks(name: str) -> list[Any]:
    """Every check of the cases as a parameter of a test."""
    cases, _ = read(name)
    return [
        pytest.param(check, id=f"{case['id']}-{number}")
        for case in cases
        for number, check in enumerate(case["checks"])
    ]


@cache
def answered(line: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command line, run in this process."""
    out, err = io.StringIO(), io.StringIO()
    words = [*shlex.split(line.replace("OWN", str(HERE / "own"))), "--format", "json"]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command(words)
    return code, out.getvalue(), err.getvalue()


def result(line: str, row: dict[str, str] | None = None) -> dict[str, Any]:
    """The first result of a command, or the one whose keys are these."""
    code, out, err = answered(line)
    assert code in (0, 1), err
    found = [one for one in json.loads(out)["results"] if all(one[key] == value for key, value in (row or {}).items())]
    assert found, f"no result with {row}"
    return found[0]


def at(found: dict[str, Any], path: str) -> Any:
    """What stands at a path such as memory.optimizer."""
    return reduce(lambda inside, key: inside[key], path.split("."), found)


def number(asked: dict[str, Any]) -> float:
    """The number that a check asks for."""
    found = result(asked["run"], asked.get("row"))
    paths = asked["value"] if isinstance(asked["value"], list) else [asked["value"]]
    value = sum(at(found, path) for path in paths) * asked.get("times", 1)
    value += sum(number({"value": asked["value"], **other}) for other in asked.get("plus", []))
    return value / number({"value": asked["value"], **asked["over"]}) if "over" in asked else value


def legal(asked: dict[str, Any]) -> list[int]:
    """The numbers with which a command is not refused; any other refusal than that of an illegal layout is a mistake of the case."""
    found = []
    for n in asked["among"]:
        code, _, err = answered(asked["run"].replace("{n}", str(n)).replace("{8n}", str(8 * n)))
        assert code != BAD_INPUT or "illegal layout" in err, err
        found += [n] if code != BAD_INPUT else []
    return found


def judge(check: dict[str, Any]) -> None:
    """Hold a check to what it expects."""
    assert set(check) <= CHECK
    factor = UNITS[check["unit"]][1] if "unit" in check else 1
    if "refused" in check:
        code, _, err = answered(check["run"])
        assert code == BAD_INPUT
        assert check["refused"] in err
    elif "legal" in check:
        assert legal({**check, **check["legal"]}) == check["legal"]["are"]
    elif "says" in check:
        assert at(result(check["run"], check.get("row")), check["value"]) == check["says"]
    elif "between" in check:
        least, most = check["between"]
        assert least * factor <= number(check) <= most * factor
    else:
        assert number(check) == pytest.approx(check["equals"] * factor, rel=check["within"])
