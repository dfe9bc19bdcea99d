"""Runs torch.profiler with_flops and returns its ledger: one entry per module and operator that the module's own code calls.
``event_ledger`` makes that of any counter that adds up its events, such as xformers.

The profiler sees every operator, and within it those that it runs.  A marker event around each module's call says which module an
event is of.  An event that equals another, with all events within it, is one more call of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import torch

from ....core.records import FLOP, Entry, Ledger, Op, Sighting, Tensor
from ...pytorch.model import TorchModel, versions
from ...pytorch.tracing.module_path import ModulePath
from ...pytorch.tracing.recorder import Recorder
from ...pytorch.tracing.trace_notes import takes_fast_path
from ...shared.refusal import CannotCount
from ..limits import explain_limits

MARK = "reconcile:"
"""Start of the name of an event that stands for a module's call."""
DTYPES = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "long int": "int64",
}
"""The profiler's names of types that differ from PyTorch's."""


FAST_PATH = (
    "PyTorch's fused path of attention and encoder layers was off (torch.backends.mha.set_fastpath_enabled(False)); with it, "
    "inference runs other operators, of which the profiler counts other parts"
)
"""Note of a ledger of a model that has such a path."""


INPUT_TYPES_UNKNOWN = (
    "torch.profiler of PyTorch {} does not say which inputs of an operator are tensors, so nothing can be said of its number: "
    "use PyTorch 2.12 or later"
)
"""From 2.12.0 on an event has ``input_dtypes`` (torch/autograd/profiler_util.py); 2.11.0 has none."""


class MarkedPath(ModulePath):
    """Puts an event around each call of a module."""

    def __init__(self, root: torch.nn.Module) -> None:
        super().__init__(root)
        self._marks: dict[int, list[Any]] = {}

    def _push(self, module: torch.nn.Module, inputs: Any) -> None:
        super()._push(module, inputs)
        mark = torch.autograd.profiler.record_function(MARK + self.current)
        mark.__enter__()
        self._marks.setdefault(get_ident(), []).append(mark)

    def _pop(self, module: Any, inputs: Any, outputs: Any) -> None:
        self._marks[get_ident()].pop().__exit__(None, None, None)
        super()._pop(module, inputs, outputs)


class Node:
    """Events of one name on tensors of the same shapes, and those within them: ``times`` per call of what is around them."""

    READ: tuple[str, ...] = ("aten::conv2d",)
    """The events whose other arguments a formula reads."""

    def __init__(self, event: Any) -> None:
        self.name = event.name
        self.times = 1
        shapes, types = list(event.input_shapes or ()), list(event.input_dtypes or ())
        self.inputs = [
            [list(shape), DTYPES.get(dtype, dtype)]
            for shape, dtype in zip(shapes, types)
            if dtype not in ("", "Scalar", "ScalarList", "TensorList")
        ]
        self.has_list = "TensorList" in types
        self.arguments = list(event.concrete_inputs or ()) if event.name in self.READ else []
        self.flops = int(event.flops or 0)
        self.nodes = merge_nodes(type(self)(child) for child in event.cpu_children if not is_mark(child))
        inner = [(node.key, node.times) for node in self.nodes]
        self.key: str = repr((self.name, self.inputs, self.has_list, self.arguments, self.flops, inner))

    @property
    def total(self) -> int:
        """What the profiler adds for one call and everything within it."""
        return self.flops + sum(node.times * node.total for node in self.nodes)


def is_mark(event: Any) -> bool:
    """Whether an event is not an operator: it stands for a module, or the profiler uses it to record one."""
    return bool(event.name.startswith((MARK, "profiler::")))


def merge_nodes(nodes: Any) -> list[Node]:
    """The nodes in order; equal nodes are merged into one."""
    by_key: dict[str, Node] = {}
    for node in nodes:
        if node.key in by_key:
            by_key[node.key].times += node.times
        else:
            by_key[node.key] = node
    return list(by_key.values())


def layer_of(event: Any) -> str:
    """The path of the module that an event is of."""
    while event is not None and not event.name.startswith(MARK):
        event = event.cpu_parent
    return event.name[len(MARK) :] if event is not None else ""


