"""Published rows become questions: both kinds of tables, machines, models, defaults, and reasons for what is skipped."""

import csv
from dataclasses import replace

import pytest

from costmodel.catalog.catalog import Catalog
from costmodel.errors import InputError
from costmodel.studies.validation import memory, runs, training
from costmodel.studies.validation.machines import Machines, Place
from costmodel.studies.validation.prepared import Preparing
from costmodel.studies.validation.rows import published, read_table
from costmodel.studies.validation.shapes import Shapes

CATALOG = Catalog.open()
THEIRS = [
    "id",
    "source_key",
    "source",
    "model",
    "accelerator",
    "n_accel",
    "accel_per_node",
    "network",
    "framework",
    "seq_len",
    "global_batch",
    "micro_batch",
    "tp",
    "sp",
    "pp",
    "vpp",
    "cp",
    "ep",
    "dp",
    "sharding",
    "precision",
    "recompute",
    "attention_kernel",
    "overlap",
    "step_time_s",
    "tflops_per_accel",
    "tflops_convention",
    "flops_ratio_check",
    "mfu",
    "tokens_per_s_per_accel",
    "peak_mem_gib",
    "total_accel_hours",
    "tokens_total",
    "step_time_derived_s",
    "derivation",
    "completeness",
    "notes",
]
PLAIN = {
    "id": "one",
    "source_key": "paper",
    "model": "llama3-8b",
    "accelerator": "h100-sxm",
    "n_accel": "64",
    "accel_per_node": "8",
    "network": "rdma-400gbps-per-gpu",
    "framework": "torchtitan + torch.compile",
    "seq_len": "8192",
    "global_batch": "128",
    "micro_batch": "2",
    "tp": "1",
    "pp": "1",
    "dp": "64",
    "sharding": "fsdp2 full shard",
    "precision": "bf16",
    "recompute": "selective (op)",
    "attention_kernel": "flash (SDPA)",
    "step_time_s": "2.9",
}


def table(path, *rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, THEIRS)
        writer.writeheader()
        writer.writerows(PLAIN | row for row in rows)
    return path


def outcomes(tmp_path, *rows, **more):
    return list(training.outcomes(CATALOG, table(tmp_path / "runs.csv", *rows), **more))


@pytest.fixture(scope="module")
def preparing():
    return Preparing(CATALOG, None)


@pytest.fixture(scope="module")
def shipped():
    return {run.id: run for run in runs.read_runs(published("training"))}


@pytest.mark.parametrize(
    ("run", "on", "layout"),
    [
        (
            "kor-530B-seqsel",
            "dgx-a100:280",
            "tp=8 pp=35 dp=1 v=3 mbs=1 zero=0 sp=1 recompute=attention schedule=interleaved placement=tp-dp-pp",
        ),
        (
            "bs-bloom-main",
            "dgx-a100:384",
            "tp=4 pp=12 dp=8 v=1 mbs=2 zero=1 sp=0 recompute=full schedule=1f1b placement=tp-dp-pp",
        ),
        (
            "zb-04",
            "dgx-a100:8",
            "tp=1 pp=8 dp=1 v=1 mbs=3 zero=0 sp=0 recompute=none schedule=zb-2p placement=tp-dp-pp",
        ),
        (
            "llmf-012",
            "dgx-h100:128",
            "tp=1 pp=1 dp=128 v=1 mbs=6 zero=3 sp=0 recompute=none schedule=1f1b placement=tp-dp-pp",
        ),
        (
            "tt-37",
            "dgx-a100:64",
            "tp=1 pp=1 dp=64 v=1 mbs=1 zero=3 sp=0 recompute=selective schedule=1f1b placement=tp-dp-pp",
        ),
        ("mxt-031", "tpu-v5p:64", "tp=4 pp=1 dp=16 v=1 mbs=24 zero=3 sp=1 recompute=light schedule=1f1b"),
        (
            "trec-43",
            "tpu-v7:4x8x8",
            "tp=1 cp=4 cp_type=all-gather pp=1 dp=64 v=1 mbs=1 zero=3 sp=0 recompute=selective schedule=1f1b",
        ),
    ],
)
def test_layouts_of_known_runs(run, on, layout, shipped, preparing):
    found = preparing.prepare(shipped[run])
    assert found.workload.machine.name_as_typed == on
    assert str(found.layout).startswith(layout)


