"""`--mtp` as a person types it."""

import csv
import io
import json

TRAIN = ("train", "deepseek-v3", "--on", "h800-cluster:2048", "--seq", "4096", "--batch", "15360")
LAYOUT = ("--layout", "tp=2 ep=64 pp=16 zero=1 first=4 last=1")


def test_train_with_one_module_as_csv_and_json(costmodel):
    by_format = [costmodel(*TRAIN, *LAYOUT, "--mtp", "1", "--format", wanted) for wanted in ("csv", "json")]
    assert [done.stderr for done in by_format] == ["", ""]
    (row,) = csv.DictReader(io.StringIO(by_format[0].stdout))
    (result,) = json.loads(by_format[1].stdout)["results"]
    assert int(row["multi_token_prediction"]) == result["multi_token_prediction"] == 1
    assert float(row["step_time_s"]) == result["step_time_s"]
    (plain,) = csv.DictReader(io.StringIO(costmodel(*TRAIN, *LAYOUT, "--format", "csv").stdout))
    assert int(plain["multi_token_prediction"]) == 0
    assert float(row["step_time_s"]) > float(plain["step_time_s"])


def test_the_long_name_is_the_same_option(costmodel):
    short, long = (
        costmodel(*TRAIN, *LAYOUT, option, "1", "--stages") for option in ("--mtp", "--multi-token-prediction")
    )
    assert short.stdout == long.stdout
    assert "1 layer and 1 MTP module" in " ".join(short.stdout.split())


def test_nonsense_is_answered_in_a_line(costmodel):
    for value, said in (("x", "is not a whole number"), ("-1", "give 0 or more"), ("99", "published with 1")):
        done = costmodel(*TRAIN, *LAYOUT, "--mtp", value)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr and "Traceback" not in done.stderr


def test_help_names_it(costmodel):
    for command in ("train", "plan", "explain"):
        assert "--mtp" in costmodel(command, "--help").stdout


def test_explain_shows_the_modules(costmodel):
    done = costmodel("explain", "losses_and_modules", *TRAIN[1:], *LAYOUT, "--mtp", "1")
    assert done.stderr == ""
    assert "losses_compute" in done.stdout
