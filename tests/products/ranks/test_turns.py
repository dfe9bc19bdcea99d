"""Whose turn it is: ranks that wait for others run again after them, and no more often than they have to."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from reconcile.adapters.shared.refusal import FactoryError
from reconcile.products.ranks.turns import Turns


class Processes:
    """``needs`` names the rank whose file a rank reads; one that is there tells ``{"rank": rank}``."""

    def __init__(self, folder: Path, needs: dict[int, int], fails: int = -1) -> None:
        self.folder, self.needs, self.fails = folder, needs, fails
        self.started: list[int] = []
        self.pids: list[int] = []

    def start(self, rank: int) -> int:
        self.started.append(rank)
        need = self.needs.get(rank)
        ready = need is None or (self.folder / str(need)).exists()
        leave, stay = f"touch {self.folder / str(rank)}" if ready else ":", "; exec sleep 60" if self.fails >= 0 else ""
        program = "exit 9" if rank == self.fails else leave + stay
        # faster than a fork, which copies the tables of all that pytest holds
        child = os.posix_spawn("/bin/sh", ["sh", "-c", program], os.environ)
        self.pids.append(child)
        return child

    def end(self, rank: int, status: int) -> dict[str, Any]:
        if status:
            raise FactoryError(f"rank {rank}: {status}")
        return {"rank": rank} if (self.folder / str(rank)).exists() else {"waits": self.needs[rank]}

    def run(self, ranks: list[int], at_once: int) -> dict[int, dict[str, Any]]:
        return Turns(ranks, at_once, str(self.folder), self.start, self.end).run()


CHAIN = {1: 0, 2: 1, 3: 2}


@pytest.mark.parametrize("at_once", [1, 2, 8])
def test_every_rank_runs(tmp_path: Path, at_once: int) -> None:
    assert sorted(Processes(tmp_path, CHAIN).run([3, 1, 2, 0], at_once)) == [0, 1, 2, 3]
    assert list(tmp_path.glob("running.*")) == []


def test_a_chain_in_order_runs_once_each(tmp_path: Path) -> None:
    processes = Processes(tmp_path, CHAIN)
    processes.run([0, 1, 2, 3], 1)
    assert processes.started == [0, 1, 2, 3]


def test_a_rank_that_another_waits_for_runs(tmp_path: Path) -> None:
    processes = Processes(tmp_path, CHAIN)
    assert sorted(processes.run([1], 2)) == [0, 1]
    assert processes.started == [1, 0, 1]


def test_ranks_that_wait_for_each_other_end(tmp_path: Path) -> None:
    with pytest.raises(FactoryError, match="waits for the stage of a pipeline that no rank runs"):
        Processes(tmp_path, {0: 1, 1: 0}).run([0, 1], 2)


def test_no_rank_runs_on_after_a_failure(tmp_path: Path) -> None:
    processes = Processes(tmp_path, {}, fails=1)
    with pytest.raises(FactoryError, match="rank 1: "):
        processes.run([0, 1], 2)
    for pid in processes.pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, signal.SIG_DFL)


def test_ranks_that_fail_together_are_told_as_one_that_fails(tmp_path: Path) -> None:
    """Both have ended before anything looks at them: the second one is no process that could still be stopped."""
    processes = Processes(tmp_path, {}, fails=0)

    def start(_rank: int) -> int:
        child = processes.start(0)
        os.waitid(os.P_PID, processes.pids[-1], os.WEXITED | os.WNOWAIT)
        return child

    with pytest.raises(FactoryError, match="rank 0: "):
        Turns([0, 1], 2, str(tmp_path), start, processes.end).run()
