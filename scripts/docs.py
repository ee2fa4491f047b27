"""Keep the documentation in step: `python scripts/docs.py` rewrites it, `--check` says what is out of step.

- In README.md and docs/, a block that starts with ```console holds commands after `$ ` and what they print, which is
  run and replaced (`| head -20` in the command shortens it). Blocks of ```python must run.
- Between `<!-- table: NAME -->` and `<!-- end -->` stands a table that the code knows: see TABLES.
- docs/reference/commands.md is what `--help` prints.
"""

from __future__ import annotations

import csv
import difflib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import constants

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = ROOT / "docs/reference/commands.md"
CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"(?<=^```python\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"(?<=<!-- table: )([a-z ]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
VOLATILE = re.compile(r"(?<=layouts in )[\d.,]+ \w+|[\d.,]+ [kMGT]? ?layouts/s|(?<=\"search_seconds\": )[\d.e-]+")


def main(arguments: list[str]) -> int:
    """Rewrite what has changed, or with --check print it as a difference and give 1."""
    check = arguments == ["--check"]
    pages = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] + ([] if COMMANDS.exists() else [COMMANDS]))
    with ThreadPoolExecutor(2) as pool:
        fresh = dict(zip(pages, pool.map(refreshed, pages), strict=True))
    stale = {page: text for page, text in fresh.items() if not page.exists() or page.read_text("utf-8") != text}
    for page, text in stale.items():
        name = str(page.relative_to(ROOT))
        if check:
            old = page.read_text("utf-8").splitlines() if page.exists() else []
            print("\n".join(difflib.unified_diff(old, text.splitlines(), name, "now", lineterm="", n=1)))
        else:
            page.write_text(text, "utf-8")
            print(f"rewrote {name}")
    if check and stale:
        print("out of step: run `python scripts/docs.py`", file=sys.stderr)
    return int(check and bool(stale))


def refreshed(page: Path) -> str:
    """The text of `page` as it should be now."""
    if page == COMMANDS:
        return command_reference()
    text = TABLE.sub(lambda found: found[1] + found[2] + TABLES[found[1]](), page.read_text("utf-8"))
    programs = PYTHON.findall(text)
    if programs:
        done = subprocess.run(
            [sys.executable, "-"],
            input="\n".join(programs),
            text=True,
            cwd=ROOT,
            env=environment(),
            check=False,
            capture_output=True,
        )
        if done.returncode:
            raise SystemExit(f"the Python of {page.relative_to(ROOT)} fails:\n{done.stderr}")
    return CONSOLE.sub(lambda block: "".join(transcript(block.group())), text)


def transcript(block: str) -> Iterator[str]:
    """The commands of `block`, each with what it prints now; an old output that says the same stays."""
    for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
        if not part.startswith("$ "):
            yield part
            continue
        command, _, old = part.partition("\n")
        new = shell(command.removeprefix("$ "))
        yield f"{command}\n{old if VOLATILE.sub('', old) == VOLATILE.sub('', new) else new}"


def shell(command: str) -> str:
    """What `command` prints, both streams, with `costmodel` being this checkout's."""
    define = f'costmodel() {{ "{sys.executable}" -m costmodel "$@"; }}\npython() {{ "{sys.executable}" "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", define + command],
        text=True,
        cwd=ROOT,
        env=environment(),
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.stdout


