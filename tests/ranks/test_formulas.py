"""Formulas on ranks: each reads the whole parameters, also where a rank multiplies its part of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.core.causes import State
from reconcile.launch.request import run_request
from reconcile.ranks import ranked

pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks

BATCH, WIDE, HIDDEN, WORLD = 4, 6, 10, 2
NET = f"""
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

def one():
    layers = nn.Linear({WIDE}, {HIDDEN}, bias=False), nn.Linear({HIDDEN}, {WIDE}, bias=False)
    return nn.Sequential(*layers), torch.ones({BATCH}, {WIDE})

def tensor():
    net, x = one()
    return parallelize_module(net, init_device_mesh("cpu", ({WORLD},)), {{"0": ColwiseParallel(), "1": RowwiseParallel()}}), x

def data():
    net, x = one()
    return fully_shard(net, mesh=init_device_mesh("cpu", ({WORLD},))), x
"""
SIX = 6 * 2 * WIDE * HIDDEN * BATCH
FIRST = 2 * WIDE * HIDDEN * BATCH
"""The gradient of the first input, which nothing needs."""
CASES = {
    "tensor": {"global-shape": -(SIX - FIRST) * (WORLD - 1) // WORLD, "backward-assumed": -FIRST},
    "data": {"backward-assumed": -FIRST},
}


@pytest.mark.parametrize(
    "name", [pytest.param("tensor", marks=pytest.mark.zoo), pytest.param("data", marks=pytest.mark.fresh)]
)
def test_6n_on_a_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "parted.py").write_text(NET)
    monkeypatch.chdir(tmp_path)
    request = run_request(torch=f"parted:{name}", pass_="training", counters=["formula:6n"])
    result = ranked.run(request, WORLD)
    (fold,) = result.folds
    (statement,) = fold.answer.statements
    assert result.exit_code == 0
    assert (statement.from_total, statement.residual, statement.state) == (SIX, 0, State.EXPLAINED)
    assert {cause.value: amount for cause, amount in statement.by_cause().items()} == CASES[name]
