"""Runs torch_flops.TorchFLOPsByFX and returns its ledger, one entry per module and function. PyTorch 2.0 and later.

It runs the nodes of a torch.fx graph, and asks CUDA for memory around each. Of the two functions that it can ask,
``memory_allocated`` also answers where there is no GPU, and its answer changes no count.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch

from ....core.records import FLOP, Ledger
from ...pytorch.model import TorchModel
from ...shared.distribution import version_of
from ...shared.refusal import BeyondCounter
from ..patched_functions.capture import replace_attributes
from . import COUNTERS
from .fx_capture import Counted, NodeCalls, fix_arity, ledger, names_by

WITHOUT_WEIGHTS = (
    "it takes the device from the first weight (torch_flops/flops_engine.py:156), and this model's graph has none"
)
NAMES = names_by(lambda module: f"module.{type(module).__name__}")
"""Its three tables go by the bare name of a class, a function or a method (torch_flops/flops_engine.py:193, 233, 276)."""


def capture(counter: str, model: TorchModel) -> Ledger:
    """Count one inference call of a fresh module on ``model.device``."""
    engine = import_module("torch_flops.flops_engine")
    packages = {"torch_flops": version_of(COUNTERS[0].distribution, engine)}
    return ledger(counter, FLOP, model, packages, partial(_run_torch_flops, engine))


def _run_torch_flops(engine: Any, module: torch.nn.Module, inputs: list[Any]) -> Counted:
    calls, whole_module = NodeCalls(module, NAMES), fix_arity(module, inputs)
    whole = calls.trace(lambda: _quietly(lambda: engine.TorchFLOPsByFX(whole_module, mem_func_name="memory_allocated")))
    graph = whole.graph_model
    if next(graph.parameters(), None) is None:
        raise BeyondCounter(WITHOUT_WEIGHTS)
    memory = replace_attributes(torch.cuda, memory_allocated=lambda device=None: 0)
    printing = SimpleNamespace(print_exc=lambda: None)
    with (
        torch.no_grad(),
        memory,
        replace_attributes(engine, ShapeProp=calls.record_calls(engine.ShapeProp), traceback=printing),
        calls,
    ):
        try:
            whole.propagate(*inputs)
        except RuntimeError as error:  # it wraps what stopped it
            raise error.__cause__ or error from None
    counts = {node: node.meta["flops"] for node in graph.graph.nodes}
    unknown = Counter(calls.keys[node][1] for node, count in counts.items() if count is None)
    amounts = {node: count for node, count in counts.items() if isinstance(count, int)}  # it leaves out what is no int
    return Counted(whole.print_total_flops(show=False), amounts, calls, dict(unknown))


def _quietly(make: Callable[[], Any]) -> Any:
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        return make()
