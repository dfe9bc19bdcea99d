"""Ways to run a PyTorch model, in the order of docs/ways.md: small programs, each with the multiply-adds of its closed form."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

from tests.adapters.counters.small_nets import Does
from tests.adapters.pytorch.way_parts import BATCH, CONV, LINEAR, NARROW, WIDE, Custom, Net, Way, image, x

attention = nn.functional.scaled_dot_product_attention


def applied(call: Callable[..., Any]) -> Any:
    """A layer that a function calls."""
    return Does(lambda m, x: call(m.lin, x), lin=nn.Linear(WIDE, NARROW)), x()


def inside(context: Callable[[], Any], call: Callable[..., Any] = lambda lin, x: lin(x)) -> Any:
    """The call in this context."""

    def within(lin: nn.Module, x: torch.Tensor) -> Any:
        with context():
            return call(lin, x)

    return applied(within)


# Compiled, and graphs.


class Decorated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDE, NARROW)

    @torch.compile(fullgraph=True, backend="eager")
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(x)


class Helped(Decorated):
    @torch.compile(backend="eager")
    def helper(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.up(x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.helper(x)


def compiled_in_place() -> Any:
    net = Net()
    net.compile(backend="eager")
    return net, x()


def compiled_function(m: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.compile(lambda a, b: torch.relu(a @ b), backend="eager")(x, m.weight)


# Transforms and modes.


class Ensemble(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.models = nn.ModuleList(nn.Linear(WIDE, NARROW) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, buffers = torch.func.stack_module_state(list(self.models))
        call = torch.func.functional_call
        return torch.func.vmap(lambda w, b: call(self.models[0], (w, b), (x,)))(weights, buffers)


def nested_strided(lin: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.nested.to_padded_tensor(lin(torch.nested.as_nested_tensor([x[:1], x[1:]])), 0.0)


# Modules and calls.


def hooks() -> Any:
    net = nn.Sequential(nn.Linear(WIDE, NARROW))
    net[0].register_forward_pre_hook(lambda m, inputs: (torch.cat([inputs[0][:, : WIDE // 2]] * 2, 1) + 0 * inputs[0],))
    net[0].register_forward_hook(lambda m, inputs, out: out + inputs[0] @ m.weight.t())
    return net, x()


def changed(change: Callable[[nn.Module], nn.Module]) -> Any:
    """A layer that a function of PyTorch's makes another one."""
    return nn.Sequential(change(nn.Linear(WIDE, NARROW))), x()


def fused_conv() -> Any:
    conv, norm = nn.Conv2d(3, 5, 3).eval(), nn.BatchNorm2d(5).eval()
    return nn.Sequential(nn.utils.fusion.fuse_conv_bn_eval(conv, norm)), image()


def shared() -> Any:
    lin = nn.Linear(WIDE, WIDE)
    return nn.Sequential(lin, nn.ReLU(), nn.Sequential(lin)), x()


@dataclass
class Output:
    logits: torch.Tensor
    extra: Any = None


class OwnCall(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDE, NARROW)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self.lin(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


def of_mkldnn() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch.utils import mkldnn
    net = mkldnn.to_mkldnn(nn.Sequential(nn.Linear(WIDE, NARROW)).eval())
    return Does(lambda m, x: m.net(x.to_mkldnn()).to_dense(), net=net), x()


def by_math(_: Any, q: torch.Tensor) -> torch.Tensor:
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        return attention(q, q, q)


def decode(m: Any, x: torch.Tensor) -> torch.Tensor:
    """Five tokens, each of which attends to those before it."""
    keys, values, token = x[:, :0], x[:, :0], x[:, :1]
    for _ in range(5):
        q, k, v = m.qkv(token).split(16, -1)
        keys, values = torch.cat((keys, k), 1), torch.cat((values, v), 1)
        token = attention(q, keys, values)
    return token


def repeat(m: Any, x: torch.Tensor) -> torch.Tensor:
    from torch._higher_order_ops import while_loop

    start = (torch.zeros((), dtype=torch.int64), x)
    return while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a @ m.weight), start)[1]


