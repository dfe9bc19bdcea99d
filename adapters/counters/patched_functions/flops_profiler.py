"""Runs DeepSpeed's FLOPs profiler or its fork calflops, and returns the ledger; a ``Profiler`` says which, and how it runs.

While a model runs, they patch functions of torch, torch.nn.functional and torch.Tensor, and hook recurrent modules; every patch
goes through their ``wrapFunc``, which is where reconcile records.  PyTorch 2.0 and later.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from types import FunctionType
from typing import Any, Callable, NamedTuple

import torch

from ....core.records import FLOP, MAC, Entry, Ledger, Sighting
from ...pytorch.model import TorchModel
from ...pytorch.tracing import higher_order
from ...pytorch.tracing.module_path import ModulePath, module_paths
from .. import ROOT, add_rest
from ..limits import PACKED
from ..module_calls import class_name, visits
from .capture import CallRecorder, innermost, ledger_of, public_name, replace_attributes, spaces, watch_fused_calls


class Profiler(NamedTuple):
    """How to run such a counter, and where it keeps its counts.

    ``module`` has wrapFunc and MODULE_HOOK_MAPPING; ``pipeline`` is the class that puts hooks on modules, and ``ending`` the name
    of its method that takes the counts off them again.  ``kept`` are the lists and dicts that it keeps between runs, to be
    cleared.  ``run`` returns FLOPs and MACs.  ``per_path`` says whether it adds a shared module at each of its paths.
    """

    module: Any
    pipeline: Any
    ending: str
    kept: tuple[Any, ...]
    run: Callable[[torch.nn.Module, list[torch.Tensor]], tuple[int, int]]
    per_path: bool


NUMBER = "number"
"""The attribute that says to which of the counter's two numbers a call belongs."""
FLOPS, MACS = "flops", "macs"


def ledger(counter: str, model: TorchModel, packages: dict[str, str], profiler: Profiler) -> Ledger:
    """The ledger of a run of the counter on a fresh module, in evaluation mode, with gradients on as its users have them.

    ``packages`` are the versions of the packages that select the rules.
    """
    unit, number = (MAC, MACS) if counter.endswith(f"@{MACS}") else (FLOP, FLOPS)

    def run_profiler(module: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[int, list[Entry], list[Sighting]]:
        path = ModulePath(module)
        recorder = CallRecorder(path)
        counts: dict[torch.nn.Module, int] = {}
        watched = _watch_profiler(profiler, recorder, module, number, counts)
        with torch.enable_grad(), higher_order.write_out(), path, recorder, watched:
            total = _to_exact(profiler.run(module, list(inputs))[number == MACS])
        names = module_paths(module)
        paths = visits(module) if profiler.per_path else [(names[m], m) for m in module.modules()]
        entries, sightings = recorder.of_paths(paths, names, counts)
        add_rest(entries, total)
        return total, entries, sightings

    return ledger_of(counter, unit, model, packages, (PACKED,), run_profiler)


def _name_of(function: Any) -> str:
    """The public name of a function that is about to be patched."""
    attention = "torch.nn.functional.scaled_dot_product_attention"
    if function is torch.nn.functional.scaled_dot_product_attention:  # ours, which lets it through as one op
        return attention
    return public_name(function) or str(function.__name__)


def _to_exact(count: Any) -> Any:
    """The counter's number as an int, or a fraction if it is not whole: a product with a scale factor is a float."""
    return int(count) if count == int(count) else Fraction(count)


@contextmanager
def _watch_profiler(
    profiler: Profiler, recorder: CallRecorder, module: torch.nn.Module, number: str, counts: dict[torch.nn.Module, int]
) -> Iterator[None]:
    """Record the counter's calls inside the block; what it has counted of each module at the end goes into ``counts``.

    Afterwards every function is what it was: a counter that stops halfway leaves them patched, and calflops before 0.2.8 puts
    torch.matmul in the place of torch.bmm (calflops/pytorch_ops.py:572).
    """
    held = [(space, name, value) for space in spaces() for name, value in vars(space).items() if callable(value)]
    names, mapping = module_paths(module), profiler.module.MODULE_HOOK_MAPPING
    hooked = {names[m] for m in module.modules() if type(m) not in mapping}
    for child in module.modules():
        if type(child) in mapping:
            recorder.watch(child, class_name(child), names[child] or ROOT, {NUMBER: number})
    originals: dict[Any, Any] = {}
    wrap, ending = profiler.module.wrapFunc, getattr(profiler.pipeline, profiler.ending)

    def wrap_formula(function: Any, formula: Any, *places: Any) -> Any:
        name, signature = _name_of(function), inspect.signature(formula)
        patched = wrap(function, formula, *places)

        def count_call(*args: Any, **kwargs: Any) -> Any:
            entry = innermost(recorder.path, hooked) or ROOT
            return recorder.call(patched, name, entry, signature, args, kwargs, {NUMBER: number})

        originals[count_call] = function
        count_call.__str__ = function.__str__  # type: ignore[method-assign]  # by which the counter finds the original again
        return count_call

    def end_pipeline(pipeline: Any) -> None:
        counts.update((m, _to_exact(getattr(m, f"__{number}__"))) for m in module.modules())
        ending(pipeline)

    try:
        pipeline = replace_attributes(profiler.pipeline, **{profiler.ending: end_pipeline})
        with replace_attributes(profiler.module, wrapFunc=wrap_formula), pipeline, watch_fused_calls(recorder):
            yield
    finally:
        for space in spaces():
            for name, value in list(vars(space).items()):
                if type(value) is FunctionType and value in originals:
                    setattr(space, name, originals[value])
        for space, name, value in held:
            if vars(space).get(name) is not value:
                setattr(space, name, value)
        for kept in profiler.kept:
            kept.clear()
