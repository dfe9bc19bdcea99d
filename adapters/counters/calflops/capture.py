"""Runs calflops.calculate_flops and returns its ledger, one entry per module. PyTorch 2.0 and later.

calflops is a fork of DeepSpeed's profiler: its settings are passed to patched_functions/flops_profiler.py, which runs both.
"""

from __future__ import annotations

import torch

from ....core.records import Ledger
from ...pytorch.model import TorchModel
from ...shared.distribution import version_of
from ...shared.refusal import BeyondCounter
from ..patched_functions.flops_profiler import Profiler, ledger

WITHOUT_WEIGHTS = "it takes the device from the first weight (calflops/flops_counter.py:121), and this model has none"


def _run_calflops(module: torch.nn.Module, inputs: list[torch.Tensor]) -> tuple[int, int]:
    from calflops import calculate_flops

    if next(module.parameters(), None) is None:
        raise BeyondCounter(WITHOUT_WEIGHTS)
    flops, macs, _params = calculate_flops(module, args=inputs, print_results=False, output_as_string=False)
    return flops, macs


def capture(counter: str, model: TorchModel) -> Ledger:
    """Count one inference call of a fresh module on ``model.device``."""
    from calflops import calculate_pipline, pytorch_ops

    profiler = Profiler(
        pytorch_ops,
        calculate_pipline.CalFlopsPipline,
        "end_flops_calculate",
        (calculate_pipline.module_flop_count, calculate_pipline.module_mac_count, calculate_pipline.old_functions),
        _run_calflops,
        per_path=True,
    )
    return ledger(counter, model, {"calflops": version_of("calflops", pytorch_ops)}, profiler)
