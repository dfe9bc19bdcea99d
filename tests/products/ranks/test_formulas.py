"""Formulas on ranks: each reads the whole parameters, also where a rank multiplies its part of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconcile.core.causes import State
from reconcile.launch.request import run_request
from reconcile.products.ranks import ranked

pytest.importorskip("torch")
pytestmark = pytest.mark.frameworks

BATCH, WIDE, HIDDEN, WORLD = 4, 6, 10, 2
NET = f"""
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
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

def flat(odd=1, **options):
    net, x = one()
    net.extend([nn.LayerNorm({WIDE}), *[nn.PReLU()] * odd])
    return FullyShardedDataParallel(net, device_id=torch.device("cpu"), **options), x

def flat_even():
    return flat(0)

def flat_views():
    return flat(0, use_orig_params=True)
"""
SIX = 6 * 2 * WIDE * HIDDEN * BATCH
FIRST = 2 * WIDE * HIDDEN * BATCH
"""The gradient of the first input, which nothing needs."""
CASES = {
    "tensor": {"global-shape": -(SIX - FIRST) * (WORLD - 1) // WORLD, "backward-assumed": -FIRST},
    "data": {"backward-assumed": -FIRST},
}


@pytest.mark.parametrize(
    "name", [pytest.param("tensor", marks=pytest.mark.slow), pytest.param("data", marks=pytest.mark.heavy)]
)
def test_6n_on_a_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "parted.py").write_text(NET)
    monkeypatch.chdir(tmp_path)
    request = run_request(torch=f"parted:{name}", pass_="training", counters=["formula:6n"])
    result = ranked.run_ranks(request, WORLD)
    (fold,) = result.folds
    (statement,) = fold.answer.statements
    assert result.exit_code == 0
    assert (statement.from_total, statement.residual, statement.state) == (SIX, 0, State.EXPLAINED)
    assert {cause.value: amount for cause, amount in statement.by_cause().items()} == CASES[name]


WEIGHT, NORM, TOKEN = WIDE * HIDDEN, 2 * WIDE, 2 * BATCH
"""Two weights lie one after the other, then the scale and shift of a norm. Views start at a multiple of 16 bytes, four elements,
so two more lie between scale and shift."""


@pytest.mark.parametrize(
    ("name", "last", "between"),
    [
        pytest.param("flat", 1, 0, marks=pytest.mark.heavy),
        pytest.param("flat_even", 0, 0, marks=pytest.mark.slow),  # the ranks do equal work, and count other parameters
        pytest.param("flat_views", 0, 2, marks=pytest.mark.heavy),
    ],
)
def test_6n_of_what_a_rank_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, last: int, between: int
) -> None:
    """The first rank has the first weight and a bit of the second, and the other one the rest: both multiply by all of both.
    A last parameter of one element makes the sum odd, so that there is padding of one."""
    (tmp_path / "parted.py").write_text(NET)
    monkeypatch.chdir(tmp_path)
    request = run_request(torch=f"parted:{name}", pass_="training", counters=["formula:6n"])
    first, second = (fold.answer.statements[0] for fold in ranked.run_ranks(request, WORLD).folds)
    bit = (2 * WEIGHT + NORM + between + 2 * last) // WORLD - WEIGHT
    assert [(each.residual, each.state) for each in (first, second)] == [(0, State.EXPLAINED)] * 2
    assert first.from_total == 3 * TOKEN * (WEIGHT + bit)
    assert second.from_total == 3 * TOKEN * (WEIGHT - bit + NORM + 2 * last)
    # No gradient of the first input: the formula takes it to be there, for what the rank has of the first weight.
    assert {cause.value: amount for cause, amount in first.by_cause().items()} == {
        "local-parameters": 3 * TOKEN * (WEIGHT - bit),
        "backward-assumed": -TOKEN * WEIGHT,
    }
    assert {cause.value: amount for cause, amount in second.by_cause().items()} == {
        "local-parameters": TOKEN * (2 * WEIGHT + 3 * bit),
        "parameters-as-products": -3 * TOKEN * (NORM + last),
    } | ({"padded-shard": -3 * TOKEN} if last else {})
