"""Runs torchscan.crawl_module and returns the ledger of either of its numbers, one entry per module. PyTorch 2.1 and later.

A total to which a module without a formula belongs is ``partial``: its ``value`` is None, and ``known_value`` is what its summary
prints.  A third number, ``operator_flops``, is PyTorch's own FlopCounterMode: the counter ``flop_counter``.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import torch

from ....core.records import FLOP, MAC, Ledger
from ...pytorch.model import TorchModel
from ...shared.distribution import version_of
from ...shared.refusal import BeyondCounter
from ..limits import explain_limits
from ..module_calls import module_ledger
from ..ultralytics_thop.capture import KeywordCalls
from . import HOLDS, MACS, NUMBER

TRANSFORMER_BY_ONE_FORMULA = (
    "it counts a model that is an nn.Transformer itself by one formula, and its layers by others (torchscan/crawler.py:315): put "
    "it into a module"
)


def capture(counter: str, model: TorchModel) -> Ledger:
    """Count one inference call of a fresh module on ``model.device``."""
    macs = counter.endswith(f"@{MACS}")
    run = partial(_run_torchscan, "macs" if macs else "module_flops")
    packages = {"torchscan": version_of("torchscan", import_module("torchscan"))}

    def read_module(module: torch.nn.Module) -> dict[str, Any]:
        holds = next(module.children(), None) is not None
        attrs: dict[str, Any] = {HOLDS: holds, **({NUMBER: MACS} if macs else {})}
        if isinstance(module, torch.nn.Dropout):
            attrs["training"] = False  # it counts every module in eval mode (torchscan/crawler.py:505)
        if isinstance(module, torch.nn.MultiheadAttention):
            attrs["bias_k"] = module.bias_k is not None
            attrs["in_proj_bias"] = module.in_proj_bias is not None
            attrs["out_bias"] = module.out_proj.bias is not None
        return attrs

    with explain_limits((), lambda: run(torch.nn.Linear(1, 1), [torch.zeros(1, 1)])):
        return module_ledger(counter, MAC if macs else FLOP, model, packages, run, read_module, KeywordCalls)


def _run_torchscan(number: str, module: torch.nn.Module, inputs: Any) -> tuple[int, dict[str, int]]:
    from torchscan import crawl_module

    if isinstance(module, torch.nn.Transformer):
        raise BeyondCounter(TRANSFORMER_BY_ONE_FORMULA)
    report = crawl_module(module, args=tuple(inputs))
    values: dict[str, int] = {}
    for layer in report["layers"]:
        value = layer["metrics"].get(number, {}).get("known_value") or 0
        values[layer["path"]] = values.get(layer["path"], 0) + value
    return report["totals"][number]["known_value"] or 0, values
