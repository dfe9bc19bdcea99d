"""Ledgers of ptflops.get_model_complexity_info, with each of its backends. Python 3.6, torch 2.0 and later.

"pytorch" has an entry per module that it hooks and path at which it adds that module's count, one per module and function that it
patches, and one for the division of the first by the batch. "aten" has one per module and ATen op.
"""

import contextlib
import importlib
import inspect
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

import torch

from ....core.records import ALIAS, MAC, Entry, Ledger, Op, Sighting
from ...pytorch.model import ModulePath, TorchModel, module_paths, versions
from ...pytorch.records import tensor_record, tensors_in
from ...pytorch.trace import Recorder, op_name
from ...shared.distribution import version_of
from ...shared.refusal import BeyondCounter
from ..function_calls import CallRecorder, fused
from ..limits import Limit, counting
from ..module_calls import ROOT, class_name

AVERAGE = "ptflops.average"
"""Not an op: the division by the batch."""
Taken = Tuple[int, List[Entry], List[Sighting]]
"""The total, the entries and the sightings."""

LIMITS = (
    Limit(
        ("'PackedSequence' object has no attribute 'shape'",),
        "it asks a packed sequence for a shape, which has none: give padded sequences",
    ),
)
"""Models that ptflops cannot count."""


@contextlib.contextmanager
def replaced(module, **values):
    # type: (Any, **Any) -> Iterator[None]
    """Within this a module has other attributes."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


class Errors(object):
    """Stands for ``traceback`` in ptflops, which prints the error that stops it and goes on."""

    def __init__(self):
        # type: () -> None
        self.met = []  # type: List[Any]

    def print_exc(self):
        # type: () -> None
        """Keep the error."""
        self.met.append(sys.exc_info()[1])


def complexity(backend, engine, module, inputs):
    # type: (str, Any, torch.nn.Module, Tuple[torch.Tensor, ...]) -> int
    """The total that ptflops reports. It hands one argument to a model, so a hook makes several of a tuple."""
    from ptflops import get_model_complexity_info

    def spread(_module, arguments):
        # type: (Any, Any) -> Any
        return arguments[0] if len(arguments) == 1 and arguments[0] is inputs else None

    if len(inputs) != 1:
        module.register_forward_pre_hook(spread, prepend=True)
    given = inputs[0] if len(inputs) == 1 else inputs
    errors = Errors()
    with open(os.devnull, "w") as printed, contextlib.redirect_stdout(printed), replaced(engine, traceback=errors):
        total, _ = get_model_complexity_info(
            module, (1,), False, False, input_constructor=lambda _size: given, ost=printed, backend=backend
        )
    if errors.met:
        raise errors.met[0]
    return int(total)


def _smallest(backend, engine):
    # type: (str, Any) -> Callable[[], Any]
    return lambda: complexity(backend, engine, torch.nn.Linear(1, 1), (torch.zeros(1, 1),))


def capture(counter, model):
    # type: (str, TorchModel) -> Ledger
    """Run ptflops with one of its backends on a fresh module on ``model.device``, with gradients on, as its users do."""
    import ptflops

    backend = counter.partition("@")[2]
    engine = importlib.import_module("ptflops.%s_engine" % backend)
    module = model.build(model.device)
    inputs = tuple(model.example(model.device))
    taken = _aten if backend == "aten" else _pytorch
    with counting(LIMITS, _smallest(backend, engine)):
        total, entries, sightings = taken(engine, module, inputs)
    numbers = dict(versions(module), ptflops=version_of("ptflops", ptflops))
    return Ledger(counter, "torch", MAC, model.device, numbers, total, tuple(entries), tuple(sightings), {}, ())


def names_of_functions():
    # type: () -> Dict[Any, str]
    """The public name of every function that may be patched."""
    spaces = (("torch.Tensor.", torch.Tensor), ("torch.", torch), ("torch.nn.functional.", torch.nn.functional))
    return {f: prefix + n for prefix, space in spaces for n, f in vars(space).items() if callable(f) and n[0] != "_"}


def visits(root, supported):
    # type: (torch.nn.Module, Callable[[torch.nn.Module], bool]) -> List[Tuple[str, torch.nn.Module]]
    """Every path at which ptflops adds a module's count: it looks at no module below one that it knows (accumulate_flops)."""
    visited, stack = [], [("", root)]
    while stack:
        path, module = stack.pop()
        if supported(module):
            visited.append((path, module))
        else:
            stack.extend((path + "." + name if path else name, child) for name, child in module.named_children())
    return visited


