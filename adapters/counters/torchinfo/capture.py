"""Runs torchinfo.summary and returns its ledger, the mult-adds of every leaf module. Python 3.9, torch 2.x."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from ....core.records import MAC
from ...pytorch.tracing.module_path import module_paths
from ..module_calls import make_capture


def run_torchinfo(module: torch.nn.Module, inputs: Any) -> tuple[int, dict[str, int]]:
    """Its total and its counts by path; an error of the model is raised as it was before torchinfo wrapped it."""
    import torchinfo

    try:
        statistics = torchinfo.summary(module, input_data=list(inputs), verbose=0)
    except RuntimeError as error:
        raise error.__cause__ or error from None
    paths = module_paths(module)
    values: dict[str, int] = Counter()
    for layer in statistics.summary_list:
        values[paths[layer.module]] += int(layer.macs) if layer.is_leaf_layer else 0
    return int(statistics.total_mult_adds), values


def read_module(module: torch.nn.Module) -> dict[str, Any]:
    """Whether it counts the module, and each parameter as it reads it: name, elements that no mask leaves out, rank."""
    from torchinfo.layer_info import LayerInfo

    named = ((p.dim(), LayerInfo.get_param_count(module, name, p)) for name, p in module.named_parameters())
    leaf = not any(module.children()) and not isinstance(module, torch.jit.ScriptModule)
    return {"leaf": leaf, "parameters": [[name, count, rank] for rank, (count, name) in named]}


capture = make_capture("torchinfo", MAC, run_torchinfo, read_module)
