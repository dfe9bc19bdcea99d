"""Runs ranks of a world, each in a process of its own: ``python reconcile.pyz REQUEST .products.ranks.worker``.

The process imports the framework and the user's module once, and each rank is a fork of it.  A rank leaves its trace, its
ledgers and what is known of its place in a folder of its number; ``ranks.json`` says which ranks ran and which are like them.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from hashlib import sha256
from json import dumps, load, loads
from os import path as paths
from typing import Any

from ...adapters.shared.refusal import BeyondCounter, FactoryError
from ...core.framework import absolute, adapter_of
from ...core.protocol import TRACE, WorkerRequest, from_text
from ...core.records import to_json
from ...worker.factory import FactoryPair
from ...worker.main import write
from ...worker.process_guard import end_with
from ...worker.user_code import describe_user_error
from ..steps.watched_program import leave_ledger
from .plan import MOST, Plan
from .turns import Turns


class ModelOrStep:
    """A framework's adapter that takes a function of no arguments for a model, too: it is the step."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)

    def is_model(self, value: Any) -> bool:
        """See Adapter.is_model."""
        return self._adapter.is_model(value) or callable(value)

    def entry(self, model: Any) -> Any:
        """See Adapter.entry."""
        return self._adapter.entry(model) if self._adapter.is_model(model) else model


