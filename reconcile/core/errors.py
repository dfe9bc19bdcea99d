"""Exceptions for errors that users may cause, functions that word the one sentence of each, and the command line's exit codes.

All of them are a ReconcileError, in Python and on the command line. The command line also turns an OSError into a sentence;
any other exception is a bug in reconcile (defects.py).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable

from .message import first_line

EXIT_OK = 0
EXIT_UNEXPLAINED = 1
EXIT_USAGE = 2
EXIT_FAILED = 3
EXIT_CRASHED = 4

SHOWN = 160
"""Characters of a name that an error shows: a name may have thousands."""

LISTED = 800
"""Characters of a list of names in an error."""

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


class ReconcileError(Exception):
    """The base class; the message is one sentence for the user."""


class UsageError(ReconcileError):
    """Bad usage or input: says what is wrong, where, and what to do (exit code 2)."""


class Refused(UsageError):
    """A model that cannot be used: ``sentence`` says why. ``declined`` names the framework if the model's own code raised
    the error beside it, otherwise it is ''; ``printed`` is the output of that process, ``where`` the file with all of it."""

    def __init__(self, sentence: str, declined: str = "", printed: str = "", where: str = "") -> None:
        super().__init__(f"{sentence} The full log is in {where}." if where else sentence)
        self.sentence = sentence
        self.declined = declined
        self.printed = printed


class NotInResult(ReconcileError, LookupError):
    """Something that a result does not have: a statement between names that did not run, or a missing number."""


class PackageMissing(ReconcileError, ImportError):
    """A required package is not installed; the message says how to install it."""


def unknown(kind: str, name: str, names: Iterable[str]) -> UsageError:
    """The exception for an unknown name; it suggests those that contain it, or else the nearest ones."""
    import difflib
    from textwrap import shorten

    choices = sorted(names)
    near = [choice for choice in choices if name and name in choice][:3]
    near = near or difflib.get_close_matches(name, choices, n=3, cutoff=0.4)
    listed = shorten(", ".join(choices), LISTED, placeholder=" and others")
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Choose from: {listed}."
    hint = "Give each name by itself: repeat the option." if "," in name else hint
    return UsageError(f"unknown {kind} {short(name)}. {hint}")


def check_names(kind: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise the error of the first of these names that is not known."""
    for name in names:
        if name not in known:
            raise unknown(kind, name, known)


def short(value: object, limit: int = 60) -> str:
    """The repr of a value for a sentence: shortened if it is long, the type if repr fails."""
    try:
        shown = repr(value)
    except Exception:  # a number with too many digits, a value nested too deeply, or a broken __repr__
        return f"a value of type {type(value).__name__}"
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def describe_error(error: BaseException) -> str:
    """An error from other people's code as half a sentence: its type, and the first line of its message if it has one."""
    line = first_line(error).rstrip(".")
    kind = type(error).__name__
    return f"{kind}: {line}" if line else kind


def brief(name: str | os.PathLike[str]) -> str:
    """A path or name for a sentence, unquoted; the middle is left out if it is too long."""
    text = os.fspath(name)
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]}...{text[-SHOWN // 2 :]}"


def reason(error: BaseException) -> str:
    """The operating system's own reason for an error, without a full stop."""
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")


def of_system(error: OSError) -> str:
    """The sentence for an OSError that no caller explained better."""
    why = reason(error)
    if error.errno in _FULL:
        way_out = " Free some space, or name another folder for temporary files (TMPDIR) or for reports (--out)."
    elif error.errno == errno.ENOENT and error.filename is None:  # of tempfile and of os.getcwd
        way_out = " Run from a folder that exists, and set TMPDIR to a folder that you can write to."
    else:
        way_out = ""
    if error.errno == errno.EAGAIN and error.filename is None:  # of fork
        return f"no process can be started: {why}. End others, or raise the limit of processes (ulimit -u)."
    if isinstance(error.filename, (str, bytes)):
        return f"{brief(os.fsdecode(error.filename))} cannot be used: {why}.{way_out}"
    return f"a file or folder cannot be used: {why}.{way_out}"
