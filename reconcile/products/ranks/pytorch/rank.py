"""Records the step of one rank: the user's factory and step run as they are, on the shards that this rank holds (worker.py).

``digest`` tells which ranks do equal work, and ``waits`` which other rank has to run before one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

from ....adapters.pytorch.call_adapter import is_leaf, tensors_out
from ....adapters.pytorch.inputs import Inputs
from ....adapters.pytorch.lazy import take_lazy
from ....adapters.pytorch.model import _tell
from ....adapters.pytorch.optimizers import Update, optimizer_class
from ....adapters.pytorch.tracing.records import tensors_in
from ....adapters.pytorch.training import _loss
from ....adapters.shared import nested
from ....core.records import CALLED_WITH, GROUP, Op, Trace
from ...steps.pytorch.context import StepContext
from ...steps.pytorch.path import StepPath
from .data_parallel import batches_of, mesh_of, unwrap_model
from .pipelines import SHAPES_LEARNT_BEFORE, Waits
from .sequences import ON_CPU
from .world import as_rank
from .world import install as install

ONE_PROCESS_RAN_AS_EACH = (
    "one process ran as each rank on a process group that sends nothing: what other ranks send is this rank's own data, so work "
    "that depends on values, such as the choice of an expert, may be other work in a real world"
)


MESH_OF_OTHER_DEVICES = "the program's mesh is of %s devices, of which this machine has none: its ranks ran on the CPU"


class Read:
    """How many elements the program gives to the module that it calls first: the first tensors of its calls."""

    def __init__(self, recorder: Any) -> None:
        self.elements = 0
        self._first: Any = None
        path, called = recorder.path, recorder.path._called

        def add(module: Any, arguments: Any) -> None:
            positional, named = arguments
            tensor = next(iter(tensors_in((positional, list(named.values())))), None)
            if tensor is not None and not recorder.paused and module in (self._first or module,):
                self._first = module
                self.elements += _elements(tensor)
            called(module, arguments)

        path._called = add


class RankStep:
    """The step of one rank: a trace, a ledger of each counter, and what is known of its place.

    ``nested`` makes the counters, and ``training`` names the optimizer of a step, '' for a call.
    """

    def __init__(self, nested: Sequence[Callable[[Any], Any]], device: str, training: str) -> None:
        self.nested, self.device, self.training = nested, device, training
        self.context: StepContext | None = None
        self.pair: Any = None
        self.told: dict[str, Any] = {}
        self._notes: tuple[str, ...] = ()

    def run(self, rank: int, world: int, exchange: str, ready: Callable[[], Any]) -> None:
        """Run it, of the program that ``ready`` imports. Raises FactoryError for a program that cannot be used."""
        torch.manual_seed(0)
        with as_rank(rank, world, exchange) as seen:
            self.pair = ready()
            at_import = bool(seen.where or seen.rank_groups)
            model = self.pair.build_torch({})
            arguments = self._arguments()
            modules = [unwrap_model(model)] if isinstance(model, torch.nn.Module) else []
            self.context = context = StepContext(modules, self.nested)
            seen.pipelines.recorder = context.recorder
            context.recorder.path.parts([unwrap_model(stage.submod) for stage in seen.pipelines.stages])
            read = Read(context.recorder)
            step = self._step(model, arguments)
            context.enter()
            try:
                self.pair.tried(step, lambda: self._describe_arguments(arguments))
            finally:
                context.leave()
            notes = {
                ONE_PROCESS_RAN_AS_EACH: world > 1,
                SHAPES_LEARNT_BEFORE: seen.pipelines.prepared,
                ON_CPU: seen.ring,
            }
            notes.update((MESH_OF_OTHER_DEVICES % kind, True) for kind in sorted(seen.lacking))
            self._notes = tuple(note for note, holds in notes.items() if holds)
            self.told = {
                "mesh": mesh_of(seen.meshes, world),
                "asked": seen.rank_groups,
                "where": seen.where,
                "at_import": at_import,
                "batches": batches_of([model] if modules else _called_modules(context.recorder.path)),
                "sequences": seen.sequences,
                "read": read.elements,
                "given": self._describe_arguments(arguments) if modules else "",
            }

    def _arguments(self) -> nested.Arguments:
        made = Inputs(self.device)
        return nested.change_leaves(self.pair.arguments({}), is_leaf, made.tensor)

    def _describe_arguments(self, arguments: nested.Arguments) -> str:
        return nested.describe_arguments(arguments, is_leaf, _tell)

    def _step(self, model: Any, arguments: nested.Arguments) -> Callable[[], Any]:
        positional, named = arguments
        if not isinstance(model, torch.nn.Module):
            return lambda: model(*positional, **named)
        if not self.training:
            model.eval()
            return lambda: _without_gradients(lambda: model(*positional, **named))
        model.train()
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        optimizer = Update(optimizer_class(self.training)).whole(weights) if weights else None

        def step() -> None:
            loss, trains = _loss(
                [t for t in tensors_out(take_lazy(model(*positional, **named))) if t.is_floating_point()]
            )
            if loss is not None and trains:
                loss.backward()
            if optimizer is not None:
                optimizer.step()

        return step

    def trace(self) -> Trace:
        """The trace of the step."""
        assert self.context is not None
        trace = self.context.trace()
        given = self.told.get("given", "")
        notes = [note for note in trace.notes if not (given and note.startswith(CALLED_WITH))]
        return trace._replace(notes=(*notes, *([CALLED_WITH + given] if given else []), *self._notes))

    def recorded_model(self) -> Any:
        """See StepContext.recorded_model."""
        assert self.context is not None
        return self.context.recorded_model()

    def ledgers(self) -> list[Any]:
        """See StepContext.ledgers."""
        assert self.context is not None
        return self.context.ledgers()


def _elements(tensor: torch.Tensor) -> int:
    """Those that this rank has, of a tensor that ranks share."""
    return int(getattr(tensor, "_local_tensor", tensor).numel())


step = RankStep
"""What products/ranks/worker.py makes for each rank."""


def waits(error: BaseException) -> int | None:
    """The rank that has to run first, if this rank's run ended for that; else None."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, Waits):
        cause = cause.__cause__ or cause.__context__
    return None if cause is None else cause.rank


