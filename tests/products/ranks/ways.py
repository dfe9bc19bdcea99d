"""Ways in which trainers share a model, in a module of a user's: it imports nothing of ours but decoder.py beside it."""

from __future__ import annotations

from typing import Any

import decoder as d
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

GIVEN = {2: [48, 16], 4: [16, 8, 24, 16]}
"""How many of 64 tokens each of so many experts takes. The first of four takes as many as the last."""


def of_gpus() -> d.Made:
    """A mesh of GPUs, on a machine that has none."""
    return d.sharded(d.Decoder(), init_device_mesh("cuda", (d.world(),), mesh_dim_names=("dp",))), d.ids()


def filled_later() -> d.Made:
    """Weights get their values after they were sharded."""
    with torch.device("meta"):
        net = d.Decoder()
    net = d.sharded(net, d.mesh(dp=d.world())).to_empty(device="cpu")
    for weight in net.parameters():
        nn.init.ones_(weight)
    return net, d.ids()


def replicated() -> d.Made:
    from torch.distributed._composable.replicate import replicate

    return replicate(d.Decoder(), device_mesh=d.mesh(dp=d.world())), d.ids()


# Stages that pass on a tensor that ranks share.


class Whole(nn.Module):
    """Ends in a tensor that a rank has all of."""

    def forward(self, x: Any) -> torch.Tensor:
        return x.full_tensor() if isinstance(x, DTensor) else x


def two() -> nn.Sequential:
    return nn.Sequential(d.MLP(), d.MLP())


def two_step() -> d.Step:
    net, x = two(), torch.randn(d.BATCH, d.SEQ, d.DIM)
    return lambda: torch.square(net(x)).mean().backward()


def stages_of_parts() -> d.Step:
    from torch.distributed.pipelining import PipelineStage, schedules

    whole = d.mesh(pp=2, tp=d.world() // 2)
    index = whole.get_local_rank("pp")
    net = two()
    del net[1 - index]
    plan = {
        "w1": ColwiseParallel(input_layouts=Shard(1) if index else Replicate()),
        "w3": ColwiseParallel(input_layouts=Shard(1) if index else Replicate()),
        "w2": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    }
    stage: nn.Module = nn.Sequential(net)
    parallelize_module(net[0], whole["tp"], plan)
    if index:
        stage.append(Whole())

    def mesh_of(_names: tuple[str, ...], _layout: Any) -> DeviceMesh:
        return whole["tp"]

    one = PipelineStage(stage, index, 2, torch.device("cpu"), group=whole.get_group("pp"), get_mesh=mesh_of)
    schedule = schedules.ScheduleGPipe(one, n_microbatches=2, loss_fn=lambda out, _: torch.square(out).mean())
    x = torch.randn(d.BATCH, d.SEQ, d.DIM)
    return lambda: schedule.step(*([] if index else [x]), **({"target": x} if index else {}))


# Experts that get unequal numbers of tokens.


class Chosen(nn.Module):
    """Two experts; with a mesh, each rank has one of its own."""

    def __init__(self, line: DeviceMesh | None = None) -> None:
        super().__init__()
        self.line, own = line, 1 if line else 2
        self.gives = GIVEN[line.size() if line else 2]
        self.experts = nn.ModuleList(nn.Linear(d.DIM, d.HIDDEN, bias=False) for _ in range(own))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        from torch.distributed._functional_collectives import all_to_all_single

        if self.line is None:
            return torch.cat([e(part) for e, part in zip(self.experts, tokens.split(self.gives), strict=True)])
        takes = all_to_all_single(torch.tensor(self.gives), None, None, self.line).tolist()
        return self.experts[0](all_to_all_single(tokens, takes, self.gives, self.line.get_group()))


def chosen() -> d.Made:
    return Chosen(), torch.randn(d.BATCH * d.SEQ, d.DIM)


def chosen_apart() -> tuple[Chosen, torch.Tensor]:
    return Chosen(d.mesh(ep=d.world())), torch.randn(d.BATCH * d.SEQ, d.DIM)


def chosen_in_place() -> d.Made:
    """By the function that writes what it receives into a tensor of the program's."""
    net, tokens = chosen_apart()
    assert net.line is not None
    group = net.line.get_group()

    def forward(x: torch.Tensor) -> torch.Tensor:
        gives = torch.tensor(net.gives)
        takes = torch.empty_like(gives)
        distributed.all_to_all_single(takes, gives, group=group)
        given = x.new_empty(int(takes.sum()), d.DIM)
        distributed.all_to_all_single(given, x, takes.tolist(), gives.tolist(), group=group)
        return net.experts[0](given)

    net.forward = forward  # type: ignore[method-assign]
    return net, tokens
