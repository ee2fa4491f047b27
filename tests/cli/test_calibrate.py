"""`costmodel calibrate` as a process: the overlay that it writes changes what another command says."""

import json
import signal
import subprocess
import time

import pytest

from costmodel.catalog.catalog import Catalog
from tests.cli.conftest import PYTHON, environment
from tests.studies.calibration import synthetic


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    true = synthetic.scaled(folder / "true", "links/nvlink4.yaml", {r"(?:ll|ll128|simple)_share": 0.8})
    text = synthetic.nccl_log("all-gather", "dgx-h100:1x8", true, chips=8)
    (folder / "all_gather_perf.txt").write_text(text)
    return folder / "all_gather_perf.txt"


def test_the_overlay_is_what_another_command_predicts_by(costmodel, log):
    done = costmodel("calibrate", str(log), "--on", "dgx-h100:8", "-o", "mine")
    assert (done.returncode, done.stderr) == (0, "")
    assert "give --catalog mine to any command" in done.stdout
    assert costmodel("catalog", "check", "--catalog", "mine").returncode == 0
    asked = ("collective", "all-gather", "--size", "1GiB", "--on", "dgx-h100:8", "--format", "json")
    before, after = (json.loads(costmodel(*asked, *more).stdout) for more in ((), ("--catalog", "mine")))
    measured = next(float(line.split()[5]) for line in log.read_text().splitlines() if line.split()[:1] == [str(2**30)])
    assert after["results"][0]["time_s"] == pytest.approx(measured * 1e-6, rel=0.01)
    assert before["results"][0]["time_s"] < 0.9 * after["results"][0]["time_s"]
    again = costmodel("calibrate", str(log), "--on", "dgx-h100:8", "-o", "mine")
    assert again.returncode == 2
    assert again.stderr.startswith("costmodel: error: 'mine/links/nvlink4.yaml' is there already")
    assert costmodel("calibrate", str(log), "--on", "dgx-h100:8", "-o", "mine", "--force").returncode == 0


def test_json_and_csv_hold_errors_and_constants(costmodel, log):
    told = json.loads(costmodel("calibrate", str(log), "--on", "dgx-h100:8", "--format", "json").stdout)
    (fit,) = told["results"]
    assert fit["after_median_abs_error"] < fit["before_median_abs_error"]
    assert {one["constant"] for one in fit["constants"] if not one["unchanged_because"]} == {"share of rings"}
    assert told["written"] == []
    rows = costmodel("calibrate", str(log), "--on", "dgx-h100:8", "--format", "csv", "--long").stdout.splitlines()
    assert rows[0] == "kind,constant,of,numbers,unit,before,after,low,high,unchanged_because"
    assert len(rows) == 1 + len(fit["constants"])
    assert costmodel("calibrate", str(log), "--on", "dgx-h100:8", "-o", "answer.json").stdout == ""


def test_a_file_that_is_none_of_these_says_what_would_be(costmodel, tmp_path):
    (tmp_path / "notes.txt").write_text("it was slow\n")
    done = costmodel("calibrate", "notes.txt", "--on", "dgx-h100:8")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "all_reduce_perf" in done.stderr


def test_an_interrupt_leaves_the_folder_as_it_was(costmodel, log, tmp_path):
    table = tmp_path / "products.csv"
    table.write_text(synthetic.products("h100-sxm", Catalog.open(), count=400))
    assert costmodel("calibrate", str(log), "--on", "dgx-h100:8", "-o", "mine").returncode == 0
    before = {path: path.read_bytes() for path in (tmp_path / "mine").rglob("*") if path.is_file()}
    words = [*PYTHON, "calibrate", str(log), "products.csv", "--on", "dgx-h100:8", "-o", "mine", "--force"]
    running = subprocess.Popen(words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1.5)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert (running.returncode, out, err) == (130, b"", b"")
    assert {path: path.read_bytes() for path in (tmp_path / "mine").rglob("*") if path.is_file()} == before
