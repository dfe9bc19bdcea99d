"""What one rank runs: the program's own factory and step, recorded on the tensors that this rank has."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import prod
from typing import Any

import torch

from ....core.records import CALLED_WITH, GROUP, Op, Trace
from ...shared import nested
from ...shared.refusal import FactoryError
from ..adapter import Adapter
from ..call_adapter import is_leaf, tensors_out
from ..inputs import Inputs
from ..model import _tell
from ..steps.context import StepContext
from ..steps.path import StepPath
from ..training import OPTIMIZERS, _loss
from .layout import batches_of, mesh_of
from .pipelines import PREPARED, Waits
from .world import standing

FAKED = (
    "one process ran as each rank on a process group that sends nothing: what other ranks send is this rank's own data, so work "
    "that depends on values, such as the choice of an expert, is that of a world of equal batches"
)


class RankAdapter(Adapter):
    """Takes a function of no arguments for a model, too: it is the step."""

    def is_model(self, value: Any) -> bool:
        """A module, or a function that takes the step."""
        return super().is_model(value) or callable(value)

    def entry(self, model: Any) -> Any:
        """See Adapter.entry."""
        return super().entry(model) if isinstance(model, torch.nn.Module) else model


class RankStep:
    """The step of one rank: a trace, a ledger of each counter, and what is known of its place.

    ``pair`` makes the model, ``nested`` the counters, and ``training`` names the optimizer of a step, '' for a call.
    """

    def __init__(self, pair: Any, nested: Sequence[Callable[[Any], Any]], device: str, training: str) -> None:
        self.pair, self.nested, self.device, self.training = pair, nested, device, training
        self.context: StepContext | None = None
        self.told: dict[str, Any] = {}
        self._notes: tuple[str, ...] = ()

    def run(self, rank: int, world: int, exchange: str) -> None:
        """Run it. Raises FactoryError for a program that cannot be used."""
        torch.manual_seed(0)
        with standing(rank, world, exchange) if world > 1 else nullcontext() as seen:
            model = self.pair.build_torch({})
            arguments = self._arguments()
            modules = [model] if isinstance(model, torch.nn.Module) else []
            self.context = context = StepContext(modules, self.nested)
            if seen is not None:
                seen.pipelines.recorder = context.recorder
            step = self._step(model, arguments)
            context.enter()
            try:
                self.pair.tried(step, lambda: self._given(arguments))
            finally:
                context.leave()
            told = [FAKED] if world > 1 else []
            if seen is not None and seen.pipelines.prepared:
                told.append(PREPARED)
            self._notes = tuple(told)
            if seen is not None:
                models = modules or _called(context.recorder.path)
                self.told = {
                    "mesh": mesh_of(seen.meshes, world),
                    "asked": seen.lines,
                    "where": seen.where,
                    "batches": batches_of(models),
                }
            self.told["given"] = self._given(arguments) if modules else ""

    def _arguments(self) -> nested.Arguments:
        made = Inputs(self.device)
        return nested.changed(self.pair.arguments({}), is_leaf, made.tensor)  # type: ignore[no-any-return]

    def _given(self, arguments: nested.Arguments) -> str:
        return nested.described(arguments, is_leaf, _tell)

    def _step(self, model: Any, arguments: nested.Arguments) -> Callable[[], Any]:
        positional, named = arguments
        if not isinstance(model, torch.nn.Module):
            return lambda: model(*positional, **named)
        if not self.training:
            model.eval()
            return lambda: _without_gradients(lambda: model(*positional, **named))
        model.train()
        optimizer = [OPTIMIZERS[self.training]([weight]) for weight in model.parameters() if weight.requires_grad]

        def step() -> None:
            loss, trains = _loss([t for t in tensors_out(model(*positional, **named)) if t.is_floating_point()])
            if loss is not None and trains:
                loss.backward()
            for each in optimizer:
                each.step()

        return step

    def trace(self) -> Trace:
        """The trace of the step."""
        assert self.context is not None
        trace = self.context.trace()
        given = self.told.get("given", "")
        notes = [note for note in trace.notes if not (given and note.startswith(CALLED_WITH))]
        return trace._replace(notes=(*notes, *([CALLED_WITH + given] if given else []), *self._notes))

    def ledgers(self) -> list[Any]:
        """See StepContext.ledgers."""
        assert self.context is not None
        return self.context.ledgers()


adapter = RankAdapter
step = RankStep
"""What worker/ranks.py makes for each rank."""


def waits(error: BaseException) -> bool:
    """Whether the rank's run ended because another has to run first."""
    return isinstance(error, Waits)


def _without_gradients(call: Callable[[], Any]) -> Any:
    with torch.no_grad():
        return call()


def _called(path: StepPath) -> list[torch.nn.Module]:
    """The modules that the step called, and no other module did."""
    return list(path._calls) or list(path._names)


def digest(ops: Sequence[Op]) -> str:
    """A rank's work in a word: that of ranks which differ in their place alone is equal."""
    text = hashlib.sha256()
    for op in ops:
        attrs = dict(op.attrs)
        if GROUP in attrs:
            group = attrs[GROUP]
            size = len(group["ranks"])
            more = [group["place"] < prod(t.shape or ()) % size for t in op.inputs]  # these reduce one element less
            attrs[GROUP] = [size, group["reduce"], more if group["reduce"] else ""]
            attrs = {name: value for name, value in attrs.items() if name not in ("src", "dst", "root_rank")}
        text.update(repr((op.op, op.layer, op.phase, op.inputs, op.outputs, sorted(attrs.items()), op.calls)).encode())
    return text.hexdigest()
