"""Wrong questions, end to end: one sentence on standard error that says what would do, exit code 2, no traceback."""

import shlex

import pytest

from costmodel.cli.boundary import run

TRAIN = "train llama-3-70b --on dgx-h100:512 "

CASES = {
    "train lama-3-70b --on dgx-h100:512": "did you mean llama-3-70b",
    "train llama-3-70b --on dgx-h10:512": "dgx-h100",
    "train llama-3-70b --on dgx-h100:500": "dgx-h100:496 or dgx-h100:504",
    "train llama-3-70b --on dgx-h100:0": "",
    "train llama-3-70b --on dgx-h100:-8": "",
    "train llama-3-70b --on dgx-h100:nan": "",
    "train llama-3-70b --on dgx-h100:1e400": "",
    "train llama-3-70b --on dgx-h100:9999999999999": "",
    "train llama-3-70b --on dgx-h100:64x9": "64x8",
    "train llama-3-70b --on tpu-v5p:3x5x7": "",
    "train llama-3-70b --on tpu-v5p:8x8": "",
    "train llama-3-70b --on tpu-v5p:0x4x4": "write tpu-v5p:16 or tpu-v5p:2x2x4\n",
    "train llama-3-70b --on 'dgx-h100:4M\n'": "write it like dgx-h100:512\n",
    "train llama-3-70b --on 'dgx-h100:8 8'": "write it like dgx-h100:512\n",
    "train llama-3-70b --on v5p-513": "",
    "train llama-3-70b": "--on",
    "train --on dgx-h100:512": "",
    "train nemotron-h-56b --on dgx-h100:512": "mamba2 layers",
    "train llama-3-70b --on dgx-h100:512 --layout ep=8": "leave them out",
    "train mixtral-8x7b --on dgx-h100:512 --layout ep=3": "ep divides the routed experts",
    "train mixtral-8x7b --on dgx-h100:512 --layout 'ep=8 dispatch=nodes'": "did you mean node?",
    "train missing.json --on dgx-h100:512": "missing.json",
    "train broken.json --on dgx-h100:512": "broken.json",
    "train hostile.json --on dgx-h100:512": "hostile.json",
    "train 0B --on dgx-h100:512": "",
    "train 7Gb --on dgx-h100:512": "",
    TRAIN + "--batch -1": "negative",
    TRAIN + "--batch 0": "zero",
    TRAIN + "--batch nan": "not finite",
    TRAIN + "--batch inf": "not finite",
    TRAIN + "--batch 16Gb": "suffixes",
    TRAIN + "--seq 0": "zero",
    TRAIN + "--seq 1e30": "",
    TRAIN + "--tokens many": "not a number",
    TRAIN + "--dtype bf61": "bf16",
    TRAIN + "--dtype ''": "''",
    TRAIN + "--attention ''": "--attention is empty: name one",
    TRAIN + "--launch ' '": "--launch is empty: name one",
    TRAIN + "--reduce-in ''": "--reduce-in is empty: name one",
    TRAIN + "--overlap ''": "choose from dp, none, tp",
    TRAIN + "--overlap none,tp": "give none alone",
    TRAIN + "--layout 'tp=8 dispatch=rank'": "llama-3-70b has none; leave them out",
    TRAIN + "--layout 'tp=8 ep_overlap=shared'": "llama-3-70b has none; leave them out",
    TRAIN + "--layout 'tp=8 shard=3'": 'is "tp=8 pp=1 dp=64 v=1 mbs=1 zero=1 ',
    "kernel launch --on h100-sxm --kernels 4 --each 1e308": "at most a day",
    "kernel launch --on h100-sxm --kernels 4 --each nan": "more than 0 s",
    "validate memry": "did you mean memory",
    "validate memry --table runs.csv": "did you mean memory",
    "hardware list -o loop.csv": "Symlink loop",
    TRAIN + "--seq -": "not a number",
    TRAIN + "--seq 0x10": "not a number",
    TRAIN + "--slices 0": "too small: give 1 or more",
    TRAIN + "--slices x": "--slices 'x' is not a whole number: give one in plain digits",
    TRAIN + "--slices 1_000": "not a whole number",
    TRAIN + "--slices \uff12": "not a whole number",
    TRAIN + "--slices " + "9" * 50: "too large",
    TRAIN + "--slices 2": "",
    TRAIN + "--layout tp=8,pp=4": "",
    TRAIN + "--layout 'tp=8 pp=7'": "pp=4",
    TRAIN + "--layout 'tp=8 tp=8'": "twice",
    TRAIN + "--layout 'pt=8'": "choose from cp, cp_type, dispatch, dp",
    TRAIN + "--layout 'tp=0'": "",
    TRAIN + "--layout 'tp=nan'": "",
    TRAIN + "--layout 'tp=8 zero=4'": "0, 1, 2, 3",
    TRAIN + "--layout 'tp=8 recompute=selectiv'": "did you mean selective",
    TRAIN + "--layout 'tp=8 recompute=full/200'": "one layer in more than the 80 of the model",
    TRAIN + "--layout 'tp=8 placement=pp-tp-xx'": "tp",
    TRAIN + "--layout 'tp=128 pp=1'": "nearest",
    "plan llama-3-70b --on dgx-h100:512 --top 0": "too small: give 1 or more",
    "plan llama-3-70b --on dgx-h100:512 --top x": "'x' is not a whole number",
    "plan llama-3-70b --on dgx-h100:512 --top 1000": "from 1 to",
    "collective all-reduce --on dgx-h100:64": "--size",
    "collective all-reduse --size 1GiB --on dgx-h100:64": "did you mean all-reduce",
    "collective all-reduce --size 1Gb --on dgx-h100:64": "bits or bytes",
    "collective all-reduce --size 1Gib --on dgx-h100:64": "bits or bytes",
    "collective all-reduce --size 1XB --on dgx-h100:64": "",
    "collective all-reduce --size -1 --on dgx-h100:64": "negative",
    "collective all-reduce --size 0 --on dgx-h100:64": "zero",
    "collective all-reduce --size nan --on dgx-h100:64": "not finite",
    "collective all-reduce --size 1GiB --on dgx-h100:64 --group 0": "too small",
    "collective all-reduce --size 1GiB --on dgx-h100:64 --group \u0663": "not a whole number",
    "collective all-reduce --size 1GiB --on dgx-h100:64 --stride 1.5": "not a whole number",
    "collective all-reduce --size 1GiB --sweep 1KiB:1GiB --on dgx-h100:64": "give one of the two",
    "collective all-reduce --size 1GiB --on dgx-h100:64 --dtype ''": "unknown dtype ''",
    "collective all-reduce --size 1GiB --on dgx-h100:64 --group 128": "",
    "collective all-reduce --size 1GiB --on dgx-h100:64 --axes x": "torus",
    "collective all-reduce --size 1GiB --on tpu-v5p:4x4x4 --axes xq": "",
    "collective all-reduce --size 1GiB --on dgx-h100:64 --algorithm rign": "did you mean ring",
    "collective all-reduce --size 1GiB --on dgx-h100:64 --dtype fp61": "fp16",
    "collective all-reduce --sweep 1GiB --on dgx-h100:64": "",
    "collective all-reduce --sweep 1GiB:1KiB --on dgx-h100:64": "",
    "collective send-recv --size 1MiB --on dgx-h100:64 --between moon": "",
    "collective dispatch --experts 8 --on dgx-h100:64": "--top-k",
    f"collective dispatch --experts {10**30} --top-k 8 --tokens 1 --hidden 1 --on dgx-h100:8": "--experts",
    "explain step_tim": "did you mean step_time",
    "explain step_time llama-3-70b": "machine",
    "explain step_time --only global_batch": "--on",
    "explain step_time --depth -1": "--depth '-1' is too small: give 0 or more",
    "explain step_time llama-3-70b --on dgx-h100:512 --row matmul": "matmul=ffn_in",
    "explain step_time llama-3-70b --on dgx-h100:512 --only nothing": "unknown quantity",
    "plan 7B --on dgx-h100:64 --top " + "9" * 5000: "9...",
    "plan llama-3-8b --on tpu-8t:4x4x4": "is unknown",
    "plan nemotron-h-56b --on dgx-h100:64": "has single-purpose-layers, mamba2 layers, whose training",
    "models show ~nobody-of-this-name/config.json": "no such file",
    "catalog check --catalog " + "x" * 5000: "not a folder",
    "models show lama": "",
    "hardware show dgx-h10": "dgx-h100",
    "hardware list chps": "chips",
    "hardware list --catalog missing": "missing",
    "hardware list --catalog ''": "--catalog is empty",
    "hardware list ''": "clusters",
    "train llama-3-70b --on bad:512 --catalog bad": "clusters/bad.yaml:2",
    "hardware list -o .": "",
    "hardware list -o /": "",
}


@pytest.mark.parametrize("line", CASES)
def test_bad_input_is_one_sentence(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COSTMODEL_CATALOG", raising=False)
    (tmp_path / "broken.json").write_text('{"architectures": ["LlamaForCausalLM"], ')
    (tmp_path / "hostile.json").write_text("[" * 100_000)
    (tmp_path / "runs.csv").write_text("kind,chip,precision,time_us\n")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "bad" / "clusters").mkdir(parents=True)
    (tmp_path / "bad" / "clusters" / "bad.yaml").write_text("name: bad\nname: worse\n")
    code = run(shlex.split(line))
    shown = capsys.readouterr()
    assert (code, shown.out) == (2, ""), shown.err
    assert shown.err.startswith("costmodel: error: ")
    assert shown.err.count("\n") == 1
    assert CASES[line] in shown.err
