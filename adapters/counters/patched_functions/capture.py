"""Records the calls of functions that a counter patches and of modules that it hooks, and the ops that ran in each call.

Under the counter, ops are recorded as in a trace: recurrent layers and attention are one op each.  No torch function mode is
active meanwhile: under one, PyTorch's functions call themselves again under their public names, which the counter has patched.
PyTorch 2.0 and later.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from inspect import Parameter
from typing import Any, Callable
from unittest.mock import patch

import torch

from ....core.records import ALIAS, LIVE, Entry, Ledger, Op, Sighting
from ...pytorch.model import TorchModel, versions
from ...pytorch.tracing.call_records import RECURRENT
from ...pytorch.tracing.fused_calls import FusedCalls
from ...pytorch.tracing.module_path import ModulePath
from ...pytorch.tracing.recorder import Recorder
from ...pytorch.tracing.records import plain, tensor_record, tensors_in
from .. import ROOT
from ..limits import Limit, explain_limits
from ..module_calls import class_name, settings

NO_ENTRY = ""
"""The entry of an op that ran under the counter: only the calls in which it ran feed one."""


class CallRecorder(Recorder):
    """Records the ops, the calls, and in which calls each op ran (``Op.within``, outermost first)."""

    def __init__(self, path: ModulePath) -> None:
        super().__init__(path)
        self.calls: dict[Any, Op] = {}
        self.entries: dict[str, str] = {}  # of each call
        self.running: list[Any] = []  # keys of calls

    def add(self, op: Op) -> None:
        """Record the op, with the calls that are running."""
        super().add(op._replace(within=self.within()))

    def within(self) -> tuple[str, ...]:
        """The ids of the calls that are running."""
        return tuple(self.calls[key].id for key in self.running)

    def begin(self, name: str, entry: str, tensors: list[torch.Tensor], attrs: dict[str, Any]) -> None:
        """A call of a function or module of this name begins, which feeds that entry. Equal calls are one record."""
        inputs = tuple(map(tensor_record, tensors))
        op = Op(f"call{len(self.calls)}", name, self.path.current, inputs, (), attrs, 0, within=self.within())
        key = (name, entry, op.layer, inputs, repr(sorted(attrs.items())), op.within)
        held = self.calls.get(key, op)
        self.calls[key] = held._replace(calls=held.calls + 1)
        self.entries[held.id] = entry
        self.running.append(key)

    def end(self, result: Any) -> None:
        """The innermost call returned this."""
        key = self.running.pop()
        outputs = tuple(map(tensor_record, tensors_in(result)))
        self.calls[key] = self.calls[key]._replace(outputs=outputs)

    def call(
        self,
        function: Callable[..., Any],
        name: str,
        entry: str,
        signature: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        also: dict[str, Any],
    ) -> Any:
        """Call a function that the counter reads by this signature: tensors are inputs, in its order, all others attributes.

        ``also`` are more attributes.
        """
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:  # the counter cannot read it either, and says so
            return function(*args, **kwargs)
        bound.apply_defaults()
        tensors: list[torch.Tensor] = []
        attrs: dict[str, Any] = dict(also)
        for argument, value in bound.arguments.items():
            kind = signature.parameters[argument].kind
            for name_of, given in value.items() if kind == Parameter.VAR_KEYWORD else [(argument, value)]:
                tensors += tensors_in(given)
                if kind == Parameter.VAR_POSITIONAL:
                    attrs[name_of] = [None if tensors_in(item) else plain(item) for item in given]
                elif not tensors_in(given):
                    attrs[name_of] = plain(given)
        self.begin(name, entry, tensors, attrs)
        result = None
        try:
            result = function(*args, **kwargs)
        finally:
            self.end(result)
        return result

    def watch(self, module: torch.nn.Module, name: str, entry: str, also: dict[str, Any]) -> None:
        """Record the calls of a module, with its settings and these attributes."""

        def begins(module: torch.nn.Module, inputs: Any) -> None:
            self.begin(name, entry, tensors_in(inputs), dict(settings(module), **also))

        module.register_forward_pre_hook(begins)
        module.register_forward_hook(lambda module, inputs, outputs: self.end(outputs))

    def sightings(self) -> list[Sighting]:
        """The calls, each with its entry, and the ops."""
        calls = [Sighting(op, self.entries[op.id], LIVE) for op in self.calls.values()]
        return calls + [Sighting(op, NO_ENTRY, LIVE) for op in self.ops.values()]

    def of_paths(
        self, paths: list[tuple[str, torch.nn.Module]], owners: dict[Any, str], counts: dict[Any, int]
    ) -> tuple[list[Entry], list[Sighting]]:
        """An entry for each path at which a counter adds a module's count, and the sightings, those of further paths again.

        ``owners`` has the path of each module in the trace, ``counts`` its count.
        """
        entries = [Entry(p or ROOT, owners[m], class_name(m), counts[m], 1) for p, m in paths if counts.get(m)]
        sightings = self.sightings()
        further = [(p, s.op) for p, m in paths if p != owners[m] for s in sightings if s.entry == (owners[m] or ROOT)]
        again = [Sighting(op._replace(id=f"{op.id}@{path}"), path, ALIAS) for path, op in further]
        return entries, sightings + again


Run = Callable[[torch.nn.Module, tuple[Any, ...]], tuple[int, list[Entry], list[Sighting]]]
"""Runs a counter on a module with the inputs; returns its total, its entries and what it met."""


def ledger_of(
    counter: str, unit: str, model: TorchModel, packages: dict[str, str], limits: tuple[Limit, ...], run: Run
) -> Ledger:
    """The ledger of a counter that ``run`` runs on a fresh module. ``packages`` are the versions that select its rules."""
    module = model.build(model.device)
    inputs = tuple(model.example(model.device))
    with explain_limits(limits, lambda: run(torch.nn.Linear(1, 1), (torch.zeros(1, 1),))):
        total, entries, sightings = run(module, inputs)
    numbers = dict(versions(module), **packages)
    return Ledger(counter, "torch", unit, model.device, numbers, total, tuple(entries), tuple(sightings))


def spaces() -> list[Any]:
    """The modules and the class whose functions counters patch: those of torch, and einops if it is loaded."""
    return [torch.nn.functional, torch, torch.Tensor] + ([sys.modules["einops"]] if "einops" in sys.modules else [])


def public_name(function: Any) -> str:
    """The name by which users call a function; '' if it has none."""
    name = str(function.__name__)
    for space in spaces():
        if getattr(space, name, None) is function:
            return ("torch.Tensor" if space is torch.Tensor else space.__name__) + "." + name
    return ""


def public_names(functions: Any) -> dict[Any, str]:
    """The public names of the functions that have one."""
    return {function: name for function in functions for name in [public_name(function)] if name}


replace_attributes: Callable[..., AbstractContextManager[Any]] = patch.multiple
"""Within this a module or a class has the named values in place of its own attributes."""


@contextmanager
def watch_fused_calls(recorder: Recorder) -> Iterator[None]:
    """Recurrent layers and attention are one op each, as in a trace. Enter this before the counter patches anything."""
    one = FusedCalls(recorder)
    functional = torch.nn.functional
    library: Any = torch.nn.modules.rnn._VF  # a module that finds its functions elsewhere: an attribute comes first
    attention = functional.scaled_dot_product_attention

    def recurrent(name: str) -> Callable[..., Any]:
        call = getattr(library, name)

        def run_watched(*args: Any) -> Any:
            return one.recurrent_call(name, call, args) if one.is_own_call else call(*args)

        return run_watched

    def attend(*args: Any, **kwargs: Any) -> Any:
        return one.attention(attention, args, kwargs) if one.is_own_call else attention(*args, **kwargs)

    calls = {name: recurrent(name) for name in RECURRENT}
    with replace_attributes(library, **calls), replace_attributes(functional, scaled_dot_product_attention=attend):
        yield


def innermost(path: ModulePath, among: Any) -> str:
    """The path of the innermost running module that is among these; '' if none is."""
    return next((name for name in reversed(path.running_paths) if name in among), "")
