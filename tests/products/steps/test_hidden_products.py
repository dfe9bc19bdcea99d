"""Steps that hide a product outside of PyTorch's operators, by ways that test_lying_steps.py has not, and ordinary steps."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from reconcile.core.errors import NotInResult

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
from torch import nn  # noqa: E402

from tests.products.steps.nets import IN, OUT, ROWS, counted, mlp, rows  # noqa: E402

pytestmark = pytest.mark.frameworks

WIDER = numpy.linspace(-1, 1, OUT * IN, dtype=numpy.float32).reshape(OUT, IN)


def memory(tensor: torch.Tensor) -> Any:
    """The elements, by their address alone."""
    elements = (ctypes.c_float * tensor.numel()).from_address(tensor.data_ptr())
    return numpy.frombuffer(elements, numpy.float32).reshape(tensor.shape)


def train(net: nn.Module, x: torch.Tensor | None = None) -> None:
    net(rows() if x is None else x).sum().backward()


def read_again(x: torch.Tensor) -> Any:
    """An array by a function that is no method of the class, of memory that an operator reads later."""
    values = torch._C.TensorBase.numpy(x)
    x + 1
    return values


def again(back: Callable[[Any], torch.Tensor], out: Callable[[torch.Tensor], Any] = memory) -> Callable[[Any], None]:
    """A second call on a product of the first one's results: how values leave, and how they come back."""

    def run(net: nn.Module) -> None:
        held = net(rows()).detach()
        train(net, back(out(held) @ WIDER))

    return run


class Exporting:
    """A tensor that gives its memory away by a function of PyTorch that is none of the tensor's methods."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **_: Any) -> Any:
        return getattr(torch._C, "_to_dlpack_versioned", torch._C._to_dlpack)(self.tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


DATA = numpy.zeros((ROWS, IN), numpy.float32)
LOADED = torch.from_numpy(DATA)


def load(values: Any) -> torch.Tensor:
    DATA[:] = values
    return LOADED


def fill(values: Any) -> torch.Tensor:
    out = torch.empty(ROWS * IN)
    for element, value in zip(out.unbind(), values.ravel(), strict=True):
        element.fill_(float(value))
    return out.view(ROWS, IN)


def take_storage(values: Any) -> torch.Tensor:
    storage = torch.UntypedStorage.from_buffer(values.tobytes(), byte_order="native", dtype=torch.uint8)
    return torch.empty(0).set_(storage, 0, (ROWS, IN), (IN, 1))


def frame_bytes(values: Any) -> torch.Tensor:
    return torch.frombuffer(bytearray(values), dtype=torch.float32).view(ROWS, IN)


def exchange(values: Any) -> torch.Tensor:
    out = torch.zeros(ROWS, IN)
    out.data = torch.from_numpy(values)
    return out


def read_array(x: torch.Tensor) -> Any:
    return x.numpy()


def read_storage(x: torch.Tensor) -> Any:
    return numpy.frombuffer(bytes(x.untyped_storage()), numpy.float32).reshape(x.shape)


def read_items(x: torch.Tensor) -> Any:
    return numpy.array([[value.item() for value in row] for row in x], numpy.float32)


def scale_weight(net: nn.Module) -> None:
    train(net)
    weight = net[0].weight
    memory(weight.detach())[:] -= 0.1 * memory(weight.grad)


def replace_gradient(net: nn.Module) -> None:
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    train(net)
    net[0].weight.grad = torch.from_numpy(memory(net[0].weight.grad) * 2)
    optimizer.step()


class EachNumber(torch.optim.Optimizer):
    """Subtracts what numpy computed, number by number."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__(net.parameters(), {})

    def step(self) -> None:  # type: ignore[override]
        weight = self.param_groups[0]["params"][0]
        with torch.no_grad():
            for at, value in numpy.ndenumerate(weight.grad.numpy() @ numpy.ones((IN, IN), numpy.float32)):
                weight[at].sub_(float(value))


