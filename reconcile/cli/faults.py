"""How a command ends: every fault is a sentence on stderr with the exit code that says whose it is."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import click

from ..errors import EXIT_CRASHED, EXIT_OK, EXIT_USAGE, ReconcileError, of_system
from . import streams

INTERRUPTED = 130


def exit_code(call: Callable[[], Any]) -> int:
    """Call a command. Bad usage and what the system refuses are 2, an interruption is 130, a defect of ours is 4."""
    try:
        streams.ready()
        code = call()
        streams.flush()
    except ReconcileError as error:
        return _told(f"Error: {error}", EXIT_USAGE)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        return _told(shown.getvalue().rstrip("\n"), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _told("Interrupted; no file was left half-written.", INTERRUPTED)
    except OSError as error:
        return _told(f"Error: {_refused(error)}", EXIT_USAGE)
    except Exception as error:
        from ..defects import sentence

        return _told(f"Error: {sentence(error)}", EXIT_CRASHED)
    return code if isinstance(code, int) else EXIT_OK


def _refused(error: OSError) -> str:
    if not streams.on_stdout(error):
        return of_system(error)
    streams.forget(sys.stdout)
    return streams.of_stdout(error)


def _told(sentence: str, code: int) -> int:
    streams.say(sentence, err=True)
    return code
