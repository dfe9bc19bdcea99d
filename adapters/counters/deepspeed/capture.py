"""Runs DeepSpeed's get_model_profile and returns its ledger, one entry per module. PyTorch 2.0 and later."""

from __future__ import annotations

import inspect
import os

import torch

from ....core.records import Ledger
from ...pytorch.model import TorchModel
from ...shared.distribution import version_of
from ..patched_functions.flops_profiler import Profiler, ledger

os.environ.setdefault("DS_ACCELERATOR", "cpu")  # else it looks for one while it is imported


def _run_deepspeed(module: torch.nn.Module, inputs: list[torch.Tensor]) -> tuple[int, int]:
    from deepspeed.profiling.flops_profiler import get_model_profile

    flops, macs, _params = get_model_profile(module, args=inputs, print_profile=False, warm_up=0, as_string=False)
    return flops, macs


def capture(counter: str, model: TorchModel) -> Ledger:
    """Count one inference call of a fresh module on ``model.device``."""
    from deepspeed.profiling.flops_profiler import profiler

    tables_to_restore = (profiler.module_flop_count, profiler.module_mac_count, profiler.old_functions)
    versions = {"deepspeed": version_of("deepspeed", profiler)}
    # Before 0.19.7 it sums up the children of children, and meets a shared module at each of its paths (profiler.py:1172).
    per_path = ".children()" in inspect.getsource(profiler.get_module_flops)
    profiler_setup = Profiler(
        profiler, profiler.FlopsProfiler, "end_profile", tables_to_restore, _run_deepspeed, per_path=per_path
    )
    return ledger(counter, model, versions, profiler_setup)
