"""What people asked of tools like this one, answered by its commands: user_cases.yaml and peer_cases.yaml."""

import re
from pathlib import Path

import pytest

from costmodel.studies.plan import plan
from tests.published.questions import CASE, checks, judge, read


@pytest.mark.parametrize("check", checks("user"))
def test_question_of_a_user(check):
    judge(check)


@pytest.mark.parametrize("check", checks("peer"))
def test_scenario_of_a_peer(check):
    judge(check)


@pytest.mark.parametrize("name", ["user", "peer"])
def test_every_case_is_carried_or_left_out_for_a_reason(name):
    cases, omitted = read(name)
    names = [case["id"] for case in cases]
    assert len(set(names)) == len(names)
    assert all(set(case) <= CASE and case["checks"] and case["question"] and case["source"] for case in cases)
    assert all(reason for reason in omitted.values())
    written = "\n".join(
        f"{file.stem}\n{file.read_text('utf-8')}" for file in Path(__file__).parents[1].rglob("test_*.py")
    )
    for test in re.findall(r"test_\w+", " ".join(omitted.values())):
        assert re.search(rf"(def )?\b{test}\b", written), test


@pytest.mark.parametrize(
    ("model", "on"), [("gpt3-175b", "dgx-a100:64"), ("30B", "dgx-h100:8"), ("70B", "tpu-v5p:4x4x8")]
)
def test_no_layout_is_listed_twice(model, on):
    """A tool listed one layout three times, with options that change nothing without tensor parallelism."""
    shown = plan(model, on, batch=512, sequence_length=2048, top=10).best
    assert len(shown) == 10
    assert len({str(found.layout.without_placement) for found in shown}) == 10
    assert len({(found.step_time_s, found.device_used_bytes) for found in shown}) == 10
