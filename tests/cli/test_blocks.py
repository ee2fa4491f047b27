"""Models whose layers are put together in other ways, as a person asks for them."""

import csv
import io

import pytest

from tests.cli.conftest import ROOT

SCOUT = ("train", "llama-4-scout", "--on", "tpu-v5p:4x4x8", "--batch", "1024", "--format", "csv")
SHARDED = ("--layout", "tp=1 dp=128 mbs=1 zero=3 recompute=full")


def row(done):
    assert done.stderr == ""
    (found,) = csv.DictReader(io.StringIO(done.stdout))
    return found


def test_attention_in_chunks_is_trained(costmodel):
    """Where a sequence is one chunk nothing is saved; at four chunks three of four layers do a quarter of the pairs."""
    short, long = (row(costmodel(*SCOUT, *SHARDED, "--seq", seq)) for seq in ("8192", "32768"))
    ratio = float(long["time_attention_s"]) / float(short["time_attention_s"])
    assert 4 * (3 / 4 + 4 / 4) * 0.97 < ratio < 4 * (3 / 4 + 4 / 4) * 1.01  # half blocks on the diagonal weigh less


def test_chunks_are_shown(costmodel):
    shown = " ".join(costmodel("models", "show", "llama-4-scout").stdout.split())
    assert "attention chunk 8,192 window every 4" in shown


def test_layers_side_by_side_are_trained(costmodel, tmp_path):
    """PaLM's one sum a layer: half of the tensor-parallel traffic of the same sizes one after the other."""
    shipped = (ROOT / "models" / "palm-540b.yaml").read_text(encoding="utf-8")
    assert "parallel_block: true" in shipped
    (tmp_path / "models").mkdir()
    plain = shipped.replace("name: palm-540b", "name: in-turn").replace("aliases: [palm]", "aliases: []")
    plain = plain.replace("norms_per_layer: 1", "norms_per_layer: 2").replace(
        "parallel_block: true", "parallel_block: false"
    )
    (tmp_path / "models" / "in-turn.yaml").write_text(plain, encoding="utf-8")
    asked = ("--on", "tpu-v4:4x4x12", "--seq", "2048", "--batch", "256", "--format", "csv", "--catalog", str(tmp_path))
    layout = ("--layout", "tp=12 dp=16 mbs=1 zero=3 sp=0")
    beside, after = (row(costmodel("train", name, *asked, *layout)) for name in ("palm-540b", "in-turn"))
    assert 2 * float(beside["total_tp_s"]) == pytest.approx(float(after["total_tp_s"]))
    for what in ("step_time_s", "time_elementwise_s", "memory_activations_bytes"):
        assert float(beside[what]) < float(after[what])
    assert beside["mfu"] > after["mfu"]
