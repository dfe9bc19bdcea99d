"""Errors that users may cause: one clear sentence each, and the exit code that goes with it.

Every one is a ReconcileError, in Python as on the command line. On the command line what the system refuses (OSError) is a
sentence, too; anything else that comes out is a defect of ours (defects.py).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

EXIT_OK = 0
EXIT_UNEXPLAINED = 1
EXIT_USAGE = 2
EXIT_FAILED = 3
EXIT_CRASHED = 4

SHOWN = 160
"""Characters of a name that an error shows: one may be thousands long."""

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


class ReconcileError(Exception):
    """The family; the message is one sentence for the user."""


class UsageError(ReconcileError):
    """Bad usage or input: says what is wrong, where, and what to do (exit code 2)."""


class Refused(UsageError):
    """A model that cannot be used: ``sentence`` says why. ``declined`` names the framework beside which its own code raised
    the error, '' where that was not so; ``printed`` is what that process printed."""

    def __init__(self, sentence: str, declined: str = "", printed: str = "", where: str = "") -> None:
        super().__init__(f"{sentence} The full log is in {where}." if where else sentence)
        self.sentence = sentence
        self.declined = declined
        self.printed = printed


class NotInResult(ReconcileError, LookupError):
    """What a result does not hold: a statement between names that did not run, or a number where none stands."""


class PackageMissing(ReconcileError, ImportError):
    """A package is needed that is not installed; the message says how to install it."""


def unknown(kind: str, name: str, names: Iterable[str]) -> UsageError:
    """The error for a name that is not there, with the nearest ones."""
    import difflib

    choices = sorted(names)
    near = difflib.get_close_matches(name, choices, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"There are: {', '.join(choices)}."
    return UsageError(f"unknown {kind} {short(name)}. {hint}")


def short(value: object, limit: int = 60) -> str:
    """A value as Python writes it, for a sentence: cut where it is long, its type where it cannot be written."""
    try:
        shown = repr(value)
    except Exception:  # a number of too many digits, a value nested too deeply, or somebody's own __repr__
        return f"a value of type {type(value).__name__}"
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"


def said(error: BaseException) -> str:
    """An error of somebody else's code in half a sentence: its type, and its first line where it has one."""
    try:
        line = str(error).strip().partition("\n")[0]
    except Exception:  # its own __str__ may be what is wrong
        line = ""
    kind = type(error).__name__
    return f"{kind}: {line[:300].rstrip('.')}" if line else kind


def brief(name: str | os.PathLike[str]) -> str:
    """A path or name for a sentence, unquoted: the middle of one that is too long is left out."""
    text = os.fspath(name)
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]}...{text[-SHOWN // 2 :]}"


def reason(error: BaseException) -> str:
    """Why the system refused something, in its own words, without a full stop."""
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")


def of_system(error: OSError) -> str:
    """The sentence about what the system refused, where nobody nearer to it had a better one."""
    why = reason(error)
    if error.errno in _FULL:
        way_out = " Free some space, or name another folder for temporary files (TMPDIR) or for reports (--out)."
    elif error.errno == errno.ENOENT and error.filename is None:  # of tempfile and of os.getcwd
        way_out = " Call from a folder that exists, and set TMPDIR to one that can be written to."
    else:
        way_out = ""
    if isinstance(error.filename, (str, bytes)):
        return f"{brief(os.fsdecode(error.filename))} cannot be used: {why}.{way_out}"
    return f"a file or folder cannot be used: {why}.{way_out}"
