"""The command line: parse, call a study, hand its answer to the report. No arithmetic.

One file a command; `app` gathers them, `answering` gives each the same output options, `boundary` turns what goes
wrong into one sentence and an exit code.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Answer the command line of this process and exit."""
    # More threads cost 60 ms at numpy's start and buy nothing; it must be set before numpy loads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from costmodel.cli.boundary import run

    sys.exit(run(sys.argv[1:]))
