"""Weights that are on meta by design: hooks bring them when a module is called, as accelerate's cpu_offload does it.

The model takes 5 rows of 8 to 16 and 4 features: 5 * 8 * 16 = 640 and 5 * 16 * 4 = 320 multiply-adds.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
from torch import nn

import reconcile

pytestmark = pytest.mark.frameworks
FORWARD = 640 + 320


class Branches(nn.Module):
    """Does what it does with values alone: nothing of it can run on meta."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return self.second(x) if bool(x.isfinite().all()) else x


class Plain(Branches):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))  # type: ignore[no-any-return]


def offloaded(model: nn.Module) -> nn.Module:
    """As accelerate.hooks.add_hook_to_module does it: the forward of each module is one that brings the weights and takes them
    away again."""
    for part in model.modules():
        if list(part.parameters(recurse=False)):
            held = {name: weight.data for name, weight in part.named_parameters(recurse=False)}
            taken(part, held)
            part.forward = functools.partial(brought, part, part.forward, held)
    return model


def taken(part: nn.Module, held: dict[str, torch.Tensor]) -> None:
    for name in held:
        part._parameters[name] = nn.Parameter(held[name].to("meta"))


def brought(part: nn.Module, forward: Any, held: dict[str, torch.Tensor], x: torch.Tensor) -> Any:
    for name, values in held.items():
        part._parameters[name] = nn.Parameter(values)
    try:
        return forward(x.to("cpu"))
    finally:
        taken(part, held)


@pytest.mark.parametrize("live", [False, True])
def test_the_model_runs_where_its_inputs_are(live: bool) -> None:
    how: dict[str, Any] = {"torch": lambda: (offloaded(Branches()), (torch.ones(5, 8),))}
    if live:
        how = {"torch": offloaded(Branches()), "inputs": (torch.ones(5, 8),)}
    run = reconcile.run(**how, counters=["thop", "flop_counter"])
    assert [trace.device for trace in run.result.traces] == ["cpu"]
    assert [figure.flops for figure in run.verdict.figures] == [2 * FORWARD]
    assert [ledger.reason for ledger in run.result.ledgers] == ["", ""]


def hooked() -> nn.Module:
    model = Plain()
    model.first.register_forward_pre_hook(lambda _module, _inputs: None)
    return model.to("meta")


@pytest.mark.parametrize("make", [lambda: Plain().to("meta"), hooked])
def test_a_model_without_values_runs_on_meta(make: Any) -> None:
    run = reconcile.run(torch=make(), inputs=(torch.ones(5, 8),), counters=["thop", "flop_counter"])
    assert [trace.device for trace in run.result.traces] == ["meta"]
    assert [figure.flops for figure in run.verdict.figures] == [2 * FORWARD]