def test_shipped_tables_read_without_a_reason_and_ids_are_unique(shipped):
    rows = list(runs.read_runs(published("training")))
    assert len(rows) == len(shipped) > 700
    assert [row for row in rows if isinstance(row, runs.Unread)] == []
    assert all(row.citation for row in rows)


def test_both_kinds_of_columns_say_the_same(tmp_path):
    theirs = table(
        tmp_path / "theirs.csv",
        {},
        {"id": "two", "network": "ib-hdr-8x200", "recompute": "full", "notes": "HFU=0.7", "mfu": "55"},
    )
    first = list(runs.read_runs(theirs))
    ours = tmp_path / "ours.csv"
    with ours.open("w", newline="") as file:
        writer = csv.DictWriter(file, runs.OURS)
        writer.writeheader()
        writer.writerows(runs.as_ours(run) for run in first)
    assert list(runs.read_runs(ours)) == first


def test_machines_are_as_the_source_describes_them(shipped, preparing):
    bloom = preparing.prepare(shipped["bs-001"]).workload.machine
    assert bloom.network[0].link.bandwidth.value * bloom.cluster.network[0].links_per_host / 8 == pytest.approx(6.25e9)
    odd = Machines(CATALOG).at(Place("v100-sxm2-16gb", 16, 4, 12.5))
    assert (odd.chip.name, odd.dimensions[0].size, odd.cluster.chips_per_host) == ("v100-sxm2-16gb", 4, 4)
    assert Machines(CATALOG).at(Place("h100-sxm-500w", 8, 8)).chip.name == "h100-sxm-500w"
    assert Machines(CATALOG).at(Place("gb300", 256, 4)).dimensions[0].size == 64
    with pytest.raises(InputError, match="did you mean"):
        Machines(CATALOG).chip("h100-smx")


def test_a_step_time_is_taken_as_printed_then_from_throughput_then_from_flops(tmp_path):
    printed, derived, flops, unknown = outcomes(
        tmp_path,
        {},
        {"step_time_s": "", "step_time_derived_s": "3.1"},
        {"step_time_s": "", "tflops_per_accel": "400", "tflops_convention": "6*N + full (non-causal) attention"},
        {"step_time_s": "", "tflops_per_accel": "400", "tflops_convention": "unstated"},
    )
    assert (printed.measured, derived.measured) == (2.9, 3.1)
    tokens, flop = 128 * 8192, 3 * 2 * (8.03e9 - 128256 * 4096) + 12 * 32 * 4096 * 8192
    assert flops.measured == pytest.approx(tokens * flop / (64 * 400e12), rel=2e-3)
    assert unknown.measured is None and "no step time" in unknown.skipped


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"model": "llama3-9b"}, "did you mean"),
        ({"accelerator": "h101-sxm"}, "unknown chip"),
        ({"precision": "int4"}, "is not understood"),
        ({"recompute": "a little"}, "recompute 'a little' is not understood"),
        ({"n_accel": "sixty"}, "n_accel is 'sixty', not a number above 0"),
        ({"n_accel": "-8"}, "not a number above 0"),
        ({"n_accel": "nan"}, "not a number above 0"),
        ({"micro_batch": "0.3"}, "a micro-batch of 0.3 sequences"),
        ({"seq_len": ""}, "the sequence length is not stated"),
        ({"tp": "3"}, "does not divide the 64 chips"),
        ({"tp": "", "pp": "", "dp": ""}, "the layout is not stated"),
        ({"global_batch": "100"}, "an illegal layout"),
        ({"network": "unstated", "n_accel": "63"}, "63 chips"),
        ({"notes": "NOT a training step"}, "not a training step but one layer"),
    ],
)
def test_a_row_that_is_not_specified_enough_is_skipped_with_its_reason(row, reason, tmp_path):
    (found,) = outcomes(tmp_path, row)
    assert found.predicted is None
    assert reason in found.skipped
    assert found.measured == 2.9


