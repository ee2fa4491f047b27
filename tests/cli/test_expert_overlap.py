"""`plan --ep-overlap` as a process, and what it refuses."""

import json


def test_a_plan_hides_exchanges_of_experts(costmodel):
    done = costmodel(
        *("plan", "deepseek-v2", "--on", "h800-cluster:256", "--seq", "4096", "--batch", "1024"),
        *("--ep-overlap", "micro-batch", "--top", "1", "--format", "json"),
    )
    assert done.returncode == 0, done.stderr
    assert "ep_overlap=micro-batch" in json.loads(done.stdout)["results"][0]["layout"]


def test_it_is_for_experts(costmodel):
    done = costmodel("plan", "llama-3-8b", "--on", "dgx-h100:8", "--ep-overlap", "shared")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "costmodel: error: --ep-overlap is for experts, and llama-3-8b has none; leave it out\n"
