"""The frame of the command line, driven with a small app of its own."""

from typing import Annotated

import pytest
import typer

from costmodel.cli import boundary
from costmodel.cli.answering import answering
from costmodel.cli.app import new_app
from costmodel.errors import InputError
from tests.report.answers import Said


def say(
    word: Annotated[str, typer.Argument(help="What to say.")],
    count: Annotated[int, typer.Option(min=1, help="How often.")] = 1,
) -> Said:
    """Say a word."""
    if word == "bad":
        raise InputError("the word 'bad'\nis not said")
    if word == "interrupt":
        raise KeyboardInterrupt
    if word == "broken":
        raise ZeroDivisionError("division by zero")
    return Said(rows=({"word": word, "count": count},), exit_code=int(word == "no"))


def folder(catalog) -> Said:
    """Say which folder the catalog has."""
    return Said(rows=({"folder": str(catalog.extra)},))


@pytest.fixture
def run(monkeypatch, capsys):
    app = new_app()
    app.command()(answering(say))
    app.command()(answering(folder))
    monkeypatch.setattr(boundary, "build", lambda _: app)
    monkeypatch.delenv("COSTMODEL_DEBUG", raising=False)
    monkeypatch.delenv("COSTMODEL_CATALOG", raising=False)

    def run(*arguments):
        code = boundary.run(arguments)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def test_an_answer_is_written_and_its_code_is_the_exit_code(run):
    assert run("say", "yes", "--format", "csv") == (0, "word,count\nyes,1\n", "")
    assert run("say", "no", "--count", "2", "--format", "csv") == (1, "word,count\nno,2\n", "")


def test_the_shared_options_write_a_file(run, tmp_path):
    assert run("say", "yes", "-o", str(tmp_path / "a.csv")) == (0, "", "")
    assert run("say", "yes", "--long", "--output", str(tmp_path / "b.csv")) == (0, "", "")
    assert (tmp_path / "a.csv").read_text() == "word,count\nyes,1\n"
    assert (tmp_path / "b.csv").read_text() == "name,item,time_s\nring,latency,1e-06\n"


def test_the_catalog_comes_from_the_option_or_the_environment(run, tmp_path, monkeypatch):
    option, environment = tmp_path / "option", tmp_path / "environment"
    for place in (option, environment):
        place.mkdir()
        (place / "sources.yaml").touch()
    assert run("folder", "--format", "csv")[1] == "folder\nNone\n"
    monkeypatch.setenv("COSTMODEL_CATALOG", str(environment))
    assert run("folder", "--format", "csv")[1] == f"folder\n{environment}\n"
    assert run("folder", "--catalog", str(option), "--format", "csv")[1] == f"folder\n{option}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["say", "bad"], "the word 'bad' is not said"),
        (["sya", "yes"], "unknown command 'sya': did you mean say?"),
        (["xxxxxxx"], "unknown command 'xxxxxxx': choose from folder, say"),
        (["say", "yes", "--fromat", "csv"], "no such option --fromat: did you mean --format?"),
        (["say", "yes", "--format", "xml"], "'xml' is not one of 'table', 'csv', 'json', 'markdown'"),
        (["say", "yes", "--count", "0"], "0 is not in the range x>=1"),
        (["say", "yes", "--count", "many"], "'many' is not a valid int"),
        (["say"], "; see costmodel say --help"),
        (["say", "yes", "no"], "(no); see costmodel say --help"),
        (["say", "yes", "-o"], "option '-o' requires an argument"),
        (["say", "yes", "-o", "a.xlsx"], "end its name in one of .csv, .json, .md, .txt"),
        (["folder", "--catalog", "/missing"], "'/missing'"),
        (["--no-such"], "no such option: --no-such; see costmodel --help"),
    ],
)
def test_bad_input_is_one_sentence_on_standard_error(run, arguments, sentence):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("costmodel: error: ")
    assert err.count("\n") == 1
    assert sentence in err


def test_interrupted(run):
    assert run("say", "interrupt") == (130, "", "")


def test_an_internal_error_asks_for_a_report(run, monkeypatch):
    code, out, err = run("say", "broken")
    assert (code, out) == (3, "")
    assert "internal error, ZeroDivisionError: division by zero" in err
    assert "COSTMODEL_DEBUG=1" in err
    monkeypatch.setenv("COSTMODEL_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run("say", "broken")


def test_no_arguments_is_help(run):
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out.startswith("Usage: costmodel")
