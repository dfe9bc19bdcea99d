"""Ways to run a PyTorch model: small programs, each with the multiply-adds that it runs in closed form.

Each entry of ``WAYS`` is a factory, which returns (model, inputs), and its multiply-adds. The sizes differ from each other, so
that no two ways to be wrong give the same number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

BATCH, WIDE, NARROW = 4, 64, 8
LINEAR = BATCH * WIDE * NARROW
"""Multiply-adds of one Linear of 64 x 8 on (4, 64)."""


class Way(NamedTuple):
    """``make()`` returns (model, inputs); ``macs`` are the multiply-adds of one call."""

    make: Callable[[], Any]
    macs: int


WAYS: dict[str, Way] = {}


def way(name: str, macs: int) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a factory."""

    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        WAYS[name] = Way(make, macs)
        return make

    return register


def x() -> torch.Tensor:
    return torch.ones(BATCH, WIDE)


def image() -> torch.Tensor:
    return torch.ones(1, 3, 8, 8)


CONV = 5 * 3 * 3 * 3 * 6 * 6
"""Multiply-adds of Conv2d(3, 5, 3) on (1, 3, 8, 8)."""


class Net(nn.Module):
    """Linear, relu, Linear: 64 -> 8 -> 64."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDE, NARROW), nn.Linear(NARROW, WIDE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(x)))


@way("a plain module", 2 * LINEAR)
def plain() -> Any:
    return Net(), x()


# Compiled.


@way("torch.compile(module)", 2 * LINEAR)
def compiled_module() -> Any:
    return torch.compile(Net(), backend="eager"), x()


@way("module.compile()", 2 * LINEAR)
def compiled_in_place() -> Any:
    net = Net()
    net.compile(backend="eager")
    return net, x()


@way("a compiled module inside", 3 * LINEAR)
def compiled_inside() -> Any:
    return nn.Sequential(torch.compile(Net(), backend="eager"), nn.Linear(WIDE, NARROW)), x()


@way("a function compiled inside forward", LINEAR)
def compiled_function() -> Any:
    class Calls(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(WIDE, NARROW))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.compile(lambda a, b: torch.relu(a @ b), backend="eager")(x, self.weight)

    return Calls(), x()


class Decorated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDE, NARROW)

    @torch.compile(fullgraph=True, backend="eager")
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(x)


@way("forward decorated with torch.compile", LINEAR)
def decorated() -> Any:
    return Decorated(), x()


class Helped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDE, NARROW)

    @torch.compile(backend="eager")
    def helper(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.up(x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.helper(x)


@way("a method decorated with torch.compile", LINEAR)
def helped() -> Any:
    return Helped(), x()


# Graphs.


@way("torch.jit.script(module)", 2 * LINEAR)
def scripted() -> Any:
    return torch.jit.script(Net()), x()


@way("torch.jit.trace(module)", 2 * LINEAR)
def traced() -> Any:
    return torch.jit.trace(Net(), torch.ones(BATCH, WIDE, device="cpu")), x()


@way("a ScriptModule inside", 3 * LINEAR)
def scripted_inside() -> Any:
    return nn.Sequential(torch.jit.script(Net()), nn.Linear(WIDE, NARROW)), x()


@way("an ExportedProgram", 2 * LINEAR)
def exported() -> Any:
    return torch.export.export(Net(), (x(),)), x()


@way("an ExportedProgram's module()", 2 * LINEAR)
def exported_module() -> Any:
    return torch.export.export(Net(), (x(),)).module(), x()


@way("a torch.fx GraphModule", 2 * LINEAR)
def fx_graph() -> Any:
    return torch.fx.symbolic_trace(Net()), x()


# Transforms.


class Applied(nn.Module):
    """A Linear that a function of the test calls."""

    def __init__(self, call: Callable[[nn.Module, torch.Tensor], Any]) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDE, NARROW)
        self.call = call

    def forward(self, x: torch.Tensor) -> Any:
        return self.call(self.lin, x)


def applied(call: Callable[[nn.Module, torch.Tensor], Any]) -> Any:
    return Applied(call), x()


@way("torch.func.vmap", LINEAR)
def vmapped() -> Any:
    return applied(lambda lin, x: torch.func.vmap(lin)(x))


class Ensemble(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.models = nn.ModuleList(nn.Linear(WIDE, NARROW) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, buffers = torch.func.stack_module_state(list(self.models))
        call = torch.func.functional_call
        return torch.func.vmap(lambda w, b: call(self.models[0], (w, b), (x,)))(weights, buffers)


@way("an ensemble by vmap", 3 * LINEAR)
def ensemble() -> Any:
    return Ensemble(), x()


@way("torch.func.functional_call", LINEAR)
def functional_call() -> Any:
    return applied(lambda lin, x: torch.func.functional_call(lin, dict(lin.named_parameters()), (x,)))


@way("torch.func.grad", 2 * LINEAR)  # forward, and one product for the input's gradient
def func_grad() -> Any:
    return applied(lambda lin, x: torch.func.grad(lambda a: lin(a).sum())(x))


# the value, and a product for each tangent: also for that of the weights, which PyTorch fills with zeros
@way("torch.func.jvp", 3 * LINEAR)
def func_jvp() -> Any:
    return applied(lambda lin, x: torch.func.jvp(lin, (x,), (x,)))


@way("a nested tensor (jagged)", LINEAR)
def nested_jagged() -> Any:
    return applied(lambda lin, x: lin(torch.nested.nested_tensor([x[:1], x[1:]], layout=torch.jagged)).values())


@way("a nested tensor (strided)", LINEAR)
def nested_strided() -> Any:
    return applied(
        lambda lin, x: torch.nested.to_padded_tensor(lin(torch.nested.as_nested_tensor([x[:1], x[1:]])), 0.0)
    )


@way("checkpoint(use_reentrant=True)", LINEAR)
def checkpoint_reentrant() -> Any:
    return applied(lambda lin, x: checkpoint(lin, x, use_reentrant=True))


@way("checkpoint(use_reentrant=False)", LINEAR)
def checkpoint_modern() -> Any:
    return applied(lambda lin, x: checkpoint(lin, x, use_reentrant=False))


@way("autocast", LINEAR)
def autocast() -> Any:
    def call(lin: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return lin(x)

    return applied(call)


def _within(context: Callable[[], Any]) -> Callable[[nn.Module, torch.Tensor], Any]:
    def call(lin: nn.Module, x: torch.Tensor) -> Any:
        with context():
            return lin(x)

    return call


@way("inference_mode inside", LINEAR)
def inference_mode() -> Any:
    return applied(_within(torch.inference_mode))


@way("no_grad inside", LINEAR)
def no_grad() -> Any:
    return applied(_within(torch.no_grad))


@way("enable_grad inside", LINEAR)
def enable_grad() -> Any:
    return applied(_within(torch.enable_grad))


@way("forward called directly", LINEAR)
def direct() -> Any:
    return applied(lambda lin, x: lin.forward(x))


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


class Custom(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        x, weight = ctx.saved_tensors
        return gradients[0] @ weight.t(), x.t() @ gradients[0]


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