def test_unstated_fields_take_the_defaults_of_the_table(tmp_path, preparing):
    row = {
        "tp": "8",
        "dp": "8",
        "sharding": "",
        "precision": "",
        "recompute": "",
        "micro_batch": "",
        "framework": "Megatron-Bridge",
    }
    (run,) = runs.read_runs(table(tmp_path / "runs.csv", row))
    found = preparing.prepare(run)
    assert str(found.layout).startswith("tp=8 pp=1 dp=8 v=1 mbs=1 zero=1 sp=1 recompute=none")
    assert found.workload.dtype == "bf16"
    assert len(found.assumed) == 4
    old = replace(run, traits=frozenset({"before-2023"}))
    assert str(preparing.prepare(old).layout).startswith("tp=8 pp=1 dp=8 v=1 mbs=1 zero=0 sp=0")


def test_unstated_recomputation_is_full_only_where_the_tensors_could_not_fit(tmp_path, preparing):
    (run,) = runs.read_runs(table(tmp_path / "runs.csv", {"recompute": "", "framework": "fms", "seq_len": "65536"}))
    found = preparing.prepare(run)
    assert found.layout.recompute == "full"
    assert preparing.prepare(replace(run, sequence_length=8192)).layout.recompute == "none"
    titan = replace(run, sequence_length=8192, framework="torchtitan")
    assert preparing.prepare(titan).layout.recompute == "selective"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"micro_batch": ""}, "the micro-batch is not stated"),
        ({"notes": "LoRA"}, "fine-tuning"),
        ({"notes": "tokendrop"}, "tokens are dropped"),
        ({"dp": "32"}, "the layout does not multiply out"),
        ({}, ""),
    ],
)
def test_headline_rules(row, words, tmp_path):
    (found,) = outcomes(tmp_path, row)
    assert found.left_out == words
    assert found.headline == (not words)


def test_models_come_from_the_given_file_first(tmp_path):
    columns = "name,family,layers,hidden,ffn_hidden,heads,kv_heads,head_dim,vocab,gated_mlp,tied_embeddings,norm_pos,moe_experts,moe_top_k,moe_shared_experts,moe_expert_ffn,moe_dense_layers,mla_q_lora,mla_kv_lora,mla_qk_nope,mla_qk_rope,mla_v_head,source,notes"
    given = tmp_path / "models.csv"
    given.write_text(
        f"{columns}\nmine,llama,2,1024,4096,16,,,32000,true,false,RMSNorm,,,,,,,,,,,me,\nhalf,gpt,,1024,4096,16,,,32000,false,true,LayerNorm,,,,,,,,,,,me,\n"
    )
    shapes = Shapes(CATALOG, given)
    mine = shapes.model("mine")
    assert (mine.layers, mine.kv_heads, mine.head_size, mine.norm) == (2, 16, 64, "rmsnorm")
    with pytest.raises(InputError, match="of half the layers are not known"):
        shapes.model("half")
    assert shapes.model("gpt3-175b").layers == 96
    (found,) = outcomes(tmp_path, {"model": "mine"}, models=given)
    assert found.predicted is not None
    given.write_text("name,layers\nmine,2\n")
    with pytest.raises(InputError, match="lacks the columns"):
        Shapes(CATALOG, given)


@pytest.mark.parametrize(
    "name", ["deepseek-v3", "qwen3-30b-a3b", "moonlight-16b", "kimi-k2", "megascale-175b", "palm-540b", "internlm-7b"]
)
def test_shapes_of_models_that_published_tables_name(name):
    assert Shapes(CATALOG, None).model(name).layers > 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("id,id\n1,2\n", "the column 'id' is there twice"),
        ("id,model\n1\n", ":2: 1 cells, but the table has 2 columns"),
        ('id,model\n1,"x\n', "unexpected end of data"),
        ("\0", "empty|line contains NUL|columns"),
    ],
)
def test_a_file_that_is_no_table_is_an_error_with_its_line(text, message, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        list(runs.read_runs(path))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot read the table"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot read the table"):
        read_table(tmp_path)
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not text in UTF-8"):
        read_table(tmp_path / "binary.csv")


def test_a_shape_that_nobody_means_is_a_reason(tmp_path):
    columns, rows = read_table(published("megatron_memory"))
    plain = next(row for row in rows if row.text("test") == "gpt3_mcore_te_tp1_pp1_resume_torch_dist_dist_optimizer")
    path = tmp_path / "odd.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerow({**plain.cells, "heads": "1000000", "head_size": ""})
    found = list(memory.outcomes(CATALOG, path))
    assert found
    assert all("cannot be meant" in one.skipped for one in found)
