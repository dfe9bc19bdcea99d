"""Signal handlers: SIGTERM and SIGHUP end a run as Ctrl-C does, so that it ends its workers and removes its folders first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class TerminatedBySignal(KeyboardInterrupt):
    """SIGTERM or SIGHUP has arrived."""


@contextmanager
def catch_signals() -> Iterator[list[int]]:
    """Within this context these signals raise TerminatedBySignal in the main thread; the yielded list holds the one that arrived.

    A signal that is ignored (``nohup``) or already has a handler is left alone. Further signals do not interrupt the
    clean-up that the first one started.
    """
    received: list[int] = []

    def handler(number: int, _frame: FrameType | None) -> None:
        if not received:
            received.append(number)
            raise TerminatedBySignal

    main = threading.current_thread() is threading.main_thread()
    free = [number for number in ENDING if main and signal.getsignal(number) is signal.SIG_DFL]
    for number in free:
        signal.signal(number, handler)
    try:
        yield received
    finally:
        for number in free:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def reraise_signals() -> Iterator[None]:
    """As :func:`catch_signals`, in a process that is not reconcile's own: afterwards the signal that arrived is raised again."""
    received: list[int] = []
    try:
        with catch_signals() as received:
            yield
    finally:
        for number in received:
            signal.raise_signal(number)
