"""How a command ends: every fault is a sentence on stderr with the exit code that says whose it is."""

from __future__ import annotations

import io
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from ..core.errors import EXIT_CRASHED, EXIT_OK, EXIT_USAGE, ReconcileError, of_system
from ..core.signals import heard
from . import streams

BY_SIGNAL = 128
"""What a shell adds to a signal's number for the exit status of what it ended."""


def exit_code(call: Callable[[], Any]) -> int:
    """Call a command. Bad usage and what the system refuses are 2, a defect of ours is 4, and a signal that ends the run
    is 128 and its number: 130 for an interruption."""
    with heard() as came:
        return _ended(call, came)


def _ended(call: Callable[[], Any], came: Sequence[int]) -> int:
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
        return _told("Interrupted; no file was left half-written.", BY_SIGNAL + (came[0] if came else signal.SIGINT))
    except OSError as error:
        return _told(f"Error: {_refused(error)}", EXIT_USAGE)
    except Exception as error:
        from ..core.defects import sentence

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
