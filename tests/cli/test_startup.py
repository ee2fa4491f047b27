"""What a start loads: the heavy packages stay out of what does not need them."""

import subprocess
import sys

import pytest

from tests.cli.conftest import environment

HEAVY = {"sympy", "numpy", "pydantic", "rich", "tabulate"}

PROGRAM = """
import sys
from costmodel.cli import main
sys.argv = ["costmodel", *{arguments!r}]
try:
    main()
finally:
    print("LOADED", *sorted(set(sys.modules) & {heavy!r}))
"""


def loaded(*arguments):
    program = PROGRAM.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("plan", "--help"), ("hardware", "--help")])
def test_help_loads_nothing_heavy(arguments):
    assert loaded(*arguments) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ("hardware", "list"),
        ("models", "show", "llama-3.1-405b"),
        ("collective", "all-reduce", "--size", "1GiB", "--on", "dgx-h100:64x8"),
        ("kernel", "matmul", "--on", "h100-sxm", "-m", "8192", "-n", "8192", "-k", "8192"),
    ],
)
def test_a_simple_answer_loads_the_catalog_and_the_table(arguments):
    assert loaded(*arguments) == {"tabulate"}


def test_json_needs_no_tables():
    assert loaded("hardware", "list", "--format", "json") == set()


def test_the_library_is_cheap_to_import_and_keeps_its_promises():
    program = f"import costmodel, sys; print(*(set(sys.modules) & {HEAVY | {'typer', 'yaml'}}))"
    program += "; print(*(name for name in costmodel.__all__ if not hasattr(costmodel, name)))"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("\n\n", "")