def choose(lin: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda a: a @ lin.weight.t(), lambda a: a[:, :NARROW] * 1, (x,))


def contract(lin: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.einsum("bhw,hwo->bo", x.reshape(BATCH, 8, 8), lin.weight.t().reshape(8, 8, NARROW))


def flex(compiled: bool) -> Any:
    call = torch.compile(flex_attention, backend="eager") if compiled else flex_attention
    return Does(lambda _, q: call(q, q, q)), torch.ones(1, 2, 16, 16)


def take_gradient(lin: Any, x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    return torch.autograd.grad(lin(x).sum(), x)[0]


SPECTRAL = LINEAR + WIDE * NARROW + NARROW
"""In eval mode sigma is u . (W v): a matrix-vector product and a dot product."""

WAYS = {
    "a plain module": Way(lambda: (Net(), x()), 2 * LINEAR),
    "torch.compile(module)": Way(lambda: (torch.compile(Net(), backend="eager"), x()), 2 * LINEAR),
    "module.compile()": Way(compiled_in_place, 2 * LINEAR),
    "a compiled module inside": Way(
        lambda: (nn.Sequential(torch.compile(Net(), backend="eager"), nn.Linear(WIDE, NARROW)), x()), 3 * LINEAR
    ),
    "a function compiled inside forward": Way(
        lambda: (Does(compiled_function, weight=nn.Parameter(torch.ones(WIDE, NARROW))), x()), LINEAR
    ),
    "forward decorated with torch.compile": Way(lambda: (Decorated(), x()), LINEAR),
    "a method decorated with torch.compile": Way(lambda: (Helped(), x()), LINEAR),
    "torch.jit.script(module)": Way(lambda: (torch.jit.script(Net()), x()), 2 * LINEAR),
    "torch.jit.trace(module)": Way(
        lambda: (torch.jit.trace(Net(), torch.ones(BATCH, WIDE, device="cpu")), x()), 2 * LINEAR
    ),
    "a ScriptModule inside": Way(
        lambda: (nn.Sequential(torch.jit.script(Net()), nn.Linear(WIDE, NARROW)), x()), 3 * LINEAR
    ),
    "an ExportedProgram": Way(lambda: (torch.export.export(Net(), (x(),)), x()), 2 * LINEAR),
    "an ExportedProgram's module()": Way(lambda: (torch.export.export(Net(), (x(),)).module(), x()), 2 * LINEAR),
    "a torch.fx GraphModule": Way(lambda: (torch.fx.symbolic_trace(Net()), x()), 2 * LINEAR),
    "torch.func.vmap": Way(lambda: applied(lambda lin, x: torch.func.vmap(lin)(x)), LINEAR),
    "an ensemble by vmap": Way(lambda: (Ensemble(), x()), 3 * LINEAR),
    "torch.func.functional_call": Way(
        lambda: applied(lambda lin, x: torch.func.functional_call(lin, dict(lin.named_parameters()), (x,))), LINEAR
    ),
    # forward, and one product for the input's gradient
    "torch.func.grad": Way(lambda: applied(lambda lin, x: torch.func.grad(lambda a: lin(a).sum())(x)), 2 * LINEAR),
    # the value, and a product for each tangent: also for that of the weights, which PyTorch fills with zeros
    "torch.func.jvp": Way(lambda: applied(lambda lin, x: torch.func.jvp(lin, (x,), (x,))), 3 * LINEAR),
    "a nested tensor (jagged)": Way(
        lambda: applied(lambda lin, x: lin(torch.nested.nested_tensor([x[:1], x[1:]], layout=torch.jagged)).values()),
        LINEAR,
    ),
    "a nested tensor (strided)": Way(lambda: applied(nested_strided), LINEAR),
    "checkpoint(use_reentrant=True)": Way(
        lambda: applied(lambda lin, x: checkpoint(lin, x, use_reentrant=True)), LINEAR
    ),
    "checkpoint(use_reentrant=False)": Way(
        lambda: applied(lambda lin, x: checkpoint(lin, x, use_reentrant=False)), LINEAR
    ),
    "autocast": Way(lambda: inside(lambda: torch.autocast("cpu", dtype=torch.bfloat16)), LINEAR),
    "inference_mode inside": Way(lambda: inside(torch.inference_mode), LINEAR),
    "no_grad inside": Way(lambda: inside(torch.no_grad), LINEAR),
    "enable_grad inside": Way(lambda: inside(torch.enable_grad), LINEAR),
    "forward called directly": Way(lambda: applied(lambda lin, x: lin.forward(x)), LINEAR),
    "hooks that compute": Way(hooks, 2 * LINEAR),
    "weight_norm (hook)": Way(lambda: changed(nn.utils.weight_norm), LINEAR),
    "weight_norm (parametrization)": Way(lambda: changed(parametrizations.weight_norm), LINEAR),
    "spectral_norm (parametrization)": Way(lambda: changed(parametrizations.spectral_norm), SPECTRAL),
    "spectral_norm (hook)": Way(lambda: changed(nn.utils.spectral_norm), SPECTRAL),
    "fuse_conv_bn_eval": Way(fused_conv, CONV),
    "DataParallel": Way(lambda: (nn.DataParallel(Net()), x()), 2 * LINEAR),
    "a dataclass returned": Way(lambda: applied(lambda lin, x: Output(lin(x))), LINEAR),
    "a dict returned": Way(lambda: applied(lambda lin, x: {"logits": lin(x), "nothing": None}), LINEAR),
    "a module shared in two places": Way(shared, 2 * BATCH * WIDE * WIDE),
    "a lazy module": Way(lambda: (nn.Sequential(nn.LazyLinear(NARROW)), x()), LINEAR),
    "`__call__` overridden": Way(lambda: (OwnCall(), x()), LINEAR),
    "`__call__` overridden inside": Way(lambda: (nn.Sequential(OwnCall()), x()), LINEAR),
    "quantize_dynamic": Way(
        lambda: (torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(WIDE, NARROW))), x()), LINEAR
    ),
    "to_mkldnn": Way(of_mkldnn, LINEAR),
    "sdpa_kernel": Way(lambda: (Does(by_math), torch.ones(1, 2, 5, 16)), 2 * 2 * 5 * 5 * 16),
    "complex parameters": Way(
        lambda: (
            Does(
                lambda m, x: (x.to(torch.complex64) @ m.weight).real,
                weight=nn.Parameter(torch.ones(WIDE, NARROW, dtype=torch.complex64)),
            ),
            x(),
        ),
        4 * LINEAR,
    ),
    "reshapes and einsum": Way(lambda: applied(contract), LINEAR),
    "a loop with a key-value cache": Way(
        lambda: (Does(decode, qkv=nn.Linear(16, 48)), torch.ones(1, 1, 16)),
        sum(3 * 16 * 16 + 2 * 16 * (t + 1) for t in range(5)),
    ),
    "torch.cond": Way(lambda: applied(choose), LINEAR),
    "while_loop": Way(
        lambda: (Does(repeat, weight=nn.Parameter(torch.ones(WIDE, WIDE))), x()), 3 * BATCH * WIDE * WIDE
    ),
    "flex_attention": Way(lambda: flex(False), 2 * 2 * 16 * 16 * 16),
    "compiled flex_attention": Way(lambda: flex(True), 2 * 2 * 16 * 16 * 16),
    "an autograd.Function": Way(lambda: applied(lambda lin, x: Custom.apply(x, lin.weight.t())), LINEAR),
    "gradients taken inside forward": Way(lambda: inside(torch.enable_grad, take_gradient), 2 * LINEAR),
}
"""How the model runs -> a factory, which returns (model, inputs), and its multiply-adds."""
