"""Help is the documentation: every command says what it does, explains each option, and shows lines that work."""

import re
import shlex
import shutil

import pytest
import typer

from costmodel.catalog.catalog import Catalog, shipped
from costmodel.cli.app import build
from costmodel.cli.boundary import run
from tests.cli.conftest import ROOT


def leaves(command, path=()):
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
    else:
        for name, child in inner.items():
            yield from leaves(child, (*path, name))


COMMANDS = dict(leaves(typer.main.get_command(build())))
EXAMPLES = [
    line.strip()
    for command in COMMANDS.values()
    for line in re.findall(r"^  costmodel .*", command.epilog, re.MULTILINE)
]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_and_option_is_explained(path):
    command = COMMANDS[path]
    assert command.help
    assert "Examples:" in command.epilog
    assert all(parameter.help for parameter in command.params)
    assert {"format", "output", "long", "catalog"} <= {parameter.name for parameter in command.params}


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_works(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COSTMODEL_CATALOG", raising=False)
    (tmp_path / "my-hardware" / "links").mkdir(parents=True)
    shutil.copy(shipped("hardware") / "links" / "nvlink4.yaml", tmp_path / "my-hardware" / "links")
    for mine, theirs in (("my_runs.csv", "training.csv"), ("my_models.csv", "models.csv")):
        shutil.copy(shipped("tables") / "published" / theirs, tmp_path / mine)
    measured(tmp_path)
    assert run(shlex.split(line)[1:]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert bool(shown.out) != bool(re.search(r"-o \S+\.\w+", line))


def measured(folder):
    """The measurements that examples name."""
    log = (ROOT / "docs" / "how-to" / "examples" / "all_gather_perf.txt").read_text()
    for name in ("all_gather_perf.txt", "alltoall_perf.txt"):
        (folder / name).write_text(log)
    (folder / "products.csv").write_text("m,n,k,dtype,time_us\n8192,8192,8192,bf16,1600\n16,8192,8192,bf16,52\n")
    runs = (shipped("tables") / "published" / "training.csv").read_text().splitlines()
    some = [line for line in runs if ",llm-foundry," in line and ",h100" in line][:6]
    (folder / "my_steps.csv").write_text("\n".join([runs[0], *some]) + "\n")


def test_the_help_of_a_machine_command_names_the_clusters(capsys):
    run(["train", "--help"])
    assert "dgx-h100," in capsys.readouterr().out


def test_help_names_the_defaults_of_the_catalog():
    """What an option says is taken without it is what hardware/assumptions/workload.yaml has."""
    taken = {name: number.value for name, number in Catalog.open().assumptions("workload").items()}
    said = {parameter.name: parameter.help for parameter in COMMANDS["train",].params}
    words = {
        "seq": f"default {taken['sequence_length']:.0f},",
        "batch": f"default {taken['batch_tokens'] / 1e6:g}M tokens, {taken['batch_tokens_large'] / 1e6:g}M from "
        f"{taken['large_model_parameters'] / 1e9:g}B parameters on",
        "tokens": f"default {taken['train_tokens'] / 1e12:g}T.",
    }
    for option, text in words.items():
        assert text in said[option]
