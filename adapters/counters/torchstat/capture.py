"""Runs torchstat's ModelHook and returns the ledger of either of its numbers, one entry per module. PyTorch 2.1 and later.

Its constructor patches ``__call__`` of classes, and runs the model on one random image; here it is given the model's own inputs
(torchstat/model_hook.py:22). A module's numbers are those of its last call.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import torch

from ....core.records import FLOP, MAC, Ledger
from ...pytorch.model import TorchModel
from ...shared.distribution import version_of
from ...shared.refusal import BeyondCounter
from ..limits import Limit, explain_limits
from ..module_calls import class_name, module_ledger
from ..ultralytics_thop.capture import KeywordCalls
from . import HOLDS, MADD, NUMBER

LIMITS = (
    Limit(
        ("compute_madd.py:compute_Linear_madd",),
        "its formula for nn.Linear takes inputs of two dimensions (torchstat/compute_madd.py:117)",
    ),
    Limit(
        ("maximum recursion depth exceeded",),
        "it patches a class and then one derived from it, which calls itself without end (torchstat/model_hook.py:98)",
    ),
    Limit(
        ("'tuple' object has no attribute 'size'",),
        "it asks what a module that holds no others returns for its size, and one here returns a tuple "
        "(torchstat/model_hook.py:58)",
    ),
)
"""What torchstat cannot count."""
CALL = "__call__"
KEEPS_LAST_CALL = "it keeps the last call of each module, and %s is called on several shapes: no rule here covers that"


def capture(counter: str, model: TorchModel) -> Ledger:
    """Count one inference call of a fresh module on ``model.device``."""
    madd = counter.endswith(f"@{MADD}")
    run = partial(_run_torchstat, "MAdd" if madd else "Flops")
    packages = {"torchstat": version_of("torchstat", import_module("torchstat"))}
    calls: list[KeywordCalls] = []

    def watch(module: torch.nn.Module) -> KeywordCalls:
        calls.append(KeywordCalls(module))
        return calls[-1]

    def count(module: torch.nn.Module, inputs: Any) -> tuple[int, dict[str, int]]:
        total, values = run(module, inputs)
        for leaf, shapes in calls[-1].by_module.items():
            if len(shapes) > 1 and int(getattr(leaf, "MAdd", 0)) + int(getattr(leaf, "Flops", 0)):
                raise BeyondCounter(KEEPS_LAST_CALL % class_name(leaf))
        return total, values

    def read_module(module: torch.nn.Module) -> dict[str, Any]:
        holds = next(module.children(), None) is not None
        return {HOLDS: holds, **({NUMBER: MADD} if madd else {})}

    with explain_limits(LIMITS, lambda: run(torch.nn.Linear(1, 1), [torch.zeros(1, 1)])):
        return module_ledger(counter, FLOP if madd else MAC, model, packages, count, read_module, watch)


def _run_torchstat(number: str, module: torch.nn.Module, inputs: Any) -> tuple[int, dict[str, int]]:
    from torchstat import ModelHook

    class Given(ModelHook):
        """The hook on the model's own inputs."""

        def __init__(self) -> None:
            self._model = module
            self._origin_call: dict[type, Any] = {}
            self._hook_model()
            self._model.eval()
            self._model(*inputs)

    with _restore_calls(module):
        leaves = Given().retrieve_leaf_modules()
    values = {path: int(getattr(leaf, number)) for path, leaf in leaves.items()}
    return sum(values.values()), values


@contextmanager
def _restore_calls(module: torch.nn.Module) -> Iterator[None]:
    """Afterwards, each class has the ``__call__`` that it had."""
    had = {type(m): vars(type(m)).get(CALL) for m in module.modules()}
    try:
        yield
    finally:
        for cls, call in had.items():
            if call is not None:
                setattr(cls, CALL, call)
            elif CALL in vars(cls):
                delattr(cls, CALL)
