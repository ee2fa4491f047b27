"""Generated files are in step with the equations, and `--check` names what is not."""

import pytest

from costmodel import generate


@pytest.mark.parametrize("name", generate.TARGETS)
def test_file_is_in_step(name):
    text = generate.TARGETS[name]()
    assert (generate.ROOT / name).read_text("utf-8") == text, "run python -m costmodel.generate"


@pytest.fixture
def two_files(tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "TARGETS", {"one.py": lambda: "ONE = 1\n", "two.py": lambda: "TWO = 2\n"})
    (tmp_path / "one.py").write_text("ONE = 1\n")
    return tmp_path


def test_check_names_what_is_out_of_step_and_writes_nothing(two_files, capsys):
    assert generate.main(["--check"]) == 1
    said = capsys.readouterr()
    assert "two.py" in said.out
    assert "one.py" not in said.out
    assert "python -m costmodel.generate" in said.err
    assert not (two_files / "two.py").exists()


def test_what_has_changed_is_written(two_files, capsys):
    assert generate.main([]) == 0
    assert capsys.readouterr().out == "rewrote: two.py\n"
    assert (two_files / "two.py").read_text() == "TWO = 2\n"
    assert generate.main(["--check"]) == 0


def test_what_an_earlier_run_left_over_is_named_and_removed(two_files, capsys):
    (two_files / "two.py").write_text("TWO = 2\n")
    (two_files / "three.py").write_text(f'"""{generate.NOTICE}\n"""\n')
    (two_files / "own.py").write_text('"""Written by hand."""\n')
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().out == "of no use any more: three.py\n"
    assert generate.main([]) == 0
    assert not (two_files / "three.py").exists()
    assert (two_files / "own.py").exists()
    assert generate.main(["--check"]) == 0
