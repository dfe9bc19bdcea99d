"""Runs ptflops.get_model_complexity_info with either of its backends, and returns its ledger. PyTorch 2.0 and later.

"pytorch" has an entry for each module and path at which ptflops adds the module's count, one for each module and function that it
patches, and one for the division of the first by the batch. "aten" has one for each module and ATen op.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from contextlib import redirect_stdout
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from ....core.records import MAC, Entry, Ledger, Op, Sighting
from ...pytorch.model import TorchModel
from ...pytorch.tracing.call_records import op_name
from ...pytorch.tracing.module_path import ModulePath, module_paths
from ...pytorch.tracing.recorder import Recorder
from ...pytorch.tracing.records import tensor_record, tensors_in
from ...shared.distribution import version_of
from ...shared.refusal import BeyondCounter, CannotCount
from .. import ROOT
from ..added_amounts import AddedAmounts
from ..limits import PACKED, SCRIPTED
from ..module_calls import class_name, visits
from ..patched_functions.capture import CallRecorder, ledger_of, public_names, replace_attributes, watch_fused_calls
from . import AVERAGE

Taken = tuple[int, list[Entry], list[Sighting]]
"""The total, the entries and the sightings."""
COUNTS_A_FRACTION = "it counts %s of an operation for a call of %s, which no rule covers"


def capture(counter: str, model: TorchModel) -> Ledger:
    """Run ptflops with one of its backends on a fresh module on ``model.device``, with gradients on, as its users do."""
    import ptflops

    backend = counter.partition("@")[2]
    engine = importlib.import_module(f"ptflops.{backend}_engine")
    run = partial(_aten if backend == "aten" else _pytorch, engine)
    return ledger_of(counter, MAC, model, {"ptflops": version_of("ptflops", ptflops)}, (SCRIPTED, PACKED), run)


def complexity(backend: str, engine: Any, module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> int:
    """The total that ptflops reports. It hands a model one argument, which a hook takes apart, and prints errors."""
    from ptflops import get_model_complexity_info

    errors: list[Any] = []
    printing = SimpleNamespace(print_exc=lambda: errors.append(sys.exc_info()[1]))
    handle = module.register_forward_pre_hook(
        lambda _module, given: given[0] if given and given[0] is inputs else None, prepend=True
    )
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), replace_attributes(engine, traceback=printing):
        total, _ = get_model_complexity_info(
            module, (1,), False, False, input_constructor=lambda _size: inputs, ost=nowhere, backend=backend
        )
    handle.remove()
    if errors:
        raise errors[0]
    if not isinstance(total, int):
        raise CannotCount(f"it reports {total!r}, which is not a whole number: take ptflops 0.7.5")
    return total


def _pytorch(engine: Any, module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> Taken:
    functions: dict[tuple[str, str], int] = {}
    paths = module_paths(module)
    names = public_names(list(engine.FUNCTIONAL_MAPPING) + list(engine.TENSOR_OPS_MAPPING))
    counts: dict[torch.nn.Module, int] = {}
    divisors: list[Op] = []
    path = ModulePath(module)
    recorder = CallRecorder(path)
    supported = engine.is_supported_instance
    walked = [("", module)] if supported(module) else visits(module, lambda m: not supported(m))
    visited = [(at, m) for at, m in walked if supported(m)]  # nothing below one of these (accumulate_flops)
    for child in dict.fromkeys(child for _, child in visited):
        biased = getattr(child, "in_proj_bias", None) is not None
        recorder.watch(child, class_name(child), paths[child] or ROOT, {"in_proj_bias": biased})

    class Watched(engine.torch_function_wrapper):
        """A patched function, whose calls are recorded with the amounts that ptflops adds for them."""

        def __call__(self, *args: Any, **kwds: Any) -> Any:
            key = (path.current, names[self.op])
            signature, counted = inspect.signature(self.handler), len(self.collector)
            if "input" not in signature.parameters:
                signature = inspect.signature(self.op)
            result = recorder.call(super().__call__, key[1], "{}|{}".format(*key), signature, args, kwds, {})
            amount = self.collector[counted]
            if amount != int(amount):
                raise BeyondCounter(COUNTS_A_FRACTION % (amount, key[1]))
            functions[key] = functions.get(key, 0) + int(amount)
            return result

    def divides(_module: Any, given: Any, _outputs: Any) -> None:
        batch = {"batch": len(given[0]) if given else 1}
        divisors.append(Op(AVERAGE, AVERAGE, "", tuple(map(tensor_record, tensors_in(given)[:1])), (), batch))

    stop = engine.stop_flops_count

    def stop_counting(root: torch.nn.Module) -> None:
        counts.update((child, child.__flops__) for _, child in visited)
        stop(root)

    module.register_forward_hook(divides)
    with (
        path,
        recorder,
        watch_fused_calls(recorder),
        replace_attributes(engine, torch_function_wrapper=Watched, stop_flops_count=stop_counting),
    ):
        total = complexity("pytorch", engine, module, inputs)
    entries, sightings = recorder.of_paths(visited, paths, counts)
    entries += [Entry("{}|{}".format(*key), key[0], key[1], value, 1) for key, value in functions.items() if value]
    divided = total - sum(entry.value for entry in entries)
    entries += [Entry(AVERAGE, "", AVERAGE, divided, 1)] if divided else []
    return total, entries, sightings + [Sighting(op, AVERAGE) for op in divisors]


def _aten(engine: Any, module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> Taken:
    path = ModulePath(module)
    recorder = Recorder(path)
    modes: list[Any] = []
    added = AddedAmounts(lambda: path.current, lambda: sum(modes[-1].flop_counts["Global"].values()))

    class Watched(engine.FlopCounterMode):
        """The counter itself, noting by module what it adds."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            modes.append(self)
            return added.by(op_name(func), partial(super().__torch_dispatch__, func, types, args, kwargs))

    with path, recorder, replace_attributes(engine, FlopCounterMode=Watched):
        total = complexity("aten", engine, module, inputs)
    return (total,) + added.beside(list(recorder.ops.values()))
