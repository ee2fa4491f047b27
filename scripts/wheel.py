"""Build the wheel, install it in a fresh environment away from the checkout, and ask it something."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOP_LEVEL = {"costmodel"}
INSIDE = ("costmodel/cli/", "costmodel/hardware/", "costmodel/models/", "costmodel/tables/", "costmodel/py.typed")
QUESTIONS = (
    ["--version"],
    ["hardware", "list"],
    ["plan", "llama-3.1-405b", "--on", "dgx-h100:16384", "--seq", "8192", "--batch", "16M", "--format", "json"],
)


def build(folder: Path) -> Path:
    """The wheel of this checkout, built into `folder`."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


def complaints(wheel: Path) -> list[str]:
    """What is wrong with the names in `wheel`: strangers at the top level, parts that are missing."""
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    strangers = [name for name in top - TOP_LEVEL if not name.endswith(".dist-info")]
    missing = [part for part in INSIDE if not any(name.startswith(part) for name in names)]
    return [f"{name} at the top level" for name in strangers] + [f"{part} is missing" for part in missing]


def main() -> int:
    """Exit code 0 when the wheel holds what it should and works where there is no checkout."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder / "dist")
        wrong = complaints(wheel)
        if wrong:
            print(f"{wheel.name}: {'; '.join(wrong)}", file=sys.stderr)
            return 1
        venv.create(folder / "venv", with_pip=True)
        bin_folder = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        subprocess.run([bin_folder / "python", "-m", "pip", "install", "--quiet", wheel], check=True)
        for question in QUESTIONS:
            subprocess.run([bin_folder / "costmodel", *question], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
