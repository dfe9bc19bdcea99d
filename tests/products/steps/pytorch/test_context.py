"""What a step leaves behind is what it leaves without the context, bit for bit; and what the context says of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import reconcile
from reconcile.core.records import FORWARD, INPUT_GRADIENT, LOSS, OPTIMIZER, WEIGHT_GRADIENT
from tests.products.steps import nets
from tests.products.steps.nets import FIRST, OUT, ROWS, SECOND, TOKENS, D, by_hand, counted, phases, rows
from tests.products.steps.pytorch.cases import CASES, own_function


def made() -> tuple[nets.Transformer, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nets.Transformer(layers=1)
    optimizer = torch.optim.AdamW(model.parameters())
    torch.manual_seed(1)
    return model, optimizer


def left(model: nets.Transformer, optimizer: torch.optim.Optimizer, result: Any) -> dict[str, Any]:
    """All that a step may have changed: tensors as bytes, so that what is not a number equals itself."""
    found: dict[str, Any] = {f"weight {name}": value for name, value in model.state_dict().items()}
    found |= {f"gradient {name}": weight.grad for name, weight in model.named_parameters()}
    for i, state in optimizer.state_dict()["state"].items():
        found |= {f"state {i} {name}": value for name, value in state.items()}
    results = result.values() if isinstance(result, dict) else [result]
    found |= {f"result {i}": value for i, value in enumerate(results)}
    found["random numbers"] = torch.get_rng_state()
    held = {n: _bytes(v) if isinstance(v, torch.Tensor) else v for n, v in found.items()}
    for name, module in model.named_modules():
        hooks = (
            module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._forward_hooks_always_called,
        )  # fmt: skip
        held[f"module {name}"] = (module.training, sorted(vars(module)), [len(of_kind) for of_kind in hooks])
    held["modes"] = (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"))
    held["attributes"] = [(name, w.requires_grad, w.is_leaf) for name, w in model.named_parameters()]
    return held


def _bytes(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.detach().contiguous().view(-1).view(torch.uint8).tolist()


UNLIKE = {"gradient_penalty", "condition", "nothing"}
"""FlopCounterMode runs both branches of a condition, and fails on gradients of gradients (`A leaf node was passed`)."""
CHEAP = {
    "non_reentrant", "functional_gradient", "inference", "within_the_backward_pass", "gradient_penalty", "nothing",
}  # fmt: skip
"""Of each kind one: what is computed again, transforms, modes, hooks, and what flop_counter does not count."""


@pytest.mark.filterwarnings(
    "ignore:There is a performance drop", "ignore:The .grad attribute of a Tensor that is not a leaf"
)
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in CHEAP else pytest.mark.slow) for n in CASES])
def test_a_step_leaves_and_counts_what_it_does_by_itself(name: str) -> None:
    model, optimizer = made()
    alone = left(model, optimizer, CASES[name](model, optimizer))
    model, optimizer = made()
    with reconcile.count(model) as step:
        result = CASES[name](model, optimizer)
    within = left(model, optimizer, result)
    assert [what for what in alone if alone[what] != within[what]] == []
    assert list(alone) == list(within)
    assert step.exit_code == (1 if name in UNLIKE else 0)
    if name not in UNLIKE:
        model, optimizer = made()
        assert step.result.ledgers[0].total == by_hand(lambda: CASES[name](model, optimizer))
        assert nets.settled(step).keys() <= {"op-not-counted"}  # the CPU's attention, before PyTorch 2.15


def test_an_own_function_is_loss_forward_and_backward() -> None:
    """It is called on a model's results: TOKENS x D x D, three times."""
    model, optimizer = made()
    step = counted(lambda: own_function(model, optimizer), model)
    assert phases(step) == {LOSS: 3 * 2 * TOKENS * D * D}


def test_what_a_closure_calls_is_a_forward_pass() -> None:
    """LBFGS calls it once for each of its iterations; its own products are the optimizer's."""
    net, x = nets.mlp(), rows()
    optimizer, calls = torch.optim.LBFGS(net.parameters(), max_iter=3), []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        calls.append(net(x).square().mean())
        calls[-1].backward()
        return calls[-1]

    step = counted(lambda: optimizer.step(closure), net)
    times = len(calls)
    assert times > 1
    found = phases(step)
    assert found.pop(OPTIMIZER) > 0
    both = times * (FIRST + SECOND)
    assert found == {FORWARD: both, INPUT_GRADIENT: times * SECOND, WEIGHT_GRADIENT: both}


@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.slow)])
def test_what_is_compiled_is_counted_as_written(backend: str) -> None:
    net = nets.mlp()
    compiled = torch.compile(net, backend=backend)
    compiled(rows())
    step = counted(lambda: compiled(rows()).sum().backward(), net)
    assert step.metrics()["flops"] == nets.MLP_STEP
    assert set(step.table.index) == {"0", "2"}
    (trace,) = step.result.traces
    assert [note for note in trace.notes if note.startswith("torch.compile was off in the step")] != []
    plain = counted(lambda: net(rows()).sum().backward(), net)
    assert [note for note in plain.result.traces[0].notes if "torch.compile" in note] == []


def test_it_says_what_the_step_was() -> None:
    net = nets.mlp()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def run() -> None:
        for _ in range(2):
            net(rows()).sum().backward()
        optimizer.step()

    told = "the step of the program itself, as it ran: 2 calls of a model, 2 backward passes, 1 step of an optimizer"
    assert told in counted(run, net).result.traces[0].notes


def test_of_a_model_alone_nothing_is_loss_or_other() -> None:
    net = nets.mlp()
    step = counted(lambda: net(rows()) @ torch.ones(OUT, OUT), net)
    assert phases(step) == {FORWARD: FIRST + SECOND, "other": 2 * ROWS * OUT * OUT}
    assert step.table["work (torch)"].to_dict()["(after the call)"] == 2 * ROWS * OUT * OUT


def test_a_call_for_shapes_is_no_work() -> None:
    """Keras asks so for the sizes of what a model returns."""
    net = nets.mlp()

    def run() -> None:
        on_meta = {name: weight.to("meta") for name, weight in net.state_dict().items()}
        torch.func.functional_call(net, on_meta, rows().to("meta"))
        net(rows()).sum().backward()

    step = counted(run, net)
    assert step.metrics()["flops"] == step.result.ledgers[0].total == nets.MLP_STEP
    assert [note for note in step.result.traces[0].notes if "without values (meta)" in note] != []


def test_a_data_loader_s_workers_are_told_and_not_counted(semaphores: None) -> None:
    """The batches come from other processes, in the middle of the step; what any other process sends withholds the number."""
    rows_of_data, width, out, batch = 12, 6, 5, 4
    net = torch.nn.Linear(width, out)
    data = torch.utils.data.TensorDataset(torch.ones(rows_of_data, width))
    loader = torch.utils.data.DataLoader(data, batch_size=batch, num_workers=1)
    with reconcile.count(net) as step:
        for (each,) in loader:
            net(each).sum().backward()
    assert step.flops()["flops"] == 2 * 2 * rows_of_data * width * out
    (trace,) = step.result.traces
    assert "the workers of a DataLoader made the data, and what they computed is not counted" in trace.notes