def record(node: Node, layer: str, within: tuple[str, ...], calls: int, sightings: list[Sighting], entry: str) -> None:
    """Add to ``sightings`` the calls of a node, and of those within it."""
    name = f"e{len(sightings)}"
    inputs = tuple(Tensor(tuple(shape), dtype) for shape, dtype in node.inputs)
    attrs = {"arguments": node.arguments, "has_list": node.has_list}
    op = Op(name, node.name, layer, inputs, (), attrs, calls * node.times, within=within)
    sightings.append(Sighting(op, entry))
    for inner in node.nodes:
        record(inner, layer, within + (name,), calls * node.times, sightings, entry)


@contextmanager
def op_by_op() -> Iterator[None]:
    """Meanwhile PyTorch runs attention and encoder layers op by op, as the trace has them."""
    switch: Any = getattr(torch.backends, "mha", None)
    enabled = switch is not None and switch.get_fastpath_enabled()
    if enabled:
        switch.set_fastpath_enabled(False)
    try:
        yield
    finally:
        if enabled:
            switch.set_fastpath_enabled(True)


def profile_call(module: torch.nn.Module, inputs: Any) -> Any:
    """The profiler of one inference call."""
    cpu = [torch.profiler.ProfilerActivity.CPU]
    profiler = torch.profiler.profile(activities=cpu, with_flops=True, record_shapes=True)
    with torch.no_grad(), op_by_op(), profiler, MarkedPath(module):
        module(*inputs)
    return profiler


def record_dispatched(model: TorchModel) -> list[Op]:
    """The operators that one more call dispatches: an event has neither outputs nor the names of its arguments."""
    module = model.build(model.device)
    path = ModulePath(module)
    recorder = Recorder(path)
    with torch.no_grad(), op_by_op(), path, recorder:
        module(*model.example(model.device))
    return list(recorder.ops.values())


Sums = Callable[[Any], tuple[int, Callable[[Any], int]]]
"""From a profiler to its total, and the function that gives the part of it that one event and those within it have."""


def capture(counter: str, model: TorchModel) -> Ledger:
    """Profile one inference call (eval, no_grad) of a fresh module on ``model.device``."""
    return event_ledger(counter, model, _sums, Node, {})


def _sums(profiler: Any) -> tuple[int, Callable[[Any], int]]:
    return sum(int(event.flops or 0) for event in profiler.events()), lambda event: Node(event).total


def event_ledger(counter: str, model: TorchModel, sums: Sums, node: type[Node], packages: dict[str, str]) -> Ledger:
    """The ledger of one inference call, by what ``sums`` gives for its events. ``packages`` are versions beside PyTorch's.

    Sightings are the events (``aten::add``, in ``within`` those around it), and the operators of a second call (``aten.add``).
    """
    module = model.build(model.device)
    inputs = model.example(model.device)
    with explain_limits((), lambda: sums(profile_call(torch.nn.Linear(1, 1), (torch.zeros(1, 1),)))):
        profiler = profile_call(module, inputs)
        total, part = sums(profiler)
    events = list(profiler.events())
    if events and not hasattr(events[0], "input_dtypes"):
        raise CannotCount(INPUT_TYPES_UNKNOWN.format(torch.__version__))
    roots: dict[tuple[str, str], list[Any]] = {}
    for event in events:
        if not is_mark(event) and (event.cpu_parent is None or is_mark(event.cpu_parent)):
            roots.setdefault((layer_of(event), event.name), []).append(event)
    entries: list[Entry] = []
    sightings: list[Sighting] = []
    for (layer, name), calls in roots.items():
        entry = f"{layer}|{name}"
        value = sum(map(part, calls))
        if value:
            entries.append(Entry(entry, layer, name, value, len(calls)))
        for of_calls in merge_nodes(map(node, calls)):
            record(of_calls, layer, (), 1, sightings, entry)
    sightings += [Sighting(op, "") for op in record_dispatched(model)]
    notes: tuple[str, ...] = (FAST_PATH,) if any(map(takes_fast_path, module.modules())) else ()
    found = {**versions(module), **packages}
    return Ledger(
        counter, "torch", FLOP, model.device, found, total, tuple(entries), tuple(sightings), notes=tuple(notes)
    )
