"""The ledger of a counter of DeepSpeed's design: while a model runs, it has patched functions of torch, torch.nn.functional and
torch.Tensor, and hooks recurrent modules. calflops is a fork of it.

The counter itself says which functions it patches, and how it reads their arguments: all go through its ``wrapFunc``.
Python 3.6, PyTorch 2.0 and later.
"""

import inspect
import sys
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import torch

from ...core.records import ALIAS, Entry, Ledger, Sighting
from ..pytorch import higher_order
from ..pytorch.model import ModulePath, TorchModel, module_paths, versions
from . import ROOT, SUM
from .function_calls import CallRecorder, fused, innermost
from .limits import Limit, counting
from .module_calls import class_name, visits


class Profiler(NamedTuple):
    """How to run such a counter, and where it keeps its counts.

    ``module`` has wrapFunc and MODULE_HOOK_MAPPING; ``pipeline`` is the class that puts hooks on modules, and ``ending`` the name
    of its method that takes the counts off them again.  ``kept`` are the lists and dicts that it keeps between runs, to be
    cleared.  ``run`` returns FLOPs and MACs.  ``per_path`` says whether it adds a shared module at each of its paths.
    """

    module: Any
    pipeline: Any
    ending: str
    kept: Tuple[Any, ...]
    run: Callable[[torch.nn.Module, List[torch.Tensor]], Tuple[int, int]]
    per_path: bool


NUMBER = "number"
"""The attribute that says of which of the counter's two numbers a call is."""
FLOPS, MACS = "flops", "macs"


PACKED = Limit(
    ("'PackedSequence' object has no attribute 'shape'",),
    "its hook of recurrent layers reads the shape of the input, and packed sequences have none: give padded ones",
)
"""What no such counter can count."""


def ledger(counter, unit, model, number, packages, profiler, limits):
    # type: (str, str, TorchModel, str, Dict[str, str], Profiler, Tuple[Limit, ...]) -> Ledger
    """Run the counter once on a fresh module, in evaluation mode, with gradients on as its users have them.

    ``number`` is one of FLOPS and MACS; ``packages`` are the versions of the packages that select the rules.
    """
    module = model.build(model.device)
    inputs = list(model.example(model.device))
    path = ModulePath(module)
    recorder = CallRecorder(path)
    counts = {}  # type: Dict[torch.nn.Module, int]

    def smallest():
        # type: () -> Any
        return profiler.run(torch.nn.Linear(1, 1), [torch.zeros(1, 1)])

    watched = _watched(profiler, recorder, module, number, counts)
    with counting(limits, smallest), torch.enable_grad(), higher_order.uncompiled(), path, recorder, watched:
        total = profiler.run(module, inputs)[number == MACS]
    names = module_paths(module)
    paths = visits(module) if profiler.per_path else [(names[m], m) for m in module.modules()]
    entries, sightings = [], []  # type: List[Entry], List[Sighting]
    found = recorder.sightings()
    for name, child in paths:
        owner = names[child]
        if counts.get(child):
            entries.append(Entry(name or ROOT, owner, class_name(child), counts[child], 1))
        if name != owner:
            calls = [s.op._replace(id="%s@%s" % (s.op.id, name)) for s in found if s.entry == (owner or ROOT)]
            sightings += [Sighting(op, name, ALIAS) for op in calls]
    rest = total - sum(entry.value for entry in entries)
    if rest:  # of no module that has a path: no rule covers it, so it is a residual
        entries.append(Entry(SUM, "", SUM, rest, 1))
    package_versions = dict(versions(module), **packages)
    everything = tuple(found) + tuple(sightings)
    return Ledger(
        counter, "torch", unit, model.device, package_versions, total, tuple(entries), everything, {}, ()
    )  # fmt: skip


def _spaces():
    # type: () -> List[Any]
    return [torch.nn.functional, torch, torch.Tensor] + ([sys.modules["einops"]] if "einops" in sys.modules else [])


def _name_of(function):
    # type: (Any) -> str
    """The public name of a function that is about to be patched."""
    name = function.__name__
    for space in _spaces():
        if getattr(space, name, None) is function:
            return "%s.%s" % ("torch.Tensor" if space is torch.Tensor else space.__name__, name)
    if function is torch.nn.functional.scaled_dot_product_attention:  # ours, which lets it through as one op
        return "torch.nn.functional.scaled_dot_product_attention"
    return str(name)


@contextmanager
def _watched(profiler, recorder, module, number, counts):
    # type: (Profiler, CallRecorder, torch.nn.Module, str, Dict[torch.nn.Module, int]) -> Iterator[None]
    """Meanwhile the counter's calls are recorded, and what it has counted at the end goes into ``counts``.

    Afterwards every function is what it was: a counter that stops halfway leaves them patched.
    """
    names, mapping = module_paths(module), profiler.module.MODULE_HOOK_MAPPING
    hooked = {names[m] for m in module.modules() if type(m) not in mapping}
    for child in module.modules():
        if type(child) in mapping:
            recorder.watch(child, class_name(child), names[child] or ROOT, {NUMBER: number})
    originals = {}  # type: Dict[Any, Any]
    wrap, ending = profiler.module.wrapFunc, getattr(profiler.pipeline, profiler.ending)

    def wrapped(function, formula, *places):
        # type: (Any, Any, *Any) -> Any
        name, signature = _name_of(function), inspect.signature(formula)
        patched = wrap(function, formula, *places)

        def called(*args, **kwargs):
            # type: (*Any, **Any) -> Any
            entry = innermost(recorder.path, hooked) or ROOT
            return recorder.call(patched, name, entry, signature, args, kwargs, {NUMBER: number})

        originals[called] = function
        called.__str__ = function.__str__  # type: ignore[method-assign]  # by which the counter finds the original again
        return called

    def ended(pipeline):
        # type: (Any) -> None
        counts.update((m, getattr(m, "__%s__" % number)) for m in module.modules())
        ending(pipeline)

    profiler.module.wrapFunc = wrapped
    setattr(profiler.pipeline, profiler.ending, ended)
    try:
        with fused(recorder):
            yield
    finally:
        profiler.module.wrapFunc = wrap
        setattr(profiler.pipeline, profiler.ending, ending)
        for space in _spaces():
            for name, value in list(vars(space).items()):
                if type(value) is FunctionType and value in originals:
                    setattr(space, name, originals[value])
        for held in profiler.kept:
            held.clear()
