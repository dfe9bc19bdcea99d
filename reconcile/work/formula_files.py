"""Formula files: the user's own Python files that register work formulas (``--formulas``).

A file may also give the work of an op whose work the tool knows in part, or for some records only. Its formula then gives the
work that the tool's formula leaves unknown, and must not contradict the tool's formula.

Formula files are trusted like all of the user's code. Any fault becomes one sentence that names the file and the line: an error,
an exit, a timeout, or a result that is not work, when the file is read or when a formula is called.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import TypeVar

from ..core import user_files
from ..core.errors import describe_error, short
from ..core.records import Op
from ..core.work import Formula, NoWork, UnknownWork, Work, check_work, collect_formulas, give_formula
from . import FormulaError

LIMIT = 10.0
"""The least time limit in seconds, for a file and for each call of a formula."""
SHARE = 60
"""The limit is this fraction (one ``SHARE``-th) of --timeout if that is longer."""
AGAIN = 1.0
"""Seconds between repeated timeouts, for code that catches the exception and continues."""


T = TypeVar("T")


class _TooLong(BaseException):
    """The time is up. A BaseException, so that a user's ``except Exception`` does not catch it."""


def load_formulas(files: tuple[Path, ...], timeout: float = 0.0) -> None:
    """Execute the user's formula files, which register work formulas for ops that reconcile does not know, or knows only in part.

    Raises FormulaError for a file that cannot be used; a formula that cannot be used raises it when it is called.
    ``timeout`` is the timeout of the run.
    """
    limit = max(LIMIT, timeout / SHARE)
    for file in files:
        text = user_files.read_text_file(file, "the formula file")
        with collect_formulas() as collected:
            _call_within(file, limit, f"the formula file {file}", partial(_execute, text, file))
        for entry in collected.values():
            give_formula(entry._replace(compute=_GuardedFormula(entry, file, limit)))


def _execute(text: str, file: Path) -> None:
    exec(compile(text, str(file), "exec"), {"__name__": "_reconcile_formulas", "__file__": str(file)})


class _GuardedFormula:
    """A user's formula with a time limit and with checks of its result; any fault becomes one sentence. As text, where it is."""

    def __init__(self, entry: Formula, file: Path, limit: float) -> None:
        self.compute, self.file, self.limit = entry.compute, file, limit
        self.label = f"the formula for {entry.op} in {file}"
        self.line = getattr(getattr(entry.compute, "__code__", None), "co_firstlineno", 0)

    def __call__(self, op: Op) -> Work:
        return _call_within(
            self.file, self.limit, self.label, lambda: _plain(self.compute(op)), self.line, (UnknownWork,)
        )

    def __str__(self) -> str:
        return self.label + _at(self.line)


def _plain(value: object) -> Work:
    """The value that a formula returned, if it is work in which every dot product has a multiply-add, so that its FLOPs are
    never negative. Raises NoWork."""
    work = check_work(value)
    if work.accumulators > work.mac:
        dots, macs = short(work.accumulators), short(work.mac)
        raise NoWork(f"it returned accumulators={dots} and mac={macs}, but a dot product has at least one multiply-add")
    return work


def _call_within(
    file: Path,
    limit: float,
    label: str,
    call: Callable[[], T],
    line: int = 0,
    allowed: tuple[type[Exception], ...] = (),
) -> T:
    """The result of ``call`` within ``limit`` seconds. Any exception that is not ``allowed`` becomes a FormulaError."""
    try:
        with _within(limit):
            return call()
    except allowed:
        raise
    except (FormulaError, KeyboardInterrupt):
        raise
    except NoWork as error:
        raise FormulaError(f"{label}{_at(line)}: {error}.") from error
    except _TooLong as error:
        raise FormulaError(
            f"{label}{_at(_line(error, file))} did not end within {limit:g} s; fix it, or raise the limit with --timeout SECONDS "
            f"(the limit is {LIMIT:g} s, or a {SHARE}th of --timeout if that is longer)."
        ) from error
    except BaseException as error:  # sys.exit as well
        raise FormulaError(f"{label} cannot be used{_at(_line(error, file))}: {describe_error(error)}.") from error


def _line(error: BaseException, file: Path) -> int:
    """The line of the file that the error came from, 0 if it did not come from the file."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno or 0
    lines = [number for frame, number in walk_tb(error.__traceback__) if frame.f_code.co_filename == str(file)]
    return lines[-1] if lines else 0


def _at(line: int) -> str:
    return f", line {line}" if line else ""


@contextmanager
def _within(limit: float) -> Iterator[None]:
    """Raise _TooLong in the main thread after ``limit`` seconds, if the system has timers.

    Python raises it only between two bytecode steps: this does not interrupt a call of C code that never ends, nor, in
    Python 3.10 (Python/ceval.c, the eval breaker before SETUP_FINALLY), a loop whose body starts with ``try``. A timer that
    was already running continues afterwards.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(_signal: int, _frame: FrameType | None) -> None:
        raise _TooLong

    begun = time.monotonic()
    handler = signal.signal(signal.SIGALRM, late)
    rest, interval = signal.setitimer(signal.ITIMER_REAL, limit, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
        if rest:
            signal.setitimer(signal.ITIMER_REAL, max(rest - (time.monotonic() - begun), 1e-6), interval)
