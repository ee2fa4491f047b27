"""The command line as a process, the way a person or a script meets it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = [sys.executable, "-m", "costmodel"]


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COSTMODEL_")}
    return kept | {"PYTHONPATH": str(ROOT), "COLUMNS": "80"} | more


@pytest.fixture
def costmodel(tmp_path):
    """Run `costmodel ARGUMENTS` in an empty folder; never through a shell."""

    def run(*arguments, **more):
        return subprocess.run(
            [*PYTHON, *arguments],
            cwd=tmp_path,
            env=environment(**more),
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.fixture
def shell(tmp_path):
    """Run a line of bash in which `costmodel` is this checkout's."""

    def run(line):
        define = f'costmodel() {{ "{sys.executable}" -m costmodel "$@"; }}\n'
        return subprocess.run(
            ["bash", "-c", define + line],
            cwd=tmp_path,
            env=environment(),
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run
