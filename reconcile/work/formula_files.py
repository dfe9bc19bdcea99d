"""Formula files: Python files of the user's own that register work formulas (``--formulas``).

They are trusted as any code of the user's own is. What they get wrong is one sentence that names the file and the line: an
error, an exit, no end, or a result that is not work, when the file is read or when a formula is called.
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
from ..core.errors import UsageError, said, short
from ..core.records import Op
from . import Formula, NoWork, UnknownWork, Work, checked, registered, substitute

LIMIT = 10.0
"""Seconds that a file, and each call of a formula, may take at least."""
SHARE = 60
"""And a part of --timeout, where that is more."""
AGAIN = 1.0
"""Seconds after which the time is up once more, for code that goes on whatever is raised."""


T = TypeVar("T")


class FormulaError(UsageError):
    """A formula file, or a formula of one, that cannot be used."""


class _TooLong(BaseException):
    """The time is up. Nothing that a user's code catches."""


def load_formulas(files: tuple[Path, ...], timeout: float = 0.0) -> None:
    """Execute the user's formula files: they register work formulas for ops that the tool does not know.

    Raises FormulaError for a file that cannot be used; a formula of it that cannot be raises one when it is called.
    ``timeout`` is that of the run.
    """
    limit = max(LIMIT, timeout / SHARE)
    for file in files:
        text = user_files.text(file, "the formula file")
        before = registered()
        _calling(file, limit, f"the formula file {file}", partial(_execute, text, file))
        for op, entry in registered().items():
            if entry is not before.get(op) and not entry.zero_reason:
                substitute(entry._replace(compute=_held(entry, file, limit)))


def _execute(text: str, file: Path) -> None:
    exec(compile(text, str(file), "exec"), {"__name__": "_reconcile_formulas", "__file__": str(file)})


def _held(entry: Formula, file: Path, limit: float) -> Callable[[Op], Work]:
    """The formula, so that it comes back in time with work, or with a sentence."""
    line = getattr(getattr(entry.compute, "__code__", None), "co_firstlineno", 0)
    name = f"the formula for {entry.op} in {file}"

    def compute(op: Op) -> Work:
        return _calling(file, limit, name, lambda: _plain(entry.compute(op)), line, (UnknownWork,))

    return compute


def _plain(found: object) -> Work:
    """What the formula returned, if it is work in which every dot product has a product: no convention makes less than
    nothing of it. Raises NoWork."""
    work = checked(found)
    if work.accumulators > work.mac:
        dots, macs = short(work.accumulators), short(work.mac)
        raise NoWork(f"it returned accumulators={dots} and mac={macs}, and a dot product has at least one multiply-add")
    return work


def _calling(
    file: Path, limit: float, what: str, call: Callable[[], T], line: int = 0, may: tuple[type[Exception], ...] = ()
) -> T:
    """What ``call`` returns, within ``limit`` seconds. Raises FormulaError instead of whatever else it raises but it ``may``."""
    try:
        with _within(limit):
            return call()
    except may:
        raise
    except (FormulaError, KeyboardInterrupt):
        raise
    except NoWork as error:
        raise FormulaError(f"{what}{_at(line)}: {error}.") from error
    except _TooLong as error:
        raise FormulaError(
            f"{what}{_at(_line(error, file))} did not end within {limit:g} s; mend it, or give it longer with --timeout SECONDS "
            f"({LIMIT:g} s, or a {SHARE}th of that where it is more)."
        ) from error
    except BaseException as error:  # sys.exit as well
        raise FormulaError(f"{what} cannot be used{_at(_line(error, file))}: {said(error)}.") from error


def _line(error: BaseException, file: Path) -> int:
    """The line of the file where that came from, 0 if it is none of it."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno or 0
    lines = [number for frame, number in walk_tb(error.__traceback__) if frame.f_code.co_filename == str(file)]
    return lines[-1] if lines else 0


def _at(line: int) -> str:
    return f", line {line}" if line else ""


@contextmanager
def _within(limit: float) -> Iterator[None]:
    """Raises _TooLong in the main thread when ``limit`` seconds are over, where the system has timers.

    It comes between two steps of Python: a single call of C code that does not end is not interrupted, nor, in Python 3.10
    (Python/ceval.c, the eval breaker before SETUP_FINALLY), a loop whose body begins with ``try``. A timer that runs already
    runs on after this.
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
