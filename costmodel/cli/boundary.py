"""Where errors become one sentence on standard error and an exit code."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

import typer

from costmodel.cli import elsewhere
from costmodel.cli.app import build
from costmodel.codes import INTERRUPTED
from costmodel.errors import CostmodelError
from costmodel.report.write import silence_standard_output

PROGRAM = "costmodel"
BAD_INPUT = 2
INTERNAL_ERROR = 3
_LONG_WORD = re.compile(r"(\S{60})\S{20,}")


def run(arguments: Sequence[str]) -> int:
    """Answer one command line and give its exit code; never raises, never prints a traceback unasked.

    0 answered, 1 does not fit or a check failed, 2 bad input, 3 internal error, 130 interrupted.
    """
    try:
        command = typer.main.get_command(build(arguments))
        code = command.main(list(arguments) or ["--help"], prog_name=PROGRAM, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except CostmodelError as error:
        return _fail(str(error), BAD_INPUT)
    except typer.TyperException as error:
        return _fail(usage_sentence(error), BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        silence_standard_output()  # or the interpreter would wait for a reader to take the rest
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("COSTMODEL_DEBUG"):
            raise
        hint = "please report this, with what COSTMODEL_DEBUG=1 prints"
        return _fail(f"internal error, {type(error).__name__}: {error}; {hint}", INTERNAL_ERROR)


def usage_sentence(error: typer.TyperException) -> str:
    """What is wrong with the command line in one sentence, with the nearest option or where to look."""
    context = getattr(error, "ctx", None)
    where = getattr(context, "command_path", PROGRAM)
    commands = getattr(getattr(context, "command", None), "commands", {})
    message = _LONG_WORD.sub(r"\1...", error.format_message().rstrip("."))
    if message == "Missing command":
        return f"{where} needs a command: {', '.join(commands)}"
    name = getattr(error, "option_name", "")
    params = getattr(getattr(context, "command", None), "params", ())
    meant = elsewhere.option(name, {spelt for param in params for spelt in param.opts}) if name else ""
    near = [meant] if meant else getattr(error, "possibilities", None)
    if near:
        return f"no such option {name}: did you mean {' or '.join(sorted(near))}?"
    return f"{message[:1].lower()}{message[1:]}; see {where} --help"


def _fail(message: str, code: int) -> int:
    sentence = " ".join(message.split())
    if sys.stderr is not None:  # print would turn to standard output
        print(f"{PROGRAM}: error: {sentence}", file=sys.stderr)
    return code
