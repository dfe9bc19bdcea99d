"""Steps of all kinds, each as a function of a model and its optimizer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.adapters.pytorch.way_parts import Custom
from tests.products.steps import nets
from tests.products.steps.nets import Transformer, cross_entropy, tokens


def step_by(optimizer: torch.optim.Optimizer, *losses: torch.Tensor) -> None:
    for loss in losses:
        loss.backward()
    optimizer.step()


def micro_batches(model: Transformer, optimizer: torch.optim.Optimizer, saved: str = "") -> None:
    model.saved = saved
    for _ in range(2):
        (cross_entropy(model, tokens()) / 2).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def autocast(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        loss = cross_entropy(model, tokens())
    step_by(optimizer, loss)


def scaled(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(cross_entropy(model, tokens())).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()


def frozen(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    model.layers[0].requires_grad_(False)
    step_by(optimizer, cross_entropy(model, tokens()))


def closure(model: Transformer, _: Any) -> None:
    optimizer, ids = torch.optim.LBFGS(model.parameters(), max_iter=2), tokens()

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        found = cross_entropy(model, ids)
        found.backward()
        return found

    optimizer.step(loss)


def gradient_penalty(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    x = model.table(tokens()).detach().requires_grad_()
    (slope,) = torch.autograd.grad(model.layers[0].up(x).square().sum(), x, create_graph=True)
    step_by(optimizer, slope.square().sum())


def functional_gradient(model: Transformer, _: Any) -> Any:
    ids = tokens()

    def loss(weights: dict[str, torch.Tensor]) -> torch.Tensor:
        found = torch.func.functional_call(model, weights, (ids,))
        return functional.cross_entropy(found.flatten(0, 1), ids.flatten())

    return torch.func.grad(loss)(dict(model.named_parameters()))


def own_function(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    x = model.table(tokens()).flatten(0, 1)
    step_by(optimizer, Custom.apply(x, model.layers[0].out.weight).square().mean())


def without_gradients(model: Transformer, mode: Any = torch.no_grad) -> Any:
    with mode():
        return model(tokens()).argmax(-1).clone()


def hooks(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    model.head.register_forward_hook(lambda module, given, out: out @ torch.ones(nets.V, nets.V))
    model.head.register_full_backward_hook(lambda module, given, out: (2 * given[0],))
    model.norm.weight.register_hook(lambda gradient: gradient / 2)
    micro_batches(model, optimizer)


def within_the_backward_pass(model: Transformer, _: Any) -> None:
    steps = {weight: torch.optim.SGD([weight], 0.1) for weight in model.parameters()}

    def stepped(weight: torch.Tensor) -> None:
        steps[weight].step()
        steps[weight].zero_grad()

    for weight in model.parameters():
        weight.register_post_accumulate_grad_hook(stepped)
    cross_entropy(model, tokens()).backward()


def caught(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    with suppress(RuntimeError):
        model.layers(tokens())
    with suppress(Exception):
        model(torch.ones(2, 2))
    micro_batches(model, optimizer)


def condition(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    x = model.norm(model.table(tokens()))
    step_by(optimizer, torch.cond(x.sum() > -1e9, lambda y: model.head(y), lambda y: model.head(y) * 2, (x,)).sum())


CASES: dict[str, Callable[[Transformer, torch.optim.Optimizer], Any]] = {
    "micro_batches": micro_batches,
    "reentrant": lambda model, optimizer: micro_batches(model, optimizer, "reentrant"),
    "non_reentrant": lambda model, optimizer: micro_batches(model, optimizer, "non-reentrant"),
    "autocast": autocast,
    "scaled": scaled,
    "frozen": frozen,
    "foreach": lambda model, _: micro_batches(model, torch.optim.AdamW(model.parameters(), foreach=True)),
    "fused": lambda model, _: micro_batches(model, torch.optim.AdamW(model.parameters(), fused=True)),
    "closure": closure,
    "gradient_penalty": gradient_penalty,
    "functional_gradient": functional_gradient,
    "mapped": lambda model, _: torch.func.vmap(lambda ids: model(ids[None]), randomness="different")(tokens()),
    "own_function": own_function,
    "without_gradients": lambda model, _: without_gradients(model),
    "inference": lambda model, _: without_gradients(model, torch.inference_mode),
    "evaluated": lambda model, optimizer: step_by(optimizer, cross_entropy(model.eval(), tokens())),
    "hooks": hooks,
    "within_the_backward_pass": within_the_backward_pass,
    "two_losses": lambda model, optimizer: step_by(
        optimizer, cross_entropy(model, tokens()), model(tokens()).square().mean()
    ),
    "caught": caught,
    "condition": condition,
    "nothing": lambda *_: None,
}
