"""Steps that lie: the number is what ran, by closed form, or it is withheld by name; nothing raises that would not without us."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

import reconcile
from reconcile.core.errors import NotInResult
from reconcile.core.records import BACKWARD, FORWARD, INFERENCE, INPUT_GRADIENT, OPTIMIZER, OTHER, WEIGHT_GRADIENT

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
from torch import nn  # noqa: E402

from tests.products.steps import lies, nets  # noqa: E402
from tests.products.steps.lies import SQUARE  # noqa: E402
from tests.products.steps.nets import FIRST, IN, OUT, ROWS, SECOND, WIDE, counted, phases, rows  # noqa: E402

pytestmark = pytest.mark.frameworks

CALL = FIRST + SECOND
F, I, W = FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT  # noqa: E741
STEP = {F: CALL, I: SECOND, W: CALL}
OWN = 2 * ROWS * OUT * OUT
"""A product of the network's results with a matrix."""
LOST = 2 * ROWS * WIDE * 3
"""The product of a layer that then raises."""
WIDER = 2 * ROWS * WIDE * WIDE


def train(net: nn.Module, x: torch.Tensor | None = None) -> None:
    net(rows() if x is None else x).sum().backward()


def hooked(name: str, hook: Callable[..., Any]) -> nn.Module:
    net = nets.mlp()
    getattr(net[2], name)(hook)
    return net


def without_gradients(net: nn.Module) -> None:
    with torch.no_grad():
        net(rows())
    train(net)


def twice_back(net: nn.Module) -> None:
    loss = net(rows()).sum()
    loss.backward(retain_graph=True)
    loss.backward()


def by_hand(net: nn.Module) -> None:
    train(net)
    with torch.no_grad():
        for weight in net.parameters():
            weight -= 0.1 * weight.grad
        net[0].weight.copy_(net[0].weight @ torch.eye(IN))
    train(net)


def caught(net: lies.Tempted) -> None:
    with suppress(ValueError):
        net.raising(torch.ones(ROWS, WIDE))
    train(net)
    SQUARE @ SQUARE


def streamed(net: nn.Module) -> None:
    *_, last = net(rows())
    last.sum().backward()


def data_of_its_own(net: nn.Module) -> None:
    """Without a backward pass between both calls: what is made there is no weight, and no part of a loss."""
    net(rows())
    train(net)


def optimized(net: nn.Module) -> None:
    train(net)
    lies.Shampoo(net.parameters()).step()


def failed_closure(net: nn.Module) -> None:
    with suppress(ZeroDivisionError):
        torch.optim.SGD(net.parameters(), 0.1).step(lambda: 1 / 0)
    SQUARE @ SQUARE


def failed_gradient(net: nn.Module) -> None:
    hook = net[0].weight.register_hook(lambda gradient: 1 / 0)
    with suppress(ZeroDivisionError):
        train(net)
    hook.remove()
    train(net)


def square_input(net: nn.Module) -> None:
    train(net, torch.ones(ROWS, WIDE))


def exchanged(net: nn.Module) -> None:
    """Weights that are other tensors than those the context was given."""
    for weight in net.parameters():
        weight.data = weight.data.clone()
    train(net)


def warm_script() -> nn.Module:
    """TorchScript makes one node of all layers, from the second call on."""
    net = torch.jit.script(nets.mlp())
    for _ in range(3):
        train(net)
    return net


SHAMPOO = 2 * 2 * (WIDE * WIDE * IN + OUT * OUT * WIDE)
PLUS = {F: CALL + OWN, I: SECOND + OWN, W: CALL}
WHAT_RAN: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], dict[str, int]]] = {
    "eval mode": (lambda: nets.mlp().eval(), train, STEP),
    "a hook multiplies": (lambda: hooked("register_forward_hook", lambda m, i, out: out @ SQUARE), train, PLUS),
    "a hook multiplies gradients": (
        lambda: hooked("register_full_backward_hook", lambda m, i, out: (i[0] @ torch.ones(WIDE, WIDE),)),
        train,
        {**STEP, I: SECOND + WIDER},
    ),
    "an optimizer has products": (nets.mlp, optimized, {**STEP, OPTIMIZER: SHAMPOO}),
    "an early return": (lies.Early, train, {F: FIRST, W: FIRST}),
    "an exception that a model catches": (lies.Tempted, train, {**PLUS, F: CALL + OWN + LOST}),
    "an exception that a program catches": (
        lies.Tempted, caught, {**PLUS, F: CALL + OWN + LOST, INFERENCE: LOST, OTHER: 2 * OUT**3}
    ),
    "an optimizer's closure raises": (nets.mlp, failed_closure, {OTHER: 2 * OUT**3}),
    "a gradient's hook raises": (nets.mlp, failed_gradient, {phase: 2 * flops for phase, flops in STEP.items()}),
    "a retained graph": (nets.mlp, twice_back, {F: CALL, I: 2 * SECOND, W: 2 * CALL}),
    "weights changed by hand": (nets.mlp, by_hand, {F: 2 * CALL, I: 2 * SECOND, W: 2 * CALL, OTHER: 2 * WIDE * IN * IN}),
    "weights exchanged": (nets.mlp, exchanged, STEP),
    "no_grad, then training": (nets.mlp, without_gradients, {**STEP, INFERENCE: CALL}),
    "a generator": (lies.Stream, streamed, STEP),
    "one layer under two names": (lies.Twins, square_input, {F: 2 * WIDER, I: WIDER, W: 2 * WIDER}),
    "a tensor's own class": (nets.mlp, lambda net: train(net, lies.Wrapper(rows())), {F: CALL, BACKWARD: CALL + SECOND}),
    "torch.cond": (lies.Branches, square_input, {F: WIDER, W: WIDER}),
    "data made between two calls": (nets.mlp, data_of_its_own, {**STEP, F: 2 * CALL}),
    "a script": (warm_script, train, {F: CALL, BACKWARD: CALL + SECOND}),
}  # fmt: skip


