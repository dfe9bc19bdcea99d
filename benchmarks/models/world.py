"""A decoder of 71 billion parameters, on one device and on 1,024: stages of a pipeline, each sharded by data and by tensors.

The sizes are Llama 3.1 70B's (arXiv:2407.21783, table 3), and no weight has values.
"""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional

LAYERS, WIDTH, HEADS, GROUPS, INNER, VOCABULARY = 80, 8192, 64, 8, 28672, 128256
EACH = WIDTH // HEADS
BATCHES, TOKENS = 16, 2048
PIPELINE, DATA, TENSOR = 16, 8, 8
COLUMNS, ROWS = ("query", "key", "value", "gate", "up"), ("out", "down")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.query, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(WIDTH, GROUPS * EACH, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        y = self.first(x)
        parts = [w(y).unflatten(-1, (-1, EACH)).transpose(1, 2) for w in (self.query, self.key, self.value)]
        mixed = functional.scaled_dot_product_attention(*parts, is_causal=True, enable_gqa=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        y = self.second(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, stage=0, stages=1):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH) if stage == 0 else None
        mine = range(stage * LAYERS // stages, (stage + 1) * LAYERS // stages)
        self.layers = nn.ModuleDict({str(i): Block() for i in mine})
        last = stage == stages - 1
        self.norm, self.head = (nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)) if last else (None, None)

    def forward(self, x):
        x = x if self.embed is None else self.embed(x)
        for layer in self.layers.values():
            x = layer(x)
        return x if self.head is None else self.head(self.norm(x))


def loss(out, target):
    return functional.cross_entropy(out.flatten(0, 1), target.flatten())


def tokens():
    return torch.zeros(BATCHES, TOKENS, dtype=torch.int64, device="meta")


def one():
    """The step of one device: every sequence of the batch, one after the other."""
    with torch.device("meta"):
        net, x = Decoder(), tokens()

    def step():
        for part in x.chunk(BATCHES):
            loss(net(part), part).backward()

    return step


def whole():
    """The same tokens in one pass."""
    with torch.device("meta"):
        net, x = Decoder(), tokens()
    return lambda: loss(net(x), x).backward()


def shared():
    """The step of one of the 1,024."""
    mesh = init_device_mesh("cpu", (PIPELINE, DATA, TENSOR), mesh_dim_names=("pp", "dp", "tp"))
    index = mesh.get_local_rank("pp")
    with torch.device("meta"):
        net, x = Decoder(index, PIPELINE), tokens()
    if net.embed is not None:
        parallelize_module(net, mesh["tp"], {"embed": RowwiseParallel(input_layouts=Replicate())})
    if net.head is not None:
        parallelize_module(net, mesh["tp"], {"head": ColwiseParallel(output_layouts=Replicate())})
    for layer in net.layers.values():
        plan = {**{name: ColwiseParallel() for name in COLUMNS}, **{name: RowwiseParallel() for name in ROWS}}
        fully_shard(parallelize_module(layer, mesh["tp"], plan), mesh=mesh["dp"])
    fully_shard(net, mesh=mesh["dp"])
    stage = PipelineStage(net, index, PIPELINE, torch.device("meta"), group=mesh.get_group("pp"))
    schedule = Schedule1F1B(stage, n_microbatches=BATCHES, loss_fn=loss)
    given = [x] if stage.is_first else []
    return lambda: schedule.step(*given, **({"target": x} if stage.is_last else {}))
