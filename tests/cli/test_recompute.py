"""Modules of Megatron-core and its methods on the command line."""

import csv
import io
import json

ON = ("llama-3-8b", "--on", "dgx-h100:8", "--seq", "8192", "--batch", "64")


def test_a_layout_names_modules_in_any_order_and_gives_them_back(costmodel):
    done = costmodel("train", *ON, "--layout", "zero=3 recompute=mlp+core_attn", "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert row["recompute"] == "core_attn+mlp"
    again = costmodel("train", *ON, "--layout", row["layout"], "--format", "csv")
    assert again.stdout == done.stdout


def test_a_plan_tries_what_it_is_told(costmodel):
    asked = "none,mlp,layernorm+moe_act full-uniform-2 full-block-8"
    done = costmodel("plan", *ON, "--recompute", asked, "--top", "20", "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    found = {row["recompute"] for row in csv.DictReader(io.StringIO(done.stdout))}
    assert found <= {"none", "mlp", "light", "full-uniform-2", "full-block-8"}
    only = costmodel("plan", *ON, "--recompute", "full-uniform-2", "--format", "json")
    (first, *_) = json.loads(only.stdout)["results"]
    assert "recompute=full-uniform-2 " in first["layout"]


def test_a_layout_of_experts_that_does_not_fit_would_with_modules(costmodel):
    on = ("mixtral-8x7b", "--on", "dgx-h100:32", "--seq", "8192", "--batch", "512")
    done = costmodel("train", *on, "--layout", "ep=8 pp=2 mbs=2")
    assert done.returncode == 1
    assert "recompute=moe " in done.stdout


def test_a_plan_refuses_what_no_layout_says(costmodel):
    for text, said in (
        ("mlp,mpl", "did you mean mlp?"),
        ("", "--recompute is empty"),
        ("moe", "moe in one with them"),
        ("core_attn mlp", "join modules that are run again together by +, core_attn+mlp"),
        ("none,full-uniform-33", "names more layers than the 32 of the model"),
        ("full/33", "names one layer in more than the 32 of the model"),
    ):
        done = costmodel("plan", *ON, "--recompute", text)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert "Traceback" not in done.stderr
