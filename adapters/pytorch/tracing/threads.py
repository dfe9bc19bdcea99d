"""Lets a recorder follow threads that a model starts: PyTorch's modes hold for one thread, so each new one enters them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

from .wrapped_functions import wrap_function


@contextmanager
def record_new_threads(beside: Callable[[], Any]) -> Iterator[None]:
    """Meanwhile every thread that is started runs within a context of its own, which ``beside()`` makes where it is started."""

    def record(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
        def start_thread(thread: threading.Thread) -> None:
            run, context = thread.run, beside()

            def within() -> None:
                with context:
                    run()

            thread.run = within  # type: ignore[method-assign]
            start(thread)

        return start_thread

    with wrap_function(threading.Thread, "start", record):
        yield
