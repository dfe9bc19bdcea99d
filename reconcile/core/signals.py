"""SIGTERM and SIGHUP end a run as Ctrl-C does: workers are ended and folders removed before this process goes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ended(KeyboardInterrupt):
    """One of these signals has come."""


@contextmanager
def heard() -> Iterator[list[int]]:
    """Meanwhile these signals raise Ended in the main thread; what is yielded lists the one that came.

    One that is ignored (``nohup``), or that somebody has a handler for already, stays theirs. Further ones do not
    interrupt what the first has set going.
    """
    came: list[int] = []

    def hear(number: int, _frame: FrameType | None) -> None:
        if not came:
            came.append(number)
            raise Ended

    main = threading.current_thread() is threading.main_thread()
    free = [number for number in ENDING if main and signal.getsignal(number) is signal.SIG_DFL]
    for number in free:
        signal.signal(number, hear)
    try:
        yield came
    finally:
        for number in free:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def passed_on() -> Iterator[None]:
    """The same in somebody else's process, which then ends as if nobody had listened."""
    came: list[int] = []
    try:
        with heard() as came:
            yield
    finally:
        for number in came:
            signal.raise_signal(number)
