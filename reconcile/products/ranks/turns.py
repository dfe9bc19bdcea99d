"""Scheduler of rank processes, some at a time: a rank that needs the output of another is started again after it (worker.py)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from ...adapters.shared.refusal import FactoryError
from ...core.protocol import RUNNING

PAUSE = 0.005
"""Seconds between two looks at the processes."""
MOST = 64
"""How often a rank may be started."""


class Turns:
    """``start`` starts the process of a rank, and ``end`` reads what it left by its status: its ``waits`` is the rank that has to
    run before it, if there is one."""

    def __init__(
        self,
        ranks: Sequence[int],
        at_once: int,
        exchange: str,
        start: Callable[[int], int],
        end: Callable[[int, int], dict[str, Any]],
    ) -> None:
        self.queue, self.at_once, self.exchange, self.start, self.end = list(ranks), at_once, exchange, start, end
        self.running: dict[int, int] = {}  # rank by process
        self.gone: set[int] = set()  # processes that ended and are not read yet: another may have their number
        self.blocked: dict[int, list[int]] = {}  # ranks by the rank that they wait for
        self.turns: dict[int, int] = {}
        self.told: dict[int, dict[str, Any]] = {}

    def run(self) -> dict[int, dict[str, Any]]:
        """What each rank left. Raises FactoryError as ``end`` does, and for a rank that waits for ever."""
        try:
            while self.queue or self.running:
                while self.queue and len(self.running) < self.at_once:
                    self._begin(self.queue.pop(0))
                self._look()
        except BaseException:
            self._stop()
            raise
        return self.told

    def _begin(self, rank: int) -> None:
        self.turns[rank] = self.turns.get(rank, 0) + 1
        if self.turns[rank] > MOST:
            raise FactoryError(
                f"rank {rank} waits for the stage of a pipeline that no rank runs: each rank needs a stage of its own"
            )
        with open(self._mark(rank), "w"):
            pass
        self.running[self.start(rank)] = rank

    def _look(self) -> None:
        """Read what ended."""
        ended = [
            (process, status)
            for child in self.running
            for process, status in [os.waitpid(child, os.WNOHANG)]
            if process
        ]
        self.gone = {process for process, _ in ended}
        for process, status in ended:
            rank = self.running.pop(process)
            os.remove(self._mark(rank))
            told = self.end(rank, status)
            first = told.get("waits")
            if first is None:
                self.told[rank] = told
            self.queue[:0] = self.blocked.pop(rank, [])
            if first is not None:
                self._after(rank, first)
        if not ended:
            time.sleep(PAUSE)

    def _after(self, rank: int, first: int) -> None:
        """Let a rank run again once the other one ended."""
        if first in self.told:
            self.queue.insert(0, rank)
            return
        self.blocked.setdefault(first, []).append(rank)
        waits = [each for ranks in self.blocked.values() for each in ranks]
        if first not in (*self.running.values(), *waits):
            self.queue = [first, *(each for each in self.queue if each != first)]

    def _stop(self) -> None:
        for process in self.running.keys() - self.gone:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)

    def _mark(self, rank: int) -> str:
        return os.path.join(self.exchange, RUNNING % rank)
