"""The terminal: parse, call the API, print.

    corpusforge check my.jsonl        no project needed: what is wrong with a file
    corpusforge init my-corpus        a new project
    corpusforge stage dedupe          what dvc.yaml calls

Data goes to stdout, everything else to stderr; every command has `--json`. Exit codes: 0 yes, 1 the answer is no,
2 usage, 3 bad data, 4 bad config, 70 a fault of CorpusForge itself, 130 interrupted. Commands import what they need
when they run, so that `corpusforge --help` is there at once.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpusforge.errors import CorpusForgeError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

INTERNAL = 70
_COLLECT = (100_000, 20, 20)  # new objects between collections: importing makes many, none of which goes away
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code. Never lets a traceback out unless CORPUSFORGE_DEBUG is set."""
    gc.set_threshold(*_COLLECT)
    from corpusforge.cli.commands import app

    try:
        with warnings.catch_warnings():
            warnings.showwarning = functools.partial(_warn, warnings.showwarning)
            app(arguments, prog_name="corpusforge")
    except SystemExit as finished:
        return finished.code if isinstance(finished.code, int) else int(bool(finished.code))
    except CorpusForgeError as error:
        return _say(error.code, error.message, error.hint, error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        told = StorageError.of(error) or StorageError(type(error).__name__)
        return _say(told.code, told.message, told.hint, told.exit_code)
    except Exception as error:  # the last line of defence: an unknown error may hold the text of a row
        if os.environ.get("CORPUSFORGE_DEBUG"):
            raise
        hint = "this is a fault of CorpusForge; CORPUSFORGE_DEBUG=1 shows the traceback (which may hold texts of rows)"
        return _say("internal", f"{type(error).__name__} in {_place(error)}", hint, INTERNAL)
    return 0


def _warn(others: Callable[..., None], message: Warning | str, kind: type[Warning], path: str, *more: Any) -> None:
    """Say what of ours warns without Python's line of code; of other packages, what they would say."""
    if "corpusforge" in Path(path).parts:
        sys.stderr.write(f"warning: {message}\n")
    else:
        others(message, kind, path, *more)


def _say(code: str, message: str, hint: str, exit_code: int) -> int:
    sys.stderr.write(f"error[{code}]: {message}\n" + (f"  {hint}\n" if hint else ""))
    return exit_code


def _place(error: BaseException) -> str:
    """File and line of the innermost frame of ours."""
    place, trace = "an unknown place", error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if "corpusforge" in path.parts:
            place = f"{path.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


if __name__ == "__main__":
    sys.exit(main())
