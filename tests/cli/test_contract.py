"""The contract for scripts: the keys that docs/reference/json-contract.md promises, and that parts add up."""

import json
import re

import pytest

from costmodel.cli.boundary import run
from tests.cli.conftest import ROOT

RUN = [
    "model",
    "layout",
    "step_time_s",
    "step_time_p10_s",
    "step_time_p90_s",
    "error_class",
    "allocated_p10_bytes",
    "allocated_p90_bytes",
    "step_time_low_s",
    "step_time_high_s",
    "step_time_overlapped_s",
    "step_time_serial_s",
    "tokens_per_s",
    "mfu",
    "mfu_causal",
    "allocated_bytes",
    "reserved_bytes",
    "device_used_bytes",
    "recipe",
    "gradient_buckets",
    "allocated_low_bytes",
    "allocated_high_bytes",
    "capacity_bytes",
    "fits",
    "margin_bytes",
    "goodput",
    "goodput_low",
    "goodput_high",
    "mtbf_s",
    "checkpoint_bytes",
    "checkpoint_write_s",
    "checkpoint_interval_s",
    "run_time_with_failures_s",
    "chip_time_with_failures_s",
    "cost_with_failures_usd",
    "energy_with_failures_j",
    "run_time_s",
    "chip_time_s",
    "cost_usd",
    "energy_j",
    "time",
    "memory",
]
TIMING = [
    "algorithm",
    "size_bytes",
    "time_s",
    "time_p10_s",
    "time_p90_s",
    "error_class",
    "latency_s",
    "bandwidth_s",
    "algbw_bytes_per_s",
    "busbw_bytes_per_s",
    "bound",
]
KERNEL = [
    "kernel",
    "on",
    "precision",
    "implementation",
    "time_s",
    "low_time_s",
    "high_time_s",
    "work_flop",
    "traffic_bytes",
    "rate_flop_per_s",
    "share_of_peak",
    "share_of_bandwidth",
    "bound",
    "constants",
    "parts",
    "overlapped",
    "details",
    "better_shapes",
]
LAUNCH = ["launch", "time_s", "gap_s", "overhead_s"]
COUNTS = ["parameters", "active_parameters", "active_parameters_without_embedding"]
SEARCH = ["searched", "legal", "fitting", "search_seconds", "share_searched", "rejected"]

PROMISED = {
    "train llama-3-70b --on dgx-h100:512": RUN,
    "train 7B 70B --on tpu-v5p:4x4x8": RUN,
    "plan llama-3-70b --on dgx-h100:512": RUN,
    "plan llama-3-8b --on tpu-v5e:16x16": RUN,
    "collective all-reduce --size 1GiB --on dgx-h100:64x8": TIMING,
    "collective all-gather --size 1MiB --on tpu-v5p:4x4x4": TIMING,
    "collective barrier --on dgx-h100:64": TIMING,
    "kernel matmul --on h100-sxm -m 4096 -n 4096 -k 4096": KERNEL,
    "kernel norm --on h100-sxm --rows 4096 --columns 4096": KERNEL,
    "kernel launch --on h100-sxm --kernels 100 --each 5": LAUNCH,
    "hardware list": ["name", "aliases"],
    "models list": ["name", "aliases", *COUNTS],
    "models show llama-3.1-405b": COUNTS,
}


def answered(line, capsys):
    assert run([*line.split(), "--format", "json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return json.loads(shown.out)


@pytest.mark.parametrize("line", PROMISED)
def test_promised_keys(line, capsys):
    whole = answered(line, capsys)
    assert list(whole)[:3] == ["tool_version", "catalog_hash", "results"]
    assert whole["results"]
    for result in whole["results"]:
        assert set(PROMISED[line]) <= set(result)


@pytest.mark.parametrize("line", [line for line in PROMISED if line.startswith(("train", "plan"))])
def test_the_parts_add_up(line, capsys):
    for result in answered(line, capsys)["results"]:
        assert sum(result["time"].values()) == pytest.approx(result["step_time_s"], rel=1e-12)
        assert sum(result["memory"].values()) == pytest.approx(result["allocated_bytes"], rel=1e-12)
        assert result["allocated_bytes"] <= result["reserved_bytes"] <= result["device_used_bytes"]
        assert result["margin_bytes"] == pytest.approx(result["capacity_bytes"] - result["device_used_bytes"])
        assert result["step_time_low_s"] <= result["step_time_s"] <= result["step_time_high_s"]
        assert result["step_time_overlapped_s"] <= result["step_time_s"] <= result["step_time_serial_s"]
        assert result["fits"] in {"yes", "marginal", "no"}


def test_collectives_come_fastest_first_and_add_up(capsys):
    results = answered("collective all-reduce --size 1GiB --on dgx-h100:64x8", capsys)["results"]
    assert [r["time_s"] for r in results] == sorted(r["time_s"] for r in results)
    for r in results:
        assert r["latency_s"] + r["bandwidth_s"] == pytest.approx(r["time_s"])
        assert r["algbw_bytes_per_s"] == pytest.approx(r["size_bytes"] / r["time_s"])


def test_the_parts_of_a_kernel_add_up(capsys):
    (result,) = answered("kernel matmul --on h100-sxm -m 129 -n 4096 -k 7168", capsys)["results"]
    assert sum(result["parts"].values()) == pytest.approx(result["time_s"], rel=1e-12)
    assert result["better_shapes"][0]["shape"]["rows"] == 128


def test_plan_says_what_was_searched_and_its_layouts_are_taken_back(capsys):
    whole = answered("plan llama-3-70b --on dgx-h100:512 --batch 4M --top 3", capsys)
    assert set(SEARCH) <= set(whole)
    assert whole["searched"] >= whole["legal"] >= whole["fitting"] > 0
    assert sum(entry["count"] for entry in whole["rejected"]) == whole["searched"] - whole["fitting"]
    times = [result["step_time_s"] for result in whole["results"]]
    assert times == sorted(times)
    for result in whole["results"]:
        line = ["train", "llama-3-70b", "--on", "dgx-h100:512", "--batch", "4M", "--layout", result["layout"]]
        assert run([*line, "--format", "json"]) == 0
        again = json.loads(capsys.readouterr().out)["results"][0]
        assert again["layout"] == result["layout"]
        assert again["step_time_s"] == pytest.approx(result["step_time_s"], rel=1e-9)
        assert again["allocated_bytes"] == pytest.approx(result["allocated_bytes"], rel=1e-9)


def test_what_does_not_fit_exits_with_one(capsys):
    assert run(["train", "llama-3.1-405b", "--on", "dgx-h100:8", "--format", "json"]) == 1
    result = json.loads(capsys.readouterr().out)["results"][0]
    assert result["fits"] == "no"
    assert result["margin_bytes"] < 0


def test_every_promised_key_is_documented():
    page = (ROOT / "docs/reference/json-contract.md").read_text("utf-8")
    documented = set(re.findall(r"`([a-z0-9_]+)`", page))
    assert {key for keys in PROMISED.values() for key in keys} | set(SEARCH) <= documented
