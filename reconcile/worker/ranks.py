"""Runs ranks of a world, each in a process of its own: ``python reconcile.pyz REQUEST ranks``.

The process imports the framework and the user's module once, and each rank is a fork of it.  A rank leaves its trace, its
ledgers and what is known of its place in a folder of its number; ``ranks.json`` says which ranks ran and which are like them.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from json import dumps, load, loads
from os import path as paths
from typing import Any

from ..adapters.shared.refusal import BeyondCounter, FactoryError, reason_of
from ..core.framework import absolute, adapter_of
from ..core.protocol import TRACE, WorkerRequest, from_text
from ..core.records import to_json
from .factory import FactoryPair
from .main import write
from .rank_plan import MOST, Plan
from .user_code import described

ROUNDS = 64
"""How often a rank runs again for the stages of a pipeline that it waits for."""


class Ranks:
    """The ranks of one request."""

    def __init__(self, request: WorkerRequest, world: int, chosen: list[int], at_once: int) -> None:
        self.request, self.world, self.chosen, self.at_once = request, world, chosen, at_once
        self.adapter = adapter_of(request.framework)
        self.pair: Any = None
        self.exchange = paths.join(request.out, "exchange")

    def main(self) -> int:
        """Run them. Returns 0; a program that cannot be used is told in refused.json."""
        try:
            os.makedirs(self.exchange)
            ranks = self.adapter.ranks()
            self.pair = FactoryPair(self.request, ranks.adapter(self.request.framework))
            self.pair.ready(self.request.lacking, lambda _doing: None)
            self._run()
        except FactoryError as error:
            write(paths.join(self.request.out, "refused.json"), dumps({"error": str(error), "declined": False}))
        return 0

    def _run(self) -> None:
        if self.chosen:
            ran = self._ran(self.chosen)
            self._leave({"folded": [[rank, [rank]] for rank in ran], "ran": ran})
            return
        ran = self._ran([0])
        while missing := Plan(self.world, ran).missing():
            where = Plan(self.world, ran).all_run()
            if where and self.world > MOST:
                raise FactoryError(
                    f"the program asks for its number among all ranks ({where}), so each of the {self.world} may do other work: "
                    "ask for a place in the mesh (mesh.get_local_rank), or choose ranks with --rank 0,7"
                )
            ran.update(self._ran(missing))
        self._leave({"folded": Plan(self.world, ran).folded(), "ran": ran})

    def _leave(self, told: dict[str, Any]) -> None:
        mesh = next(iter(told["ran"].values()))["mesh"] if self.world > 1 else {}
        write(paths.join(self.request.out, "ranks.json"), dumps(dict(told, mesh=mesh, world=self.world)))

    def _ran(self, ranks: list[int]) -> dict[int, Any]:
        """Run these ranks, as many at once as there are processors. Raises FactoryError for the first that failed."""
        told: dict[int, Any] = {}
        waiting = list(ranks)
        for _ in range(ROUNDS):
            again: list[int] = []
            for start in range(0, len(waiting), self.at_once):
                for rank in self._forked(waiting[start : start + self.at_once]):
                    found = self._told(rank)
                    if found.get("waits"):
                        again.append(rank)
                    else:
                        told[rank] = found
            if not again:
                return told
            waiting = again
        raise FactoryError(
            f"rank {waiting[0]} waits for the stage of a pipeline that no rank runs: each rank needs a stage of its own"
        )

    def _forked(self, ranks: list[int]) -> list[int]:
        children = {}
        sys.stdout.flush()
        sys.stderr.flush()
        for rank in ranks:
            child = os.fork()
            if child == 0:
                self._child(rank)
            children[child] = rank
        for child, rank in children.items():
            _, status = os.waitpid(child, 0)
            if status and not paths.exists(self._path(rank, "told.json")):
                raise FactoryError(f"rank {rank} ended its process (status {status}): run it alone with --rank {rank}")
        return ranks

    def _child(self, rank: int) -> None:
        status = 0
        try:
            os.makedirs(paths.join(self.request.out, str(rank)), exist_ok=True)
            self._step(rank)
        except FactoryError as error:
            write(self._path(rank, "told.json"), dumps({"error": str(error)}))
        except BaseException as error:
            if self.adapter.ranks().waits(error):
                write(self._path(rank, "told.json"), dumps({"waits": True}))
            else:
                traceback.print_exc()
                write(self._path(rank, "told.json"), dumps({"error": f"rank {rank} {described(error)}."}))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _step(self, rank: int) -> None:
        ranks = self.adapter.ranks()
        modules = [absolute(module) for module, _ in self.request.counters.values()]
        nested = [importlib.import_module(module + ".nested").nested for module in modules]
        step = ranks.step(self.pair, nested, self.request.device, self.request.training)
        step.run(rank, self.world, self.exchange)
        trace = step.trace()
        write(self._path(rank, TRACE + ".json"), to_json(trace))
        for counter, ledger in zip(self.request.counters, step.ledgers(), strict=True):
            if isinstance(ledger, Exception):
                failed = {"reason": reason_of(ledger), "missing": "", "beyond": isinstance(ledger, BeyondCounter)}
                write(self._path(rank, counter + ".error.json"), dumps(failed))
            else:
                write(self._path(rank, counter + ".json"), to_json(ledger))
        write(self._path(rank, "told.json"), dumps(dict(step.told, digest=ranks.digest(trace.ops))))

    def _path(self, rank: int, name: str) -> str:
        return paths.join(self.request.out, str(rank), name)

    def _told(self, rank: int) -> dict[str, Any]:
        with open(self._path(rank, "told.json")) as file:
            told: dict[str, Any] = load(file)
        if "error" in told:
            raise FactoryError(told["error"])
        return told


def main(path: str) -> int:
    """Entry point: run the ranks of the request in the file at ``path``."""
    with open(path) as file:
        asked = loads(file.read())
    return Ranks(from_text(asked["request"]), asked["world"], asked["ranks"], asked["at_once"]).main()
