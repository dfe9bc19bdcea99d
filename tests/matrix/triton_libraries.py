"""Kernels of FLA, mamba_ssm and Liger, in their own source, in Triton's interpreter: what ``reconcile.count`` says, as JSON.

``python triton_libraries.py MAMBA`` has the unpacked sdist of mamba_ssm: its modules are imported, the package needs CUDA.
What both ask of a GPU besides is answered here: nothing is timed, so an autotuner takes its first configuration.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch.nn import functional
from triton.runtime.autotuner import Autotuner

from reconcile import count

Autotuner.do_bench = property(lambda _: lambda run, quantiles: [1.0] * 3)
torch.cpu.device = torch.cuda.device = lambda index: nullcontext()
torch.cuda.get_device_properties = lambda device: SimpleNamespace(multi_processor_count=132)

LENGTH, HEADS, CHUNK = 128, 2, 64


def count_kept(convention: str, compute: Any) -> tuple[dict[str, int], int]:
    """FLOPs by kernel, and the exit code."""
    with count(convention=convention) as step:
        compute()
    found: Counter[str] = Counter()
    for row in step.result.traces[0].rows:
        found[row.op] += step.result.convention.flops(row.work)
    return {op: flops for op, flops in found.items() if flops}, step.exit_code


def multiply_by_delta_rule() -> Any:
    """The chunked delta rule of keys and values of 64, and how far it is from the recurrence."""
    from fla.ops.delta_rule import chunk_delta_rule
    from fla.ops.delta_rule.naive import delta_rule_recurrence

    q, k, v = (torch.randn(1, LENGTH, HEADS, 64).half() for _ in range(3))
    k, beta, out = functional.normalize(k, dim=-1), torch.rand(1, LENGTH, HEADS).half(), []
    found = count_kept("causal", lambda: out.append(chunk_delta_rule(q, k, v, beta)[0]))
    expected = delta_rule_recurrence(*(x.float().transpose(1, 2) for x in (q, k, v, beta)))
    expected = expected[0] if isinstance(expected, tuple) else expected
    return *found, float((out[0] - expected.transpose(1, 2)).abs().max())


def scan_by_chunks(folder: str) -> Any:
    """SSD of values of 32 and states of 16, forward and backward, and how far it is from its minimal form."""
    package = ModuleType("mamba_ssm")
    package.__path__ = [f"{folder}/mamba_ssm"]
    sys.modules["mamba_ssm"] = package
    from mamba_ssm.modules.ssd_minimal import ssd_minimal_discrete
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

    x, dt, a = torch.randn(1, LENGTH, HEADS, 32, requires_grad=True), torch.rand(1, LENGTH, HEADS), -torch.rand(HEADS)
    b, c = torch.randn(1, LENGTH, 1, 16), torch.randn(1, LENGTH, 1, 16)
    out = []

    def take_step() -> None:
        out.append(mamba_chunk_scan_combined(x, dt, a, b, c, CHUNK))
        out[0].sum().backward()

    found = count_kept("causal", take_step)
    every = (each.expand(-1, -1, HEADS, -1) for each in (b, c))
    expected, _ = ssd_minimal_discrete(x * dt[..., None], a * dt, *every, CHUNK)
    return *found, float((out[0] - expected).detach().abs().max())


def lose_with_head() -> Any:
    """Liger's cross entropy with a head of 64 rows of 32 and with its logits, and how far their gradients are from PyTorch's."""
    from liger_kernel.transformers.cross_entropy import LigerCrossEntropyLoss
    from liger_kernel.transformers.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyLoss

    weight, target = torch.randn(64, 32, requires_grad=True), torch.randint(64, (16,))
    losses = {
        "fused": lambda x: LigerFusedLinearCrossEntropyLoss()(weight, x, target),
        "of logits": lambda x: LigerCrossEntropyLoss()(x @ weight.t(), target),
    }
    found, start = {}, torch.randn(16, 32)
    x = start.clone().requires_grad_()
    functional.cross_entropy(x @ weight.t(), target).backward()
    for name, loss in losses.items():
        own = start.clone().requires_grad_()
        by_kernel, code = count_kept("matmul", lambda loss=loss, own=own: loss(own).backward())
        found[name] = sum(by_kernel.values()), code, float((own.grad - x.grad).abs().max())
    return found


if __name__ == "__main__":
    torch.manual_seed(0)
    counted = {"fla": multiply_by_delta_rule(), "mamba": scan_by_chunks(sys.argv[1]), "liger": lose_with_head()}
    print(json.dumps(counted))
