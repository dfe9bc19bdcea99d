"""The zoo's llama, as it is, shared by ranks: a module of a user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from reconcile.model_zoo import loading
from reconcile.model_zoo.pair import Params

PAIR = loading.load_pair(loading.pair_path("llama"))
SETTINGS = loading.resolve(PAIR, {**PAIR.proof, "vocabulary": "52"})
Made = tuple[Any, torch.Tensor]


def plain() -> Made:
    p = Params(SETTINGS)
    return PAIR.module.build_torch(p), torch.zeros((p.batch, p.steps), dtype=torch.int64)


def mesh(**sizes: int) -> Any:
    return init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes))


def untied() -> Made:
    """Its head has weights of its own, which can be cut without the table."""
    net, tokens = plain()
    net.head.weight = nn.Parameter(net.word.weight.detach().clone())
    return net, tokens


def tp() -> Made:
    """Its dense layers and its head. Attention reshapes to the whole width, which no rank has."""
    net, tokens = untied()
    line = mesh(tp=distributed.get_world_size())
    for block in net.blocks:
        wide = {name: ColwiseParallel() for name in ("mlp_gate", "mlp_up")}
        parallelize_module(block, line, {**wide, "mlp_down": RowwiseParallel()})
    parallelize_module(net, line, {"head": ColwiseParallel(output_layouts=Replicate())})
    return net, tokens


def sharded(shape: Callable[[int], dict[str, int]]) -> Made:
    net, tokens = plain()
    line = mesh(**shape(distributed.get_world_size()))
    for block in net.blocks:
        fully_shard(block, mesh=line)
    return fully_shard(net, mesh=line), tokens


def fsdp() -> Made:
    return sharded(lambda world: {"dp": world})


def hsdp() -> Made:
    return sharded(lambda world: {"replicate": world // 2, "shard": 2})


def ddp() -> Made:
    net, tokens = plain()
    return nn.parallel.DistributedDataParallel(net), tokens
