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


RUN = "llama3-8b,h100-sxm,64,torchtitan,8192,128,2,1,1,64,fsdp,bf16,selective (op),2.9,60\n"
COLUMNS = "id,source_key,model,accelerator,n_accel,framework,seq_len,global_batch,micro_batch,tp,pp,dp,sharding,precision,recompute,step_time_s,peak_mem_gib\n"


def test_several_kinds_are_told_side_by_side_first(costmodel, tmp_path):
    (tmp_path / "runs.csv").write_text(f"{COLUMNS}mine,me,{RUN}")
    done = costmodel("validate", "--table", "runs.csv")
    assert (done.returncode, done.stderr) == (0, "")
    title, head, *rest = done.stdout.splitlines()
    assert (title, head.split()[:3]) == ("Error of predictions", ["kind", "n", "median"])
    table = rest[: rest.index("")]
    assert [line.split()[0] for line in table if line.startswith(("training ", "memory "))] == ["training", "memory"]
    assert "Error of predictions" not in costmodel("validate", "training", "--table", "runs.csv").stdout.splitlines()


def test_an_id_that_stands_twice_is_refused_with_both_lines(costmodel, tmp_path):
    (tmp_path / "runs.csv").write_text(f"{COLUMNS}mine,me,{RUN}other,me,{RUN}mine,me,{RUN}")
    done = costmodel("validate", "--table", "runs.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("costmodel: error: runs.csv:4: the id 'mine' is that of line 2 too")


def test_bad_input_is_one_sentence_and_code_2(costmodel):
    for arguments in (
        ["trainin"],
        ["--by", "chips"],
        ["--table", "no.csv"],
        ["training", "--table", str(published("megatron_memory"))],
        ["training", "--whole"],
        ["kernels", "--whole", "--table", "no.csv"],
    ):
        done = costmodel("validate", *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("costmodel: error: ") and done.stderr.count("\n") == 1


def test_numbers_that_nothing_could_have_are_reasons_to_skip_a_row(costmodel, tmp_path):
    (tmp_path / "kernels.csv").write_text(
        "id,kind,chip,implementation,precision,groups,rows,columns,features,weight_copies,time_us\n"
        "huge,matmul,h100-sxm,,bf16,1,1e308,4096,4096,1,100\n"
        "none,matmul,h100-sxm,,bf16,1,0,4096,4096,1,100\n"
    )
    (tmp_path / "collectives.csv").write_text(
        "source,chip,n_gpus,nodes,op,impl,dtype,bytes,time_us,algbw_GBps,busbw_GBps,how_read,note\n"
        "me,H100 SXM 8x400G,16,0.0000001,all_reduce,NCCL,fp16,1048576,50,,,table,\n"
        "me,H100 SXM,8.5,1,all_reduce,NCCL,fp16,1048576,50,,,table,\n"
    )
    for table, reasons in (
        ("kernels.csv", ["rows is '1e308', not a number from 1 to 2**40", "rows is '0', not a number from 1 to 2**40"]),
        ("collectives.csv", ["nodes is '0.0000001', not a whole number", "n_gpus is '8.5', not a whole number"]),
    ):
        done = costmodel("validate", "--table", table, "--rows", "--format", "json")
        assert (done.returncode, done.stderr) == (0, "")
        assert [row["skipped"] for row in json.loads(done.stdout)["results"]] == reasons
