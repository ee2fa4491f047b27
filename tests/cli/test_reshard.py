"""How long FSDP keeps gathered weights, on the command line: layouts, searches, explanations, refusals."""

import csv
import io
import json

RUN = ("llama-3-8b", "--on", "dgx-h100:8", "--seq", "4096", "--batch", "64")


def trained(costmodel, layout, *more):
    return costmodel("train", *RUN, "--layout", layout, *more)


def test_a_layout_is_written_back_with_it(costmodel):
    rows = {}
    for word in ("", "reshard=forward", "reshard=backward", "reshard=step"):
        done = trained(costmodel, f"zero=3 mbs=2 recompute=full {word}", "--format", "csv")
        (row,) = csv.DictReader(io.StringIO(done.stdout))
        assert row["reshard"] == (word.partition("=")[2] or "default")
        assert (word in row["layout"].split()) == bool(word)
        assert ("reshard" in row["layout"]) == bool(word)
        rows[word] = row
        again = trained(costmodel, row["layout"], "--format", "csv")
        assert again.stdout == done.stdout
    times = [float(row["total_fsdp_s"]) for row in rows.values()]
    assert times[0] == times[1] > times[2] > times[3]
    assert rows[""]["allocated_bytes"] == rows["reshard=forward"]["allocated_bytes"]


def test_it_is_refused_where_nothing_is_gathered(costmodel):
    done = trained(costmodel, "zero=1 reshard=step")
    assert done.returncode == 2
    assert "reshard is said only with zero=3" in done.stderr
    assert 'nearest legal one is "' in done.stderr
    done = trained(costmodel, "zero=3 reshard=backwards")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean backward?" in done.stderr


def test_the_recipe_says_what_is_usual(costmodel):
    """torchtitan keeps its stages in a pipeline; the word goes before."""
    layout = "pp=2 zero=3 mbs=2 recompute=full"
    sizes = {
        word: json.loads(
            trained(costmodel, f"{layout} {word}", "--recipe", "torchtitan-fsdp2", "--format", "json").stdout
        )["results"][0]["allocated_bytes"]
        for word in ("", "reshard=step", "reshard=forward")
    }
    assert sizes[""] == sizes["reshard=step"] > sizes["reshard=forward"]


def test_a_search_tries_it_when_asked(costmodel):
    """On a slow network and with much memory left, keeping what was gathered is worth it."""
    asked = ("plan", "llama-3-8b", "--on", "dgx-b200:64", "--seq", "4096", "--batch", "4M", "--format", "json")
    usual, tried = (json.loads(costmodel(*asked, *more).stdout)["results"] for more in ((), ("--reshard", "step")))
    assert tried[0]["step_time_s"] <= usual[0]["step_time_s"]
    assert all("reshard" not in found["layout"] for found in usual)
    done = costmodel(*asked, "--reshard", "stop")
    assert done.returncode == 2
    assert "did you mean step?" in done.stderr


def test_what_is_sent_is_explained(costmodel):
    done = costmodel(
        "explain", "traffic.fsdp_layers", "llama-3-8b", "--on", "dgx-h100:8", "--layout", "zero=3 reshard=backward"
    )
    assert done.returncode == 0, done.stderr
    assert "backward_gathers" in done.stdout
