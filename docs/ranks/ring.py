"""Attention on one device, and in blocks on ranks that share a sequence."""

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.nn import functional


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96, bias=False)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (4, 8)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def whole():
    net, x = Net(), torch.ones(2, 16, 32)
    return lambda: net(x).sum().backward()


def blocks():
    net, x = Net(), torch.ones(2, 16, 32)
    mesh = init_device_mesh("cpu", (distributed.get_world_size(),), mesh_dim_names=("cp",))

    def step():
        with context_parallel(mesh, buffers=[x], buffer_seq_dims=[1]):
            net(x).sum().backward()

    return step
