"""Ways to run a PyTorch model by its modules and calls: hooks, parametrisations, containers, kernels, functions of its own."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrizations

from tests.adapters.pytorch.way_parts import (
    BATCH,
    CONV,
    LINEAR,
    NARROW,
    WIDE,
    Custom,
    Net,
    Way,
    applied,
    image,
    into,
    x,
)

WAYS: dict[str, Way] = {}
way = partial(into, WAYS)


# Hooks and parametrisations.


@way("hooks that compute", 2 * LINEAR)
def hooks() -> Any:
    net = nn.Sequential(nn.Linear(WIDE, NARROW))
    net[0].register_forward_pre_hook(lambda m, inputs: (torch.cat([inputs[0][:, : WIDE // 2]] * 2, 1) + 0 * inputs[0],))
    net[0].register_forward_hook(lambda m, inputs, out: out + inputs[0] @ m.weight.t())
    return net, x()


@way("weight_norm (hook)", LINEAR)
def weight_norm_old() -> Any:
    return nn.Sequential(torch.nn.utils.weight_norm(nn.Linear(WIDE, NARROW))), x()


@way("weight_norm (parametrization)", LINEAR)
def weight_norm() -> Any:
    return nn.Sequential(parametrizations.weight_norm(nn.Linear(WIDE, NARROW))), x()


# in eval mode sigma is u . (W v): a matrix-vector product and a dot product
@way("spectral_norm (parametrization)", LINEAR + WIDE * NARROW + NARROW)
def spectral_norm() -> Any:
    return nn.Sequential(parametrizations.spectral_norm(nn.Linear(WIDE, NARROW))), x()


@way("spectral_norm (hook)", LINEAR + WIDE * NARROW + NARROW)
def spectral_norm_old() -> Any:
    return nn.Sequential(torch.nn.utils.spectral_norm(nn.Linear(WIDE, NARROW))), x()


@way("fuse_conv_bn_eval", CONV)
def fused_conv() -> Any:
    conv, norm = nn.Conv2d(3, 5, 3).eval(), nn.BatchNorm2d(5).eval()
    return nn.Sequential(torch.nn.utils.fusion.fuse_conv_bn_eval(conv, norm)), image()


@way("DataParallel", 2 * LINEAR)
def data_parallel() -> Any:
    return nn.DataParallel(Net()), x()


# Containers.


@dataclass
class Output:
    logits: torch.Tensor
    extra: Any = None


@way("a dataclass returned", LINEAR)
def returns_dataclass() -> Any:
    return applied(lambda lin, x: Output(lin(x)))


@way("a dict returned", LINEAR)
def returns_dict() -> Any:
    return applied(lambda lin, x: {"logits": lin(x), "nothing": None})


@way("a module shared in two places", 2 * BATCH * WIDE * WIDE)
def shared() -> Any:
    lin = nn.Linear(WIDE, WIDE)
    return nn.Sequential(lin, nn.ReLU(), nn.Sequential(lin)), x()


@way("a lazy module", LINEAR)
def lazy() -> Any:
    return nn.Sequential(nn.LazyLinear(NARROW)), x()


class OwnCall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDE, NARROW)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.lin(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


@way("`__call__` overridden", LINEAR)
def own_call() -> Any:
    return OwnCall(), x()


@way("`__call__` overridden inside", LINEAR)
def own_call_inside() -> Any:
    return nn.Sequential(OwnCall()), x()


@way("quantize_dynamic", LINEAR)
def quantized() -> Any:
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(WIDE, NARROW))), x()


@way("to_mkldnn", LINEAR)
def of_mkldnn() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch.utils import mkldnn

    class Dense(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = mkldnn.to_mkldnn(nn.Sequential(nn.Linear(WIDE, NARROW)).eval())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x.to_mkldnn()).to_dense()

    return Dense(), x()


@way("sdpa_kernel", 2 * 2 * 5 * 5 * 16)
def attention_kernel() -> Any:
    class Attends(nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
                return nn.functional.scaled_dot_product_attention(q, q, q)

    return Attends(), torch.ones(1, 2, 5, 16)


@way("complex parameters", 4 * LINEAR)
def complex_parameters() -> Any:
    class Complex(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(WIDE, NARROW, dtype=torch.complex64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.to(torch.complex64) @ self.weight).real

    return Complex(), x()


@way("reshapes and einsum", LINEAR)
def reshapes() -> Any:
    return applied(
        lambda lin, x: torch.einsum("bhw,hwo->bo", x.reshape(BATCH, 8, 8), lin.weight.t().reshape(8, 8, NARROW))
    )


@way("a loop with a key-value cache", sum(3 * 16 * 16 + 2 * 16 * (t + 1) for t in range(5)))
def cache() -> Any:
    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(16, 48)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            keys, values = x[:, :0], x[:, :0]
            token = x[:, :1]
            for _ in range(5):
                q, k, v = self.qkv(token).split(16, -1)
                keys, values = torch.cat((keys, k), 1), torch.cat((values, v), 1)
                token = nn.functional.scaled_dot_product_attention(q, keys, values)
            return token

    return Decoder(), torch.ones(1, 1, 16)


@way("torch.cond", LINEAR)
def cond() -> Any:
    return applied(
        lambda lin, x: torch.cond(x.sum() > 0, lambda a: a @ lin.weight.t(), lambda a: a[:, :NARROW] * 1, (x,))
    )


@way("while_loop", 3 * BATCH * WIDE * WIDE)
def while_loop() -> Any:
    from torch._higher_order_ops import while_loop

    class Loops(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(WIDE, WIDE))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            start = (torch.zeros((), dtype=torch.int64), x)
            return while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a @ self.weight), start)[1]

    return Loops(), x()


@way("flex_attention", 2 * 2 * 16 * 16 * 16)
def flex() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    class Flex(nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return flex_attention(q, q, q)

    return Flex(), torch.ones(1, 2, 16, 16)


@way("compiled flex_attention", 2 * 2 * 16 * 16 * 16)
def flex_compiled() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    compiled = torch.compile(flex_attention, backend="eager")

    class Flex(nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return compiled(q, q, q)

    return Flex(), torch.ones(1, 2, 16, 16)


@way("an autograd.Function", LINEAR)
def autograd_function() -> Any:
    return applied(lambda lin, x: Custom.apply(x, lin.weight.t()))


@way("gradients taken inside forward", 2 * LINEAR)
def takes_gradients() -> Any:
    def call(lin: nn.Module, x: torch.Tensor) -> Any:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(lin(x).sum(), x)[0]

    return applied(call)