def environment() -> dict[str, str]:
    """Eighty columns, no folder of the user's, this checkout first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COSTMODEL_")}
    return kept | {"COLUMNS": "80", "PYTHONPATH": str(ROOT)}


def table(headers: tuple[str, str], rows: Mapping[str, str]) -> str:
    """Two columns, the first as code."""
    lines = [f"| {headers[0]} | {headers[1]} |", "|---|---|", *(f"| `{key}` | {text} |" for key, text in rows.items())]
    return "\n".join(lines) + "\n"


def layout_keys() -> str:
    """What can stand in a layout."""
    from costmodel.search.layout import KEYS

    return table(("key", "meaning"), KEYS)


def confidence() -> str:
    """How far a number is to be trusted."""
    from costmodel.catalog.facts import CONFIDENCE

    return table(("word", "the number is"), CONFIDENCE)


def units() -> str:
    """The units of each quantity."""
    from costmodel.catalog.units import QUANTITIES

    return table(("base unit", "written as"), {si: ", ".join(allowed) for si, allowed in QUANTITIES.values()})


def assumed() -> str:
    """What is assumed of published runs where their sources do not say."""
    from costmodel.studies.validation.assumed import ASSUMED

    return columns(("not stated", "taken", "because"), ASSUMED)


def headline_rules() -> str:
    """Which published rows do not count."""
    from costmodel.studies.validation.headline import HEADLINE, MEMORY_HEADLINE

    memory = {rule.words for rule in MEMORY_HEADLINE}
    return columns(
        ("left out where", "of memory too"),
        [(rule.words, "yes" if rule.words in memory else "no") for rule in HEADLINE],
    )


def text_rules() -> str:
    """How free text of published tables is read."""
    from costmodel.studies.validation import words

    fields = {
        "recompute": words.RECOMPUTE,
        "sharding": words.SHARDING,
        "precision": words.PRECISION,
        "attention_kernel": words.ATTENTION,
        "sp": words.SEQUENCE_PARALLEL,
        "overlap": words.SCHEDULE,
        "tflops_convention": words.FLOPS,
    }
    return columns(
        ("column", "text that matches", "is read as", "because"),
        [
            (f"`{field}`", f"`{rule.pattern or '.*'}`", rule.word or "unstated", rule.because)
            for field, rules in fields.items()
            for rule in rules
        ],
    )


def traits() -> str:
    """What a mention in a published row means."""
    from costmodel.studies.validation.words import TRAITS

    return columns(
        ("trait", "looked for in", "text that matches", "meaning"),
        [(f"`{one.word}`", ", ".join(one.fields), f"`{one.pattern}`", one.meaning) for one in TRAITS],
    )


def memory_printed() -> str:
    """Which memory a framework prints."""
    from costmodel.studies.validation.runs import GIB, MEMORY

    return columns(
        ("framework", "quantity", "unit", "because"),
        [
            (f"`{one.pattern}`", f"`{one.quantity}`", "GiB" if one.unit_bytes == GIB else "GB", one.because)
            for one in MEMORY
        ],
    )


def published_layouts() -> str:
    """Published layouts, predicted beside published, as tables/validation/layouts.csv has them."""
    with (ROOT / "tables/validation/layouts.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))

    def shown(row: Mapping[str, str], column: str) -> str:
        if not row[column]:
            return ""
        scale = 1e9 if row["quantity"].endswith("_bytes") else 1
        return f"{float(row[column]) / scale:.3g}"

    return columns(
        ("run", "on", "layout", "quantity", "published", "predicted", "error", "note"),
        [
            (
                row["id"],
                f"`{row['on']}`",
                f"`{row['layout']}`",
                f"`{row['quantity']}`",
                shown(row, "published"),
                shown(row, "predicted"),
                f"{100 * float(row['error']):+.1f}%" if row["error"] else "",
                "; ".join(words for words in (row["not_predicted"], row["note"]) if words),
            )
            for row in rows
        ],
    )


columns = constants.markdown


def collective_errors() -> str:
    """The error of predicted collectives by class, on rows that no constant is fitted to."""
    from statistics import median

    from costmodel.catalog.catalog import Catalog, shipped
    from costmodel.studies.validation.collective_rows import rows_of
    from costmodel.studies.validation.collectives import outcome

    catalog = Catalog.open()
    found: dict[str, dict[str, list[float]]] = {}
    for name in ("in_node", "published"):
        for row in rows_of(shipped("tables") / "published" / "collectives" / f"{name}.csv", catalog):
            error = None if row.part == "fit" else outcome(row, catalog).error
            if error is not None:
                size = "to 64 KiB" if row.payload <= 2**16 else "to 16 MiB" if row.payload <= 2**24 else "larger"
                found.setdefault(_class_of(row), {}).setdefault(size, []).append(abs(error))
    sizes = ("to 64 KiB", "to 16 MiB", "larger")
    lines = [f"| median, 90 % within (rows) | {' | '.join(sizes)} |", "|---|---|---|---|"]
    for kind, bands in sorted(found.items()):
        cells = []
        for size in sizes:
            errors = sorted(bands.get(size, []))
            most = f"{errors[int(0.9 * (len(errors) - 1))]:.0%}" if errors else ""
            cells.append(f"{median(errors):.1%}, {most} ({len(errors)})" if errors else "")
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _class_of(row: Any) -> str:
    """What a measured collective is counted under."""
    if row.machine.startswith("tpu"):
        return "TPU, one axis"
    if ":1x" not in row.machine:
        return "over several nodes, started by PyTorch" if row.started_by else "over several nodes"
    if row.started_by:
        return "in a node, started by PyTorch or JAX"
    if row.machine.startswith("rtx"):
        return "in a node, PCIe, tables"
    tables = row.source.startswith("aiconfigurator")
    if row.operation == "all-to-all":
        return "in a node, all-to-all, tables" if tables else "in a node, all-to-all, others"
    if row.operation == "send-recv":
        return "in a node, one message"
    return f"in a node, all-gather, reduce-scatter, all-reduce, {'tables' if tables else 'others'}"


TABLES: dict[str, Callable[[], str]] = {
    "layout keys": layout_keys,
    "confidence": confidence,
    "units": units,
    "assumed": assumed,
    "headline rules": headline_rules,
    "text rules": text_rules,
    "traits": traits,
    "memory printed": memory_printed,
    "published layouts": published_layouts,
    "errors of collectives": collective_errors,
    **constants.TABLES,
}


def command_reference() -> str:
    """Every command's help, in the order in which help lists them."""
    parts = ["# Commands\n\nWritten by `python scripts/docs.py` from `--help`.\n"]
    for path in command_paths():
        title = " ".join(["costmodel", *path])
        parts.append(f"## {title}\n\n```text\n{shell(f'{title} --help')}```\n")
    return "\n".join(parts)


def command_paths() -> list[tuple[str, ...]]:
    """The words of each command and group, the empty path first."""
    import typer

    from costmodel.cli.app import build

    def below(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        for name, inner in getattr(command, "commands", {}).items():
            yield from below(inner, (*path, name))

    return list(below(typer.main.get_command(build()), ()))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
