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

Case = Callable[[Transformer, torch.optim.Optimizer], Any]
CASES: dict[str, Case] = {}


def case(run: Case) -> Case:
    CASES[run.__name__] = run
    return run


@case
def micro_batches(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    for _ in range(2):
        (cross_entropy(model, tokens()) / 2).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


@case
def reentrant(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    model.saved = "reentrant"
    micro_batches(model, optimizer)


@case
def non_reentrant(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    model.saved = "non-reentrant"
    micro_batches(model, optimizer)


@case
def autocast(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        loss = cross_entropy(model, tokens())
    loss.backward()
    optimizer.step()


@case
def scaled(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(cross_entropy(model, tokens())).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()


@case
def frozen(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    model.layers[0].requires_grad_(False)
    cross_entropy(model, tokens()).backward()
    optimizer.step()


@case
def foreach(model: Transformer, _optimizer: torch.optim.Optimizer) -> None:
    micro_batches(model, torch.optim.AdamW(model.parameters(), foreach=True))


@case
def fused(model: Transformer, _optimizer: torch.optim.Optimizer) -> None:
    micro_batches(model, torch.optim.AdamW(model.parameters(), fused=True))


@case
def closure(model: Transformer, _optimizer: torch.optim.Optimizer) -> None:
    optimizer, ids = torch.optim.LBFGS(model.parameters(), max_iter=2), tokens()

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        found = cross_entropy(model, ids)
        found.backward()
        return found

    optimizer.step(loss)


@case
def gradient_penalty(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    x = model.table(tokens()).detach().requires_grad_()
    (slope,) = torch.autograd.grad(model.layers[0].up(x).square().sum(), x, create_graph=True)
    slope.square().sum().backward()
    optimizer.step()


@case
def functional_gradient(model: Transformer, _optimizer: torch.optim.Optimizer) -> Any:
    ids = tokens()

    def loss(weights: dict[str, torch.Tensor]) -> torch.Tensor:
        found = torch.func.functional_call(model, weights, (ids,))
        return functional.cross_entropy(found.flatten(0, 1), ids.flatten())

    return torch.func.grad(loss)(dict(model.named_parameters()))


@case
def mapped(model: Transformer, _optimizer: torch.optim.Optimizer) -> Any:
    return torch.func.vmap(lambda ids: model(ids[None]), randomness="different")(tokens())


@case
def own_function(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    x = model.table(tokens()).flatten(0, 1)
    Custom.apply(x, model.layers[0].out.weight).square().mean().backward()
    optimizer.step()


@case
def without_gradients(model: Transformer, _optimizer: torch.optim.Optimizer) -> Any:
    with torch.no_grad():
        return model(tokens()).argmax(-1)


@case
def inference(model: Transformer, _optimizer: torch.optim.Optimizer) -> Any:
    with torch.inference_mode():
        return model(tokens()).argmax(-1).clone()


@case
def evaluated(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    model.eval()
    cross_entropy(model, tokens()).backward()
    optimizer.step()


@case
def hooks(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    model.head.register_forward_hook(lambda module, given, out: out @ torch.ones(nets.V, nets.V))
    model.head.register_full_backward_hook(lambda module, given, out: (2 * given[0],))
    model.norm.weight.register_hook(lambda gradient: gradient / 2)
    micro_batches(model, optimizer)


@case
def within_the_backward_pass(model: Transformer, _optimizer: torch.optim.Optimizer) -> None:
    steps = {weight: torch.optim.SGD([weight], 0.1) for weight in model.parameters()}

    def stepped(weight: torch.Tensor) -> None:
        steps[weight].step()
        steps[weight].zero_grad()

    for weight in model.parameters():
        weight.register_post_accumulate_grad_hook(stepped)
    cross_entropy(model, tokens()).backward()


@case
def two_losses(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    one, other = cross_entropy(model, tokens()), model(tokens()).square().mean()
    one.backward()
    other.backward()
    optimizer.step()


@case
def caught(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    with suppress(RuntimeError):
        model.layers(tokens())
    with suppress(Exception):
        model(torch.ones(2, 2))
    micro_batches(model, optimizer)


@case
def condition(model: Transformer, optimizer: torch.optim.Optimizer) -> None:
    x = model.norm(model.table(tokens()))
    torch.cond(x.sum() > -1e9, lambda y: model.head(y), lambda y: model.head(y) * 2, (x,)).sum().backward()
    optimizer.step()


@case
def nothing(_model: Transformer, _optimizer: torch.optim.Optimizer) -> None:
    pass