def _without_gradients(call: Callable[[], Any]) -> Any:
    with torch.no_grad():
        return call()


def _called_modules(path: StepPath) -> list[torch.nn.Module]:
    """The modules that the step called, and no other module did."""
    return list(path._calls) or list(path._names)


COLLECTIVE = ("src", "dst", "root_rank")
"""Arguments of collectives that name a rank and do not affect the work."""
PLACED = {
    "fsdp.all_gather_copy_in": ("rank",),
    **dict.fromkeys(("aten.add", "aten.sub", "aten.lt", "aten.le", "aten.gt", "aten.ge", "aten.eq"), ("other",)),
}
"""Arguments by which ranks say which part of a tensor is theirs, such as the rows of an embedding: no work depends on them."""


def digest(ops: Sequence[Op]) -> str:
    """A digest of a rank's work: equal for ranks that differ in their place alone."""
    text = hashlib.sha256()
    for op in ops:
        attrs = dict(op.attrs)
        if GROUP in attrs:
            group = attrs[GROUP]
            size = len(group["ranks"])
            more = [
                group["place"] < prod(size or 0 for size in t.shape or ()) % size for t in op.inputs
            ]  # these reduce one element less
            attrs[GROUP] = [size, group["reduce"], more if group["reduce"] else ""]
        own = COLLECTIVE if GROUP in attrs else PLACED.get(op.op, ())
        attrs = {name: value for name, value in attrs.items() if name not in own}
        text.update(repr((op.op, op.layer, op.phase, op.inputs, op.outputs, sorted(attrs.items()), op.calls)).encode())
    return text.hexdigest()
