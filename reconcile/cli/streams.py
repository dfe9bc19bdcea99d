"""Output and exit codes of every command: ``say`` prints with control characters escaped, ``exit_code`` turns errors into codes.

Names of layers, files and factories, and a worker's log, are untrusted, so all text but tables (screen.py) is printed here. A
stream that cannot be written to is noticed, too. Every fault is a sentence on stderr, with the exit code that says whose it is.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

import click

from ..core.errors import EXIT_CRASHED, EXIT_OK, EXIT_USAGE, ReconcileError, UsageError, of_system, reason
from ..core.escaping import escape_lines
from ..core.signals import catch_signals

BY_SIGNAL = 128
"""What a shell adds to a signal's number for the exit status of what it ended."""


def say(text: str, *, err: bool = False, nl: bool = True, styled: bool = False) -> None:
    """Print text on stdout or stderr, control characters escaped; ``styled`` is the tool's own text with colours.

    A closed pipe (``| head``) is no error, nor is a stderr that cannot be written to.
    """
    try:
        click.echo(text if styled else escape_lines(text), err=err, nl=nl)
    except OSError as error:
        if not err and not isinstance(error, BrokenPipeError):
            raise
        forget(sys.stderr if err else sys.stdout)


def ready() -> None:
    """Before anything else: every stream is there and can show every character. Raises UsageError where stdout is closed."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from ..worker.process_guard import fill_streams

        fill_streams()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    if sys.stdout is None:
        raise UsageError("standard output is closed: send it to a file, or to /dev/null.")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def flush() -> None:
    """Write what is still to be written, so that the interpreter finds nothing. Raises UsageError where that fails."""
    try:
        sys.stdout.flush()
    except OSError as error:
        forget(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            raise UsageError(describe_stdout_error(error)) from error


def describe_stdout_error(error: OSError) -> str:
    """The sentence about a stdout that cannot be written to."""
    return f"standard output cannot be written to: {reason(error)}. Send it somewhere else."


def came_from_printing(error: OSError) -> bool:
    """Whether an error came up while something was printed, which click also does on its own (``--help``)."""
    return any(frame.f_code is click.echo.__code__ for frame, _ in traceback.walk_tb(error.__traceback__))


@contextlib.contextmanager
def reader_may_go() -> Iterator[None]:
    """Within this context a reader of stdout that has gone ends the command well, by click's Exit. Raises UsageError for any
    other broken pipe, which click alone would take for that."""
    try:
        yield
    except BrokenPipeError as error:
        if not came_from_printing(error):
            raise UsageError(of_system(error)) from error
        forget(sys.stdout)
        raise click.exceptions.Exit(EXIT_OK) from None


def forget(stream: TextIO) -> None:
    """The stream has no reader: discard what is left, and the interpreter's last flush."""
    with contextlib.suppress(OSError, ValueError):  # of a stream that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def exit_code(call: Callable[[], Any]) -> int:
    """Call a command. Bad usage and what the system refuses are 2, a defect of ours is 4, and a signal that ends the run
    is 128 and its number: 130 for an interruption."""
    with catch_signals() as came:
        return _run_call(call, came)


def _run_call(call: Callable[[], Any], came: Sequence[int]) -> int:
    try:
        ready()
        code = call()
        flush()
    except ReconcileError as error:
        return _tell_sentence(f"Error: {error}", EXIT_USAGE)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        return _tell_sentence(shown.getvalue().rstrip("\n"), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _tell_sentence(
            "Interrupted; no file was left half-written.", BY_SIGNAL + (came[0] if came else signal.SIGINT)
        )
    except OSError as error:
        return _tell_sentence(f"Error: {_describe_refusal(error)}", EXIT_USAGE)
    except Exception as error:
        if str(error) == "can't start new thread":  # a limit of processes, as threading says it
            return _tell_sentence(f"Error: {of_system(BlockingIOError(errno.EAGAIN, str(error)))}", EXIT_USAGE)
        from ..core.defects import sentence

        return _tell_sentence(f"Error: {sentence(error)}", EXIT_CRASHED)
    return code if isinstance(code, int) else EXIT_OK


def _describe_refusal(error: OSError) -> str:
    if not came_from_printing(error):
        return of_system(error)
    forget(sys.stdout)
    return describe_stdout_error(error)


def _tell_sentence(sentence: str, code: int) -> int:
    say(sentence, err=True)
    return code