class Ranks:
    """The ranks of one request: ``main`` runs those that the sum needs, or those that are ``chosen``, ``at_once`` at a time.

    ``nested`` has the modules of those counters that count the step as it runs (core/counter.py).
    """

    def __init__(
        self, request: WorkerRequest, nested: dict[str, str], world: int, chosen: list[int], at_once: int
    ) -> None:
        self.request, self.nested, self.world, self.chosen, self.at_once = request, nested, world, chosen, at_once
        self.adapter = adapter_of(request.framework)
        self.pair: FactoryPair | None = None
        self.said: set[str] = set()
        self.exchange = paths.join(request.out, "exchange")

    @property
    def rank_module(self) -> Any:
        """The module of the framework that runs a rank."""
        return importlib.import_module(absolute(self.request.framework.ranks))

    def main(self) -> int:
        """Run them. Returns 0; a program that cannot be used is told in refused.json."""
        try:
            os.makedirs(self.exchange)
            if importlib.util.find_spec(self.request.framework.package) is None:
                raise FactoryError(self.request.lacking)
            self.rank_module.install()
            self._run()
        except FactoryError as error:
            write(paths.join(self.request.out, "refused.json"), dumps({"error": str(error), "declined": False}))
        return 0

    def _ready(self) -> FactoryPair:
        """The program, imported, in the surroundings of this process."""
        if self.pair is None:
            self.pair = FactoryPair(self.request, ModelOrStep(self.adapter))
            self.pair.ready(self.request.lacking, lambda _doing: None)
        self.pair.settle()
        return self.pair

    def _ready_for_all(self, told: dict[str, Any]) -> None:
        """Import the program once for the ranks that follow. One that asks for its place when it is imported, or needs its
        process group, is imported by each rank."""
        if told["at_import"]:
            return
        try:
            self._ready()
        except FactoryError:
            self.pair = None

    def _run(self) -> None:
        if self.chosen:
            ran = self._ran(self.chosen[:1])
            self._ready_for_all(ran[self.chosen[0]])
            ran.update(self._ran(self.chosen[1:]))
            self._leave({"folded": [[rank, [rank]] for rank in ran], "ran": ran})
            return
        ran = self._ran([0])
        if ran[0].get("one_program"):  # all devices run it, on parts of equal shapes
            self._leave({"folded": [[0, list(range(self.world))]], "ran": ran})
            return
        if self.world > 1:
            self._ready_for_all(ran[0])
        while missing := (plan := Plan(ran)).list_ranks_to_run():
            where = plan.all_run()
            if where and self.world > MOST:
                raise FactoryError(
                    f"the program asks for its number among all ranks ({where}), so each of the {self.world} may do other work: "
                    "ask for a place in the mesh (mesh.get_local_rank), or choose ranks with --rank 0,7"
                )
            ran.update(self._ran(missing))
        self._leave({"folded": plan.fold_ranks(), "ran": ran})

    def _leave(self, told: dict[str, Any]) -> None:
        mesh = next(iter(told["ran"].values()))["mesh"]
        write(paths.join(self.request.out, "ranks.json"), dumps(dict(told, mesh=mesh, world=self.world)))

    def _ran(self, ranks: list[int]) -> dict[int, Any]:
        """Run these ranks, and those that they wait for. Raises FactoryError for the first that failed."""
        return Turns(ranks, self.at_once, self.exchange, self._start, self._read_result).run()

    def _start(self, rank: int) -> int:
        """The process of this rank."""
        sys.stdout.flush()
        sys.stderr.flush()
        os.makedirs(paths.join(self.request.out, str(rank)), exist_ok=True)
        me = os.getpid()
        child = os.fork()
        if child == 0:
            end_with(me)
            self._child(rank)
        return child

    def _read_result(self, rank: int, status: int) -> dict[str, Any]:
        """What the rank left. What it said is shown, unless it has to run again or another said the same. Raises FactoryError if
        it failed."""
        told: dict[str, Any] = {
            "error": f"rank {rank} ended its process (status {status}): run it alone with --rank {rank}"
        }
        if paths.exists(self._path(rank, "told.json")):
            with open(self._path(rank, "told.json")) as file:
                told = load(file)
        with open(self._path(rank, "said"), errors="replace") as file:
            said = file.read()
        if said and "waits" not in told and said not in self.said:
            self.said.add(said)
            sys.stderr.write(said)
        if "error" in told:
            raise FactoryError(told["error"])
        return told

    def _child(self, rank: int) -> None:
        try:
            with open(self._path(rank, "said"), "w") as file:
                os.dup2(file.fileno(), 2)
                os.dup2(file.fileno(), 1)
            try:
                told = self._step(rank)
            except BaseException as error:
                first = self.rank_module.waits(error)
                if first is not None:
                    told = {"waits": first}
                elif isinstance(error, FactoryError):
                    told = {"error": str(error)}
                else:
                    traceback.print_exc()
                    told = {"error": f"rank {rank} {describe_user_error(error)}."}
            write(self._path(rank, "told.json"), dumps(told))
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def _step(self, rank: int) -> dict[str, Any]:
        """Run it, and leave its trace and ledgers. Returns what is known of its place."""
        ranks = self.rank_module
        modules, nested = self.request.counters, self.nested
        made = [importlib.import_module(absolute(module)).nested for module in nested.values()]
        step = ranks.step(made, self.request.device, self.request.training)
        step.run(rank, self.world, self.exchange, self._ready)
        trace = step.trace()
        write(self._path(rank, TRACE + ".json"), to_json(trace))
        ledgers = dict(zip(nested, step.ledgers(), strict=True))
        ledgers.update((name, self._read_formula(name, step)) for name in modules if name not in nested)
        for counter, ledger in ledgers.items():
            leave_ledger(self._path(rank, ""), counter, ledger, beyond=isinstance(ledger, BeyondCounter))
        read = [[name, _entries(ledgers[name])] for name in sorted(modules) if name not in nested]
        return dict(step.told, digest=ranks.digest(trace.ops) + _word(read))

    def _read_formula(self, counter: str, step: Any) -> Any:
        """What a formula counts for the model of this rank's step, or why it counts nothing."""
        module, _ = self.request.counters[counter]
        try:
            return importlib.import_module(absolute(module) + ".capture").capture(counter, step.recorded_model())
        except BeyondCounter as error:
            return error
        except FactoryError as error:
            return BeyondCounter(str(error))

    def _path(self, rank: int, name: str) -> str:
        return paths.join(self.request.out, str(rank), name)


def _entries(ledger: Any) -> list[list[Any]]:
    """What a formula counts of each parameter: ranks that do equal work may have other parts of them."""
    return [] if isinstance(ledger, Exception) else [[entry.id, entry.value] for entry in ledger.entries]


def _word(read: list[list[Any]]) -> str:
    return sha256(dumps(read).encode()).hexdigest() if read else ""


def main(path: str) -> int:
    """Entry point: run the ranks of the request in the file at ``path``."""
    with open(path) as file:
        asked = loads(file.read())
    request = from_text(asked["request"])
    return Ranks(request, asked["nested"], asked["world"], asked["ranks"], asked["at_once"]).main()
