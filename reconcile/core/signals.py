"""Signal handlers: SIGTERM and SIGHUP end a run as Ctrl-C does, so that it ends its workers and removes its folders first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP has arrived."""


@contextmanager
def catch_signals() -> Iterator[list[int]]:
    """Within this context these signals raise Ended in the main thread; the yielded list holds the one that arrived.

    A signal that is ignored (``nohup``) or already has a handler is left alone. Further signals do not interrupt the
    clean-up that the first one started.
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
    """As :func:`catch_signals`, in a process that is not reconcile's own: afterwards the signal takes its usual effect there."""
    came: list[int] = []
    try:
        with catch_signals() as came:
            yield
    finally:
        for number in came:
            signal.raise_signal(number)