def step_by_numbers(net: nn.Module) -> None:
    net(rows()).square().sum().backward()
    EachNumber(net).step()


def read_address(x: torch.Tensor) -> Any:
    elements = (ctypes.c_float * x.numel()).from_address(x.untyped_storage().data_ptr())
    return numpy.frombuffer(elements, numpy.float32).reshape(x.shape)


def hook_gradient(net: nn.Module) -> None:
    """In place, and nobody reads it."""

    def double(weight: torch.Tensor) -> None:
        memory(weight.grad)[:] *= 2

    net[0].weight.register_post_accumulate_grad_hook(double)
    train(net)


class Outside(torch.autograd.Function):
    """Whose gradient comes from outside."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 1

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(memory(gradient.contiguous()) * 2)


def resize(net: nn.Module) -> None:
    found = net(rows())
    held = found.detach()
    held.untyped_storage().resize_(2 * held.nbytes)
    memory(held)[:] *= 2
    found.sum().backward()


HIDDEN: dict[str, Callable[[Any], None]] = {
    "into the memory of data": again(load, read_array),
    "by address, into the memory of data": again(load),
    "by address, as an array": again(torch.from_numpy),
    "by PyTorch's own function": again(torch.from_numpy, read_again),
    "by a capsule": again(torch.from_numpy, lambda x: numpy.from_dlpack(Exporting(x))),
    "by address, as a list": again(lambda values: torch.tensor(values.tolist())),
    "each item": again(torch.from_numpy, read_items),
    "element by element": again(fill, read_array),
    "a storage that is taken": again(take_storage, read_array),
    "data that are exchanged": again(exchange),
    "a storage that is read": again(frame_bytes, read_storage),
    "another size": resize,
    "a storage's address": again(torch.from_numpy, read_address),
    "an optimizer": scale_weight,
    "an optimizer's numbers": step_by_numbers,
    "another gradient": replace_gradient,
    "a gradient's memory": hook_gradient,
    "a function's gradient": lambda net: Outside.apply(net(rows())).sum().backward(),
}  # fmt: skip


@pytest.mark.parametrize("way", HIDDEN)
def test_a_hidden_product_withholds_the_number(way: str) -> None:
    net = mlp()
    step = counted(lambda: HIDDEN[way](net), net)
    with pytest.raises(NotInResult, match="No number to publish"):
        step.metrics()
    assert step.exit_code == 1


def log_loss(net: nn.Module) -> None:
    for _ in range(3):
        loss = net(torch.from_numpy(numpy.random.rand(ROWS, IN).astype(numpy.float32))).square().sum()
        loss.backward()
        f"{loss.item():.3f}"


def clip(net: nn.Module) -> None:
    optimizer = torch.optim.AdamW(net.parameters())
    train(net)
    norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0).item()
    for weight in net.parameters():
        weight.grad.mul_(min(1.0, 1 / (norm + 1e-6)))
    optimizer.step()


def act(net: nn.Module) -> None:
    """Actions go to an environment in numpy, and what it shows comes back."""
    seen = numpy.random.rand(ROWS, IN).astype(numpy.float32)
    for _ in range(3):
        with torch.no_grad():
            actions = net(torch.from_numpy(seen)).argmax(-1).numpy()
        seen = seen * numpy.float32(0.9)
        seen[numpy.arange(ROWS), actions] += 1
    train(net, torch.from_numpy(seen))


def average(net: nn.Module) -> None:
    kept = [weight.detach().clone() for weight in net.parameters()]
    train(net)
    torch.optim.Adam(net.parameters()).step()
    with torch.no_grad():
        for mean, weight in zip(kept, net.parameters(), strict=True):
            mean.mul_(0.9).add_(weight, alpha=0.1)


ORDINARY = (log_loss, clip, act, average)


@pytest.mark.parametrize("run", ORDINARY)
def test_an_ordinary_step_is_published(run: Callable[[Any], None]) -> None:
    net = mlp()
    step = counted(lambda: run(net), net)
    assert step.metrics()["flops"] > 0