def _pytorch(engine, module, inputs):
    # type: (Any, torch.nn.Module, Tuple[torch.Tensor, ...]) -> Taken
    path = ModulePath(module)
    recorder = CallRecorder(path)
    added = {}  # type: Dict[Tuple[str, str], int]
    counts = {}  # type: Dict[torch.nn.Module, int]
    names, paths = names_of_functions(), module_paths(module)
    visited = visits(module, engine.is_supported_instance)
    for child in dict.fromkeys(child for _, child in visited):
        biased = getattr(child, "in_proj_bias", None) is not None
        recorder.watch(child, class_name(child), paths[child] or ROOT, {"in_proj_bias": biased})

    class Watched(engine.torch_function_wrapper):  # type: ignore[misc, name-defined]
        """A patched function, whose calls are recorded with the amounts that ptflops adds for them."""

        def __call__(self, *args, **kwds):
            # type: (*Any, **Any) -> Any
            name, counted = names[self.op], len(self.collector)
            entry = "%s|%s" % (path.current, name)
            parameters = inspect.signature(self.handler)
            signature = parameters if "input" in parameters.parameters else inspect.signature(self.op)
            called = super(Watched, self).__call__
            result = recorder.call(called, name, entry, signature, args, kwds, {})
            amount = self.collector[counted]
            if amount != int(amount):
                raise BeyondCounter("it counts a fraction of an operation, %s, for a call of %s" % (amount, name))
            added[path.current, name] = added.get((path.current, name), 0) + int(amount)
            return result

    first = []  # type: List[Op]

    def note(_module, arguments, _outputs):
        # type: (Any, Any, Any) -> None
        length = len(arguments[0]) if arguments else 1
        first.append(
            Op(AVERAGE, AVERAGE, "", tuple(map(tensor_record, tensors_in(arguments[:1]))), (), {"batch": length})
        )

    stop = engine.stop_flops_count

    def stopped(root):
        # type: (torch.nn.Module) -> None
        counts.update((child, child.__flops__) for _, child in visited)
        stop(root)

    module.register_forward_hook(note)
    with path, recorder, fused(recorder), replaced(engine, torch_function_wrapper=Watched, stop_flops_count=stopped):
        total = complexity("pytorch", engine, module, inputs)
    entries = [Entry(p or ROOT, paths[m], class_name(m), counts[m], 1) for p, m in visited if counts[m]]
    entries += [Entry("%s|%s" % key, key[0], key[1], value, 1) for key, value in added.items() if value]
    divided = total - sum(entry.value for entry in entries)
    if divided:
        entries.append(Entry(AVERAGE, "", AVERAGE, divided, 1))
    sightings = recorder.sightings()
    for p, m in visited:
        if p != paths[m]:
            calls = [s.op for s in recorder.sightings() if s.entry == (paths[m] or ROOT)]
            sightings += [Sighting(op._replace(id="%s@%s" % (op.id, p)), p, ALIAS) for op in calls]
    return total, entries, sightings + [Sighting(op, AVERAGE) for op in first]


def _aten(engine, module, inputs):
    # type: (Any, torch.nn.Module, Tuple[torch.Tensor, ...]) -> Taken
    path = ModulePath(module)
    recorder = Recorder(path)
    added = {}  # type: Dict[Tuple[str, str], int]

    class Watched(engine.FlopCounterMode):  # type: ignore[misc, name-defined]
        """The counter itself, noting by module what it adds."""

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            # type: (Any, Any, Any, Any) -> Any
            before = sum(self.flop_counts["Global"].values())
            out = super(Watched, self).__torch_dispatch__(func, types, args, kwargs)
            amount = sum(self.flop_counts["Global"].values()) - before
            if amount:
                key = (path.current, op_name(func))
                added[key] = added.get(key, 0) + int(amount)
            return out

    with path, recorder, replaced(engine, FlopCounterMode=Watched):
        total = complexity("aten", engine, module, inputs)
    calls = {}  # type: Dict[Tuple[str, str], int]
    for op in recorder.ops.values():
        calls[op.layer, op.op] = calls.get((op.layer, op.op), 0) + op.calls
    sightings = [Sighting(op, "%s|%s" % (op.layer, op.op)) for op in recorder.ops.values()]
    return total, [Entry("%s|%s" % key, key[0], key[1], value, calls[key]) for key, value in added.items()], sightings
