"""Parameters that FullyShardedDataParallel flattens: each by its own name and shape, with what a rank has of it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import pytest
import torch
from torch import distributed, nn

from reconcile.adapters.counters.formulas.model_facts import parameters

fsdp = pytest.importorskip("torch.distributed.fsdp")


WORLD = 5
SHAPES = {"0.weight": [13, 6], "1.weight": [6], "1.bias": [6], "2.weight": [7, 6]}
ALL = sum(map(prod, SHAPES.values()))
SHARD = -(-ALL // WORLD)
"""The last rank has three elements less than the others, and padding for them."""


@pytest.fixture(params=[0, WORLD - 1])
def rank(request: pytest.FixtureRequest) -> Iterator[int]:
    """One of five processes, which send nothing."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    distributed.init_process_group("fake", store=FakeStore(), rank=request.param, world_size=WORLD)
    yield request.param
    distributed.destroy_process_group()


def net(**options: object) -> nn.Module:
    layers = nn.Sequential(nn.Embedding(13, 6), nn.LayerNorm(6), nn.Linear(6, 7, bias=False))
    return fsdp.FullyShardedDataParallel(layers, device_id=torch.device("cpu"), **options)


@pytest.mark.parametrize("views", [False, True])
def test_each_parameter_has_its_shape_and_what_the_rank_has(rank: int, views: bool) -> None:
    model = net(use_orig_params=views)
    found = parameters(model, {}, [])
    own = [each for each in found if not each.get("padding")]
    assert {each["name"]: each["shape"] for each in own} == SHAPES
    assert sum(each["numel"] for each in found) == sum(p.numel() for p in model.parameters())
    assert [each["embedding"] for each in own] == [True, False, False, False]
    if not views:
        # The shards of all ranks lie one after the other, in the order of the parameters.
        start = rank * SHARD
        ends = [sum(map(prod, list(SHAPES.values())[: i + 1])) for i in range(len(SHAPES))]
        held = [
            max(0, min(end, start + SHARD) - max(start, end - prod(s)))
            for end, s in zip(ends, SHAPES.values(), strict=True)
        ]
        assert [each["numel"] for each in own] == held
        more = [each["numel"] for each in found if each.get("padding")]
        assert more == ([SHARD * WORLD - ALL] if rank == WORLD - 1 else [])


def test_weights_that_two_modules_share_are_one(rank: int) -> None:
    layers = nn.Sequential(nn.Embedding(13, 6), nn.Linear(6, 13, bias=False))
    layers[1].weight = layers[0].weight
    (weight, *rest) = parameters(fsdp.FullyShardedDataParallel(layers, device_id=torch.device("cpu")), {}, [])
    assert (weight["owners"], weight["kinds"], weight["shape"]) == (["0", "1"], ["Embedding", "Linear"], [13, 6])
    assert [each.get("padding") for each in rest] in ([], [True])


def test_a_model_without_flat_tensors_is_read_as_it_is() -> None:
    plain = nn.Sequential(nn.Linear(6, 7), nn.Linear(7, 2, bias=False))
    assert [(each["name"], each["shape"], each["numel"]) for each in parameters(plain, {}, [])] == [
        (name, list(p.shape), p.numel()) for name, p in plain.named_parameters()
    ]
