"""Where random numbers decide sizes, the trace and every counter draw the same ones (docs/environments.md)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import reconcile

pytestmark = pytest.mark.frameworks

DRAWS: dict[str, Callable[[], int]] = {
    "torch": lambda: int(torch.rand(()) * 1000) + 1,
    "random": lambda: random.randrange(1, 1000),
    "numpy": lambda: int(np.random.randint(1, 1000)),
}


class Draws(nn.Module):
    """As many rows as ``draw()`` says; its first layer is initialised by numbers that its second one then does not get."""

    def __init__(self, draw: Callable[[], int]) -> None:
        super().__init__()
        self.draw = draw
        self.first, self.second = nn.Linear(4, 8, bias=False), nn.Linear(8, 8, bias=False)

    def forward(self, x: torch.Tensor) -> Any:
        return self.second(self.first(x.repeat(self.draw(), 1)))


@pytest.mark.parametrize(
    ("name", "device"),
    [
        *((name, "cpu") for name in DRAWS),
        ("torch", "meta"),
        *(pytest.param(name, "meta", marks=pytest.mark.slow) for name in ("random", "numpy")),
    ],
)
def test_trace_and_counters_draw_the_same(name: str, device: str) -> None:
    run = reconcile.run(
        torch=Draws(DRAWS[name]),
        inputs=(torch.ones(1, 4),),
        counters=["thop", "fvcore", "flop_counter"],
        device=device,
    )
    work = run.result.traces[0].totals["matmul"]
    assert work % (2 * (4 * 8 + 8 * 8)) == 0
    assert {c.ledger.counter: c.off for c in run.verdict.counters} == {"thop": 0, "fvcore": 0, "flop_counter": 0}
    assert [figure.flops for figure in run.verdict.figures] == [work]


@pytest.mark.parametrize("name", DRAWS)
def test_a_step_draws_the_same(name: str) -> None:
    run = reconcile.run(
        torch=Draws(DRAWS[name]), inputs=(torch.ones(1, 4),), counters=["flop_counter"], pass_="training"
    )
    assert [figure.flops for figure in run.verdict.figures] == [run.result.traces[0].totals["matmul"]]
