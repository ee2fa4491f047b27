"""`costmodel validate` as a process."""

import csv
import io
import json
import time

from costmodel.studies.validation.rows import published


def test_json_csv_and_tables_say_the_same(costmodel):
    start = time.monotonic()
    done = costmodel("validate", "training", "--format", "json")
    assert time.monotonic() - start < 20
    assert (done.returncode, done.stderr) == (0, "")
    (first, *_) = json.loads(done.stdout)["results"]
    table = next(csv.DictReader(io.StringIO(costmodel("validate", "training", "--format", "csv").stdout)))
    assert float(table["median_abs_error"]) == first["median_abs_error"]
    text = costmodel("validate", "training").stdout
    assert f"{100 * first['median_abs_error']:.1f}%" in text
    assert "Furthest from what was measured" in text


def test_rows_of_a_table_with_the_columns_of_its_source(costmodel, tmp_path):
    columns = "id,source_key,model,accelerator,n_accel,framework,seq_len,global_batch,micro_batch,tp,pp,dp,sharding,precision,recompute,step_time_s,peak_mem_gib"
    (tmp_path / "runs.csv").write_text(
        f"{columns}\nmine,me,llama3-8b,h100-sxm,64,torchtitan,8192,128,2,1,1,64,fsdp,bf16,selective (op),2.9,60\n"
        "other,me,llama3-8b,h100-sxm,64,torchtitan,8192,128,2,1,1,64,fsdp,int4,none,2.9,\n"
    )
    done = costmodel("validate", "--table", "runs.csv", "--rows", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = {(row["id"], row["quantity"]): row for row in json.loads(done.stdout)["results"]}
    assert set(rows) == {("mine", "step_time_s"), ("other", "step_time_s"), ("mine", "reserved_bytes")}
    assert rows["mine", "step_time_s"]["predicted"] > 1
    mine = rows["mine", "step_time_s"]
    assert mine["low"] < mine["high"]
    assert (mine["error_class"], mine["unseen"]) == ("dense_16_bits", True)
    assert rows["other", "step_time_s"]["low"] is None
    assert rows["mine", "reserved_bytes"]["measured"] == 60 * 2**30
    assert "int4" in rows["other", "step_time_s"]["skipped"]


def test_bad_input_is_one_sentence_and_code_2(costmodel):
    for arguments in (
        ["trainin"],
        ["--by", "chips"],
        ["--table", "no.csv"],
        ["training", "--table", str(published("megatron_memory"))],
    ):
        done = costmodel("validate", *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("costmodel: error: ") and done.stderr.count("\n") == 1
