"""A decoder with grouped queries, and the ways in which ranks share it: a module of a user's, which imports nothing of ours.

Each function makes what a rank runs: a model and its input, or the step itself. The world is that of the process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

VOCAB, DIM, HEADS, KV_HEADS, HIDDEN, LAYERS, BATCH, SEQ = 96, 64, 8, 4, 128, 4, 4, 16
HEAD = DIM // HEADS
Made = tuple[nn.Module, torch.Tensor]
Step = Callable[[], None]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wo = nn.Linear(DIM, DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.wk, self.wv = (nn.Linear(DIM, KV_HEADS * HEAD, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (w(x).view(*x.shape[:2], -1, HEAD).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(*x.shape[:2], -1))


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1, self.w3 = nn.Linear(DIM, HIDDEN, bias=False), nn.Linear(DIM, HIDDEN, bias=False)
        self.w2 = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w2(functional.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n1, self.attention, self.n2, self.mlp = nn.RMSNorm(DIM), Attention(), nn.RMSNorm(DIM), MLP()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.n1(x))
        return x + self.mlp(self.n2(x))


class Decoder(nn.Module):
    again = False  # whether blocks keep no activations

    def __init__(self) -> None:
        super().__init__()
        self.embed: Any = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleDict({str(i): Block() for i in range(LAYERS)})
        self.norm: Any = nn.RMSNorm(DIM)
        self.head: Any = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x if self.embed is None else self.embed(x)
        for layer in self.layers.values():
            x = checkpoint(layer, x, use_reentrant=False) if self.again else layer(x)
        return x if self.head is None else self.head(self.norm(x))


def ids(batch: int = BATCH) -> torch.Tensor:
    return torch.randint(0, VOCAB, (batch, SEQ))


def loss(out: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(out.flatten(0, 1), target.flatten())


def mesh(**sizes: int) -> DeviceMesh:
    return init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes))


def world() -> int:
    return distributed.get_world_size()


def again(make: Callable[[], Any]) -> Callable[[], Any]:
    """The same with activation checkpointing."""

    def made() -> Any:
        Decoder.again = True
        return make()

    return made


def plain() -> Made:
    return Decoder(), ids()


def plain_step() -> Step:
    net, x = Decoder(), ids()
    return lambda: loss(net(x), x).backward()


# Tensor parallelism.

TENSOR = {
    **{f"attention.{name}": ColwiseParallel() for name in ("wq", "wk", "wv")},
    **{f"mlp.{name}": ColwiseParallel() for name in ("w1", "w3")},
}


def tensor(net: Decoder, line: DeviceMesh, head: bool = True) -> Decoder:
    if net.embed is not None:
        parallelize_module(net, line, {"embed": RowwiseParallel(input_layouts=Replicate())})
    if net.head is not None and head:
        parallelize_module(net, line, {"head": ColwiseParallel(output_layouts=Replicate())})
    for layer in net.layers.values():
        parallelize_module(layer, line, {**TENSOR, "attention.wo": RowwiseParallel(), "mlp.w2": RowwiseParallel()})
    return net


def tp() -> Made:
    return tensor(Decoder(), mesh(tp=world())), ids()


tp_again = again(tp)


def tp_without_head() -> Made:
    return tensor(Decoder(), mesh(tp=world()), head=False), ids()


def sequence() -> Made:
    net, line = Decoder(), mesh(tp=world())
    outer: dict[str, Any] = {
        "embed": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
    }
    parallelize_module(net, line, outer)
    for layer in net.layers.values():
        whole = PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate())
        ends = {name: RowwiseParallel(output_layouts=Shard(1)) for name in ("attention.wo", "mlp.w2")}
        norms = {"n1": SequenceParallel(), "n2": SequenceParallel()}
        parallelize_module(layer, line, {**TENSOR, **norms, "attention": whole, "mlp": whole, **ends})
    return net, ids()


# Data parallelism.


def sharded(net: Decoder, line: DeviceMesh) -> Decoder:
    from torch.distributed.fsdp import fully_shard

    for layer in net.layers.values():
        fully_shard(layer, mesh=line)
    fully_shard(net, mesh=line)
    return net


def fsdp() -> Made:
    return sharded(Decoder(), mesh(dp=world())), ids()


def fsdp_of_one_batch() -> Made:
    return sharded(Decoder(), mesh(dp=world())), ids(BATCH // world())


def hsdp() -> Made:
    return sharded(Decoder(), mesh(replicate=world() // 2, shard=2)), ids()


def ddp() -> Made:
    return nn.parallel.DistributedDataParallel(Decoder()), ids()


# Pipelines.


def stage(index: int, count: int) -> Decoder:
    net, each = Decoder(), LAYERS // count
    for i in range(LAYERS):
        if not index * each <= i < (index + 1) * each:
            del net.layers[str(i)]
    if index:
        net.embed = None
    if index < count - 1:
        net.norm = net.head = None
    return net


def pipeline(schedule: str, each: int = 1) -> Step:
    from torch.distributed.pipelining import PipelineStage, schedules

    line = mesh(pp=world())
    count, first = world() * each, line.get_local_rank()
    stages = [
        PipelineStage(stage(i, count), i, count, torch.device("cpu"), group=line.get_group())
        for i in range(first, count, world())
    ]
    run = getattr(schedules, schedule)(stages if each > 1 else stages[0], n_microbatches=4, loss_fn=loss)
    return stepping(run, any(s.is_first for s in stages), any(s.is_last for s in stages))


def stepping(schedule: Any, first: bool, last: bool) -> Step:
    x = ids()
    return lambda: schedule.step(*([x] if first else []), **({"target": x} if last else {}))


def gpipe() -> Step:
    return pipeline("ScheduleGPipe")


def one_forward_one_backward() -> Step:
    return pipeline("Schedule1F1B")


def interleaved() -> Step:
    return pipeline("ScheduleInterleaved1F1B", 2)


def staged(whole: DeviceMesh, shared: Callable[[Decoder], Decoder]) -> Step:
    """Two stages of a pipeline, each of them shared by several ranks."""
    from torch.distributed.pipelining import PipelineStage, schedules

    index = whole.get_local_rank("pp")
    one = PipelineStage(shared(stage(index, 2)), index, 2, torch.device("cpu"), group=whole.get_group("pp"))
    return stepping(schedules.Schedule1F1B(one, n_microbatches=4, loss_fn=loss), index == 0, index == 1)


def tensor_in_stages() -> Step:
    whole = mesh(pp=2, tp=world() // 2)
    return staged(whole, lambda net: tensor(net, whole["tp"]))


def three_ways() -> Step:
    """Stages of a pipeline, each of them sharded by data and by tensors."""
    whole = mesh(pp=2, dp=world() // 4, tp=2)
    return staged(whole, lambda net: sharded(tensor(net, whole["tp"]), whole["dp"]))


gpipe_again, interleaved_again, one_forward_one_backward_again, tensor_in_stages_again, three_ways_again = map(
    again, (gpipe, interleaved, one_forward_one_backward, tensor_in_stages, three_ways)
)


# A vocabulary that does not divide.


def vocabulary(rows: int = VOCAB + 1) -> Made:
    return nn.Sequential(nn.Linear(DIM, rows, bias=False)), torch.randn(BATCH, SEQ, DIM)


def vocabulary_shared(rows: int = VOCAB + 1) -> Made:
    net, x = vocabulary(rows)
    return parallelize_module(net, mesh(tp=world()), {"0": ColwiseParallel()}), x


def vocabulary_padded() -> Made:
    return vocabulary_shared(VOCAB + 4)
