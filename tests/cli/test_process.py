"""The command line as a process: streams, exit codes, pipes, files, completion."""

import csv
import io
import json
import signal
import subprocess
import sys

import pytest

from costmodel.cli import main
from costmodel.version import __version__
from tests.cli.conftest import PYTHON, ROOT, environment

LIST = ("hardware", "list")


def test_version(costmodel):
    done = costmodel("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"costmodel {__version__}\n", "")


def test_a_table_on_standard_output_and_nothing_else(costmodel):
    done = costmodel(*LIST)
    assert (done.returncode, done.stderr) == (0, "")
    assert "dgx-h100" in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_json_is_one_object(costmodel):
    done = costmodel(*LIST, "--format", "json")
    whole = json.loads(done.stdout)
    assert done.stderr == ""
    assert list(whole)[:3] == ["tool_version", "catalog_hash", "results"]
    assert whole["tool_version"] == __version__
    assert len(whole["catalog_hash"]) >= 12
    assert "dgx-h100" in {entry["name"] for entry in whole["results"]}


def test_csv_is_one_header_and_rows_of_its_length(costmodel):
    rows = list(csv.reader(io.StringIO(costmodel(*LIST, "--format", "csv").stdout, newline="")))
    assert "name" in rows[0]
    assert {len(row) for row in rows} == {len(rows[0])}


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("plna",), "did you mean plan?"),
        (("hardware",), "costmodel hardware needs a command: list, show"),
        (("hardware", "lits"), "did you mean list?"),
        (("hardware", "list", "--fromat", "csv"), "did you mean --format?"),
        (("hardware", "show", "dgx-h10"), "dgx-h100"),
        (("models", "show", "llama-3.1-450b"), "llama-3.1-405b"),
        (("hardware", "list", "-o", "missing/a.csv"), "No such file or directory"),
        (("hardware", "list", "-o", "a.xlsx"), ".json"),
        (("hardware", "list", "--catalog", "missing"), "missing"),
    ],
)
def test_bad_input_is_one_sentence_with_the_nearest_choice(costmodel, arguments, hint):
    done = costmodel(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("costmodel: error: ")
    assert done.stderr.count("\n") == 1
    assert hint in done.stderr


def test_a_closed_pipe_is_quiet(shell):
    done = shell("costmodel hardware list --format csv --long | head -1; echo ${PIPESTATUS[0]}")
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "0"
    done = shell("costmodel hardware list | true; echo ${PIPESTATUS[0]}")
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_full_or_closed_output_is_one_sentence(shell):
    for place in ("> /dev/full", ">&-"):
        done = shell(f"costmodel hardware list {place}")
        assert done.returncode == 2
        assert done.stderr.startswith("costmodel: error: cannot write to standard output: ")
        assert done.stderr.count("\n") == 1


def test_a_closed_standard_error_changes_nothing_else(shell):
    done = shell("costmodel plan nosuch --on dgx-h100:64 2>&-")
    assert (done.returncode, done.stdout) == (2, "")
    assert shell("costmodel plan 1B --on dgx-h100:8 2>&- <&- | head -1").stdout.startswith("1b on dgx-h100:8")


def test_an_interrupt_is_quiet(tmp_path):
    command = [*PYTHON, *LIST, "--format", "csv", "--long"]  # more than a pipe holds, so that it is still at it
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == b""


def test_an_interrupt_while_modules_load(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("costmodel.cli.boundary.run", interrupted)
    with pytest.raises(SystemExit) as caught:
        main()
    assert (caught.value.code, *capsys.readouterr()) == (130, "", "")


def test_a_file_is_written_and_standard_output_is_silent(shell):
    done = shell("costmodel hardware list -o a.md && head -c 4 a.md && ls -A")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "### a.md\n"


def test_completion_scripts(costmodel):
    for name in ("bash", "zsh", "fish"):
        done = costmodel(_COSTMODEL_COMPLETE=f"source_{name}")
        assert done.returncode == 0
        assert "_COSTMODEL_COMPLETE" in done.stdout
    done = costmodel(_COSTMODEL_COMPLETE="complete_bash", COMP_WORDS="costmodel hardw", COMP_CWORD="1")
    assert done.stdout.split() == ["hardware"]


def test_the_launcher_of_a_checkout(shell):
    done = shell(f'"{sys.executable}" "{ROOT}/cli.py" --version')
    assert done.stdout == f"costmodel {__version__}\n"


def test_a_placement_is_said_by_where_each_axis_lies(costmodel):
    """With blanks as an option, with commas in a layout; both are answered by dimension, with the same step."""
    asked = ("llama-3-8b", "--on", "tpu-v5p:4x4x4", "--batch", "64", "--format", "json")
    planned = costmodel("plan", *asked, "--placement", "tp:x fsdp:yz", "--top", "1")
    assert (planned.returncode, planned.stderr) == (0, "")
    best = json.loads(planned.stdout)["results"][0]
    assert best["layout"].endswith("placement=x:tp4/y:dp4/z:dp4")
    layout = best["layout"].replace("x:tp4/y:dp4/z:dp4", "tp:x,fsdp:yz")
    again = json.loads(costmodel("train", *asked, "--layout", layout).stdout)["results"][0]
    assert (again["layout"], again["step_time_s"]) == (best["layout"], best["step_time_s"])


def test_a_twisted_torus_as_a_process(costmodel):
    done = costmodel("collective", "all-to-all", "--size", "1GiB", "--on", "tpu-v4:4x4x8_twisted")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1.745 times less than on the plain torus" in " ".join(done.stdout.split())
    refused = costmodel("plan", "llama-3-8b", "--on", "tpu-v4:4x4x4_twisted")
    assert refused.returncode == 2
    assert "tpu-v4:4x4x8_twisted" in refused.stderr


def test_ends_of_a_pipeline_with_both_on_one_rank(costmodel):
    """61 layers on DualPipe's sixteen ranks, as DeepSeek-V3 was trained; what cannot be is refused with what can."""
    asked = ("train", "deepseek-v3", "--on", "h800-cluster:2048", "--batch", "15360", "--seq", "4096", "--layout")
    done = costmodel(*asked, "pp=16 ep=64 schedule=dualpipe first=4 last=1", "--format", "json")
    assert "schedule=dualpipe first=4 last=1" in json.loads(done.stdout)["results"][0]["layout"]
    refused = costmodel(*asked, "pp=16 ep=64 schedule=dualpipe first=4 last=2")
    assert refused.returncode == 2
    assert "first and last leave each of the other stages as many layers" in refused.stderr
    assert "the nearest legal one is" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_an_interrupted_plan_shows_the_best_so_far(monkeypatch, capsys):
    from costmodel.cli import boundary, progress

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(progress.Progress, "share", interrupted)
    monkeypatch.setattr("costmodel.runtime.BLOCK", 20_000)
    line = ["plan", "llama-3.1-405b", "--on", "dgx-h100:16384"]
    assert boundary.run(line) == 130
    shown = capsys.readouterr()
    assert "% of the search: the best so far" in " ".join(shown.out.split())
    assert "not looked at" in shown.out
    assert shown.err == ""
    assert boundary.run([*line, "--format", "json"]) == 130
    told = json.loads(capsys.readouterr().out)
    assert 0 < told["share_searched"] < 1
    assert told["results"][0]["step_time_s"] > 0
    assert sum(rule["count"] for rule in told["rejected"]) == told["searched"] - told["fitting"]
