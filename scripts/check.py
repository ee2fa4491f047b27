"""Everything that must hold before a change is merged, in one command: `python scripts/check.py [STEP ...]`.

Runs from a checkout, in an environment that has the `test` extra; stops at the first step that fails.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(sysconfig.get_path("scripts"))
PYTHON = sys.executable

STEPS: dict[str, list[str]] = {
    "format": [PYTHON, "-m", "ruff", "format", "--check", "--quiet", "."],
    "lint": [PYTHON, "-m", "ruff", "check", "--quiet", "."],
    "types": [PYTHON, "-m", "mypy"],
    "imports": [str(SCRIPTS / "lint-imports")],
    "generated code": [PYTHON, "-m", "costmodel.generate", "--check"],
    "tables": [PYTHON, "-m", "costmodel.tables", "--check"],
    "documentation": [PYTHON, "scripts/docs.py", "--check"],
    "wheel": [PYTHON, "scripts/wheel.py"],
    "tests": [PYTHON, "-m", "pytest", "-n", "2", "--quiet"],
}


def main(wanted: list[str]) -> int:
    """Run the `wanted` steps, all when none is named, and give the exit code of the first that fails."""
    unknown = [name for name in wanted if name not in STEPS]
    if unknown:
        print(f"no such step {unknown[0]!r}; the steps are {', '.join(STEPS)}", file=sys.stderr)
        return 2
    for name in wanted or STEPS:
        start = time.perf_counter()
        print(f"== {name}", flush=True)
        code = subprocess.run(STEPS[name], cwd=ROOT, check=False).returncode
        if code:
            print(f"== {name} failed: {' '.join(STEPS[name])}", file=sys.stderr)
            return code
        print(f"== {name} passed in {time.perf_counter() - start:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
