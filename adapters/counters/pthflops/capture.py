"""Runs pthflops.count_ops in its default mode and returns its ledger, one entry per module and function. PyTorch 2.0 and later.

Its other mode, ``jit``, parses the string of a graph that PyTorch no longer makes (pthflops/ops_jit.py:313).
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import torch

from ....core.records import MAC, Ledger
from ...pytorch.model import TorchModel
from ...shared.distribution import version_of
from ...shared.refusal import BeyondCounter
from ..module_calls import class_name
from ..patched_functions.capture import replace_attributes
from ..torch_flops.fx_capture import INNER, Counted, NodeCalls, fix_arity, ledger, names_by, wrap_with_forward
from . import COUNTERS

TUPLE_TAKEN_FOR_COUNTS = (
    "it takes a tuple that a tensor's method or the model returns for a result with its counts (pthflops/ops_fx.py:193), as here "
    "of %s"
)
NAMES = names_by(class_name)
"""It goes by the classes of modules, and by the bare names of functions (pthflops/ops_fx.py:158); methods count nothing."""


def capture(counter: str, model: TorchModel) -> Ledger:
    """Count one inference call of a fresh module on ``model.device``."""
    engine = import_module("pthflops.ops_fx")
    packages = {"pthflops": version_of(COUNTERS[0].distribution, import_module("pthflops"))}
    return ledger(counter, MAC, model, packages, partial(_run_pthflops, engine))


def _run_pthflops(engine: Any, module: torch.nn.Module, inputs: list[Any]) -> Counted:
    calls = NodeCalls(module, NAMES)
    whole, given = _take_one_input(module, inputs)
    recording_interpreter = calls.record_calls(engine.ProfilingInterpreter)
    interpreter = calls.trace(lambda: recording_interpreter(whole))
    made = replace_attributes(engine, ProfilingInterpreter=lambda _module, custom_ops: interpreter)
    try:
        with torch.no_grad(), made, calls:
            total, _ = engine.count_ops_fx(whole, given, print_readable=False, verbose=False)
    finally:
        odd = next((node for node in interpreter.flops if node.op not in ("call_module", "call_function")), None)
        if odd is not None:
            raise BeyondCounter(TUPLE_TAKEN_FOR_COUNTS % odd.target)
    return Counted(int(total), dict(interpreter.flops), calls)


def _take_one_input(module: torch.nn.Module, inputs: list[Any]) -> tuple[torch.nn.Module, Any]:
    """The module and its input; it gives a model one argument (pthflops/ops_fx.py:255), so several are in a list, which a module
    around it takes apart, and which returns a tuple as a list."""
    if len(inputs) == 1:
        if fix_arity(module, inputs) is module:
            return module, inputs[0]
        return wrap_with_forward(module, lambda self, given: _list_outputs(getattr(self, INNER)(given))), inputs[0]
    places = range(len(inputs))
    return wrap_with_forward(
        module, lambda self, given: _list_outputs(getattr(self, INNER)(*(given[at] for at in places)))
    ), inputs


def _list_outputs(result: Any) -> Any:
    return list(result) if isinstance(result, tuple) else result