@pytest.mark.parametrize("lie", WHAT_RAN)
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_the_number_is_what_ran(lie: str) -> None:
    make, run, expected = WHAT_RAN[lie]
    run(make())  # nor does it raise by itself
    net = make()
    step = counted(lambda: run(net), net)
    assert phases(step) == expected
    assert step.metrics()["flops"] == sum(expected.values())
    (ledger,) = step.result.ledgers
    assert ledger.total in (None, sum(expected.values()))


def on_a_thread(net: nn.Module) -> None:
    thread = threading.Thread(target=net, args=(rows(),))
    thread.start()
    thread.join()


def back_on_a_thread(net: nn.Module) -> None:
    thread = threading.Thread(target=net(rows()).sum().backward)
    thread.start()
    thread.join()


def through_numpy(net: nn.Module) -> None:
    array = net(rows()).detach().numpy()
    train(net, rows() + torch.from_numpy(array @ array.T).sum())


def through_lists(net: nn.Module) -> None:
    rows_ = net(rows()).detach().numpy() @ numpy.ones((OUT, IN), numpy.float32)
    train(net, torch.tensor(rows_.tolist()))


def in_python(net: nn.Module) -> None:
    lines = net(rows()).tolist()
    train(net, torch.tensor([[sum(line)] * IN for line in lines]))


def by_a_kernel(net: nn.Module) -> None:
    out = torch.empty_like(rows())
    ctypes.memmove(out.data_ptr(), rows().data_ptr(), out.nbytes)
    train(net, out)


def into_a_weight(net: nn.Module) -> None:
    train(net)
    net[0].weight.detach().numpy()[:] *= 2
    net(rows())


def into_a_result(net: nn.Module) -> None:
    found = net(rows())
    found.detach().numpy()[:] *= 2
    found.sum().backward()


def loaded_in_place(net: nn.Module) -> None:
    """One batch after the other in the same memory, as an environment of reinforcement learning has it."""
    batch = numpy.ones((ROWS, IN), numpy.float32)
    for scale in (1, 2):
        batch[:] = scale
        train(net, torch.from_numpy(batch) / 2)
        batch[:] = 3
        net(torch.from_numpy(batch))


def in_a_process(net: nn.Module) -> None:
    subprocess.run(["true"], check=True)
    net(rows())


WITHHELD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a thread": (on_a_thread, "it ran on another thread"),
    "a backward pass on a thread": (back_on_a_thread, "it ran on another thread"),
    "numpy between tensors": (through_numpy, "its values left PyTorch here"),
    "numpy, and back as lists": (through_lists, "its values left PyTorch here"),
    "Python's own sums": (in_python, "its values left PyTorch here"),
    "a kernel of an extension": (by_a_kernel, "something else wrote memory that an operator had left"),
    "numpy in a weight": (into_a_weight, "something else wrote memory that an operator had left"),
    "numpy in a result": (into_a_result, "something else wrote memory that an operator had left"),
    "a process": (in_a_process, "a process was started here"),
    "nothing": (lambda net: None, "nothing ran in the step"),
}


@pytest.mark.parametrize("lie", WITHHELD)
def test_what_was_not_seen_is_withheld_by_name(lie: str) -> None:
    run, why = WITHHELD[lie]
    net = nets.mlp()
    step = counted(lambda: run(net), net)
    for look in (step.cite, step.metrics):
        with pytest.raises(NotInResult, match=f"No number to publish for PyTorch: .*{why}"):
            look()
    assert step.exit_code == 1


def test_data_may_be_loaded_into_the_same_memory() -> None:
    net = nets.mlp()
    assert phases(counted(lambda: loaded_in_place(net), net)) == {F: 4 * CALL, I: 2 * SECOND, W: 2 * CALL}


def test_a_thread_that_was_there_before_is_seen() -> None:
    net = nets.mlp()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        idle = counted(lambda: (pool.submit(int).result(), train(net)), net)
        busy = counted(lambda: (pool.submit(torch.mm, SQUARE, SQUARE).result(), train(net)), net)
    assert phases(idle) == STEP
    with pytest.raises(NotInResult, match=r"aten\.mm ran on threads that were there before the call"):
        busy.cite()


@pytest.mark.parametrize("where", ["the program", "a layer"])
def test_an_exception_goes_on_and_withholds_the_number(where: str) -> None:
    net = lies.Raising(KeyError) if where == "a layer" else nets.mlp()
    x = torch.ones(ROWS, WIDE) if where == "a layer" else rows()
    with pytest.raises(KeyError), reconcile.count(net) as step:  # noqa: PT012
        net(x)
        raise KeyError("mine")
    with pytest.raises(NotInResult, match=r"the step ended early \(KeyError: "):
        step.cite()
