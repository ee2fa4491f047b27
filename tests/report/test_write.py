"""Where answers go: formats by ending, files whole or not at all, unwritable places in one sentence."""

import json
import os
import stat
from pathlib import Path

import pytest

from costmodel.errors import InputError
from costmodel.report import Format, write
from costmodel.report.write import chosen_format, to_file
from tests.report.answers import Said


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.csv", "name,time_s"), ("a.json", "{"), ("a.md", "### Coll"), ("a.txt", "Collectives"), ("A.JSON", "{")],
)
def test_the_ending_sets_the_format(tmp_path, name, start):
    write(Said(), output=tmp_path / name)
    assert (tmp_path / name).read_text().startswith(start)
    assert os.listdir(tmp_path) == [name]


def test_a_given_format_wins_over_the_ending(tmp_path):
    write(Said(), Format.JSON, tmp_path / "a.csv", catalog_hash=lambda: "abc")
    assert json.loads((tmp_path / "a.csv").read_text())["catalog_hash"] == "abc"


@pytest.mark.parametrize("name", ["a", "a.xlsx", "a.csv.gz", ""])
def test_an_unknown_ending_is_refused(name):
    with pytest.raises(InputError, match=r"\.csv, \.json, \.md, \.txt"):
        chosen_format(None, Path(name))


def test_long_is_for_items(tmp_path):
    write(Said(), output=tmp_path / "a.csv", long=True)
    assert (tmp_path / "a.csv").read_text() == "name,item,time_s\nring,latency,1e-06\n"


def test_standard_output_gets_tables_and_the_hash_is_not_asked_for(capsys):
    write(Said(), catalog_hash=lambda: pytest.fail("asked"))
    assert capsys.readouterr().out.startswith("Collectives\n")


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("missing/a.csv", "No such file or directory"),
        ("a_file/a.csv", "Not a directory"),
        ("a_folder.csv", "it is a directory"),
        ("x" * 300 + ".csv", "File name too long"),
        ("nul\0.csv", "null"),
    ],
)
def test_an_unwritable_place_is_one_sentence(tmp_path, place, reason):
    (tmp_path / "a_file").write_text("")
    (tmp_path / "a_folder.csv").mkdir()
    with pytest.raises(InputError, match=reason):
        write(Said(), output=tmp_path / place)


def test_a_full_device_is_one_sentence():
    with pytest.raises(InputError, match="No space left on device"):
        write(Said(), Format.CSV, Path("/dev/full"))


def test_a_device_is_written_in_place():
    to_file("x", Path(os.devnull))
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "a.csv"
    target.write_text("old")
    monkeypatch.setattr(os, "fdopen", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        to_file("new", target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_links_and_permissions_of_the_old_file_stay(tmp_path):
    target, link = tmp_path / "a.csv", tmp_path / "link.csv"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    to_file("new", link)
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
