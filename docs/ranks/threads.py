"""The programs of the threads in docs/ranks.md."""

from collections import OrderedDict

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.nn import functional

BATCH, WIDTH, WORDS = 8, 64, 256


def net():
    hidden = {f"hidden{i}": nn.Linear(WIDTH, WIDTH, bias=False) for i in range(4)}
    return nn.Sequential(OrderedDict(hidden, head=nn.Linear(WIDTH, WORDS, bias=False)))


def whole():
    model, x, target = net(), torch.ones(BATCH, WIDTH), torch.ones(BATCH, WORDS)
    return lambda: functional.mse_loss(model(x), target).backward()


def stages():
    line = init_device_mesh("cpu", (2,), mesh_dim_names=("pp",))
    rank = line.get_local_rank()
    part = net()[2:] if rank else net()[:2]
    stage = PipelineStage(part, rank, 2, torch.device("cpu"), group=line.get_group())
    schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=functional.mse_loss)
    if rank:
        return lambda: schedule.step(target=torch.ones(BATCH, WORDS))
    return lambda: schedule.step(torch.ones(BATCH, WIDTH))


def flat():
    model = FullyShardedDataParallel(net(), device_id=torch.device("cpu"))
    return model, torch.ones(BATCH, WIDTH)


def accumulated():
    world, model = distributed.get_world_size(), net()
    if world > 1:
        model = nn.parallel.DistributedDataParallel(model)

    def step():
        for _ in range(4 // world):
            model(torch.ones(BATCH, WIDTH)).square().mean().backward()

    return step
