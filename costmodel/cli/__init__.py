"""The command line: parse, call a study, hand its answer to the report. No arithmetic.

One file a command; `app` gathers them, `answering` gives each the same output options, `boundary` turns what goes
wrong into one sentence and an exit code.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from costmodel.codes import INTERRUPTED


def main() -> NoReturn:
    """Answer the command line of this process and exit."""
    # More threads cost 60 ms at numpy's start and buy nothing; it must be set before numpy loads.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from costmodel.cli.boundary import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while modules load, which is most of the time that a short answer takes
        code = INTERRUPTED
    sys.exit(code)
