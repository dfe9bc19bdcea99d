"""Attention whose positions several ranks share, as users write it: a module of a user's, which imports nothing of ours.

python ring.py STEP RANK WORLD STORE OUT runs one of the processes of a real world on gloo, and writes the products that it
recorded; its gradients have to be those of one device.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor.experimental import _attention as ring
from torch.distributed.tensor.experimental import context_parallel
from torch.nn import functional

BATCH, HEADS, SEQ, WIDTH = 2, 4, 16, 8
DIM = HEADS * WIDTH
Step = Callable[[], None]


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.attention = Attention()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.out(self.attention(q, k, v).transpose(1, 2).flatten(2))


def tokens() -> torch.Tensor:
    return torch.randn(BATCH, SEQ, DIM, generator=torch.Generator().manual_seed(1))


def line() -> DeviceMesh:
    return init_device_mesh("cpu", (distributed.get_world_size(),), mesh_dim_names=("cp",))


def one(net: Net | None = None) -> Step:
    net, x = net or Net(), tokens()
    return lambda: torch.square(net(x)).sum().backward()


def balanced(net: Net | None = None) -> Step:
    """The halves of each rank are one from the start and one from the end of the sequence."""
    net, x, mesh = net or Net(), tokens(), line()

    def step() -> None:
        with context_parallel(mesh, buffers=[x], buffer_seq_dims=[1]):
            torch.square(net(x)).sum().backward()

    return step


def in_order(net: Net | None = None) -> Step:
    """Each rank has the positions after those of the rank before it."""
    step = balanced(net)

    def unbalanced() -> None:
        ring._cp_options.enable_load_balance = False
        step()

    return unbalanced


def sharded(net: Net | None = None) -> Step:
    """As torchtitan does it: gradients are reduced along the same line, and a module alone is in blocks."""
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.experimental._context_parallel import _attention as parts
    from torch.distributed.tensor.experimental._context_parallel._load_balancer import _HeadTailLoadBalancer
    from torch.distributed.tensor.parallel import parallelize_module

    net, x, mesh = net or Net(), tokens(), line()
    plan = parts._ContextParallel(seq_dim=2, attention_type=parts._ContextParallel.AttentionType.SDPA)
    parallelize_module(net.attention, mesh, plan)
    fully_shard(net, mesh=mesh)
    parts._enable_context_parallel_dispatcher()
    halves = _HeadTailLoadBalancer(SEQ, mesh.size(), "cpu")
    (own,) = parts._context_parallel_shard(mesh, [x], [1], halves)
    return lambda: torch.square(net(own)).sum().backward()


def main(name: str, rank: int, world: int, store: str, out: str) -> None:
    from gloo import products

    import reconcile
    from reconcile.products.ranks.pytorch import sequences
    from reconcile.products.ranks.pytorch import world as ranks

    sequences.follow_context_parallelism(ranks.patch, ranks.current_rank)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    alone, shared = Net(), Net()
    one(alone)()
    step = globals()[name](shared)
    with reconcile.count(shared) as counted:
        step()
    for mine, whole in zip(shared.parameters(), alone.parameters(), strict=True):
        assert mine.grad is not None
        assert whole.grad is not None
        distributed.all_reduce(mine.grad)
        torch.testing.assert_close(mine.grad, whole.grad)
    Path(out).write_text(json.dumps(products(counted.result.traces[0])))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
