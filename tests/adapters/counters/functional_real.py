"""Runs where the packages are: what calflops and DeepSpeed's profiler say of the cases and of models with their bugs, as JSON.

``python -m tests.adapters.counters.functional_real calflops|deepspeed``: {"cases": [...], "models": {...}}.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

import reconcile
from reconcile.core.records import Op
from tests.adapters.counters import functional_cases
from tests.adapters.counters.cases import Case
from tests.adapters.counters.small_nets import Does


def formulas(family: str) -> tuple[dict[str, Any], dict[type, Any]]:
    """The counter's formula for each function that it patches, by the function's name; its hooks, by class."""
    if family == "calflops":
        from calflops import pytorch_ops as module

        places: tuple[Any, ...] = ({}, [], [])
    else:
        from deepspeed.profiling.flops_profiler import profiler as module

        places = ()
    by_function: dict[str, Any] = {}
    spaces = {"torch.nn.functional.": torch.nn.functional, "torch.": torch, "torch.Tensor.": torch.Tensor}
    if family == "deepspeed":
        import einops

        spaces["einops."] = einops

    def noted(function: Any, formula: Any, *_places: Any) -> Any:
        name = function.__name__
        prefix = next(prefix for prefix, space in spaces.items() if getattr(space, name, None) is function)
        by_function[prefix + name] = formula
        return function

    module.wrapFunc = noted
    module._patch_functionals(*places)
    module._patch_tensor_methods(*places)
    if family == "deepspeed":
        module._patch_miscellaneous_operations()
    return by_function, module.MODULE_HOOK_MAPPING


def called(formula: Any, op: Op) -> int:
    """The formula's FLOPs for the call that the record describes."""
    tensors = iter([torch.empty(tensor.shape or (), device="meta") for tensor in op.inputs])
    attrs = {
        key: tuple(value) if isinstance(value, list) and key != "args" else value for key, value in op.attrs.items()
    }
    del attrs["number"]
    positional: list[Any] = []
    for name, parameter in inspect.signature(formula).parameters.items():
        if parameter.kind == inspect.Parameter.VAR_POSITIONAL:
            given = attrs.pop(name, None)
            taken = [next(tensors, None) if value is None else value for value in given or []]
            positional += taken if given else list(tensors)
        elif parameter.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD:
            if name in attrs:
                positional.append(attrs.pop(name))
            elif (tensor := next(tensors, None)) is not None:
                positional.append(tensor)
            else:
                break
    known = inspect.signature(formula).parameters
    free = any(p.kind == inspect.Parameter.VAR_KEYWORD for p in known.values())
    rest = {key: value for key, value in attrs.items() if free or key in known}
    return int(formula(*positional, **rest)[0])


def hooked(hook: Any, op: Op) -> int:
    """The amount that the hook of a recurrent module adds."""
    settings = {key: value for key, value in op.attrs.items() if key != "number"}
    module = getattr(nn, op.op.rpartition(".")[2])(**settings, device="meta")
    module.__flops__ = 0
    hook(module, (torch.empty(op.inputs[0].shape or (), device="meta"),), None)
    return int(module.__flops__)


def cases(family: str) -> Iterator[tuple[str, int, int]]:
    """Function or class, the number of its case, and what the counter's own code counts."""
    by_function, hooks = formulas(family)
    by_class = {f"{cls.__module__}.{cls.__qualname__}": hook for cls, hook in hooks.items()}
    all_cases: tuple[Case, ...] = getattr(functional_cases, family.upper())
    for number, case in enumerate(all_cases):
        name, op = case.op.op, case.op
        if op.attrs["number"] == "flops":
            yield name, number, hooked(by_class[name], op) if name in by_class else called(by_function[name], op)


def net(function: Any) -> nn.Module:
    """A function beside a linear layer of 2 x 2 weights, which calflops needs to find the device."""
    return Does(lambda _, x: function(x), used=nn.Linear(2, 2, bias=False))


def twice() -> nn.Module:
    """One layer under two parents, of which one is called."""
    layer = nn.Linear(3, 5, bias=False)
    return Does(lambda m, x: m.a(x), a=nn.Sequential(layer), b=nn.Sequential(layer))


MODELS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "gru": (lambda: nn.GRU(3, 4, batch_first=True), (2, 5, 3)),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 3, groups=2, bias=False), (1, 4, 5, 5)),
    "attention": (lambda: net(lambda x: nn.functional.scaled_dot_product_attention(x, x, x)), (1, 2, 7, 4)),
    "product": (lambda: net(lambda x: x @ x), (3, 3)),
    "vector": (lambda: net(lambda x: torch.matmul(x, x)), (8,)),
    "sum": (lambda: net(lambda x: x + x), (2, 10)),
    "resized": (lambda: net(lambda x: nn.functional.interpolate(x, scale_factor=2, mode="bilinear")), (1, 3, 4, 4)),
    "shared": (twice, (2, 3)),
    "unbatched": (lambda: nn.Conv2d(2, 3, 3), (2, 5, 5)),
    "even": (lambda: nn.Conv1d(1, 1, 4, padding="same", bias=False), (1, 1, 8)),
}


def models(family: str) -> Iterator[tuple[str, Any]]:
    """For each model and both numbers: the total, and the amounts by cause with the residual."""

    for name, (make, shape) in MODELS.items():
        counters = (family, f"{family}@macs")
        run = reconcile.run(torch=make(), inputs=torch.ones(shape), counters=counters, convention="all")
        for ledger in run.result.ledgers:
            if ledger.total is None:
                yield f"{name} {ledger.counter}", ledger.reason
                continue
            rows = run.between(ledger.counter, "trace@torch")
            yield (
                f"{name} {ledger.counter}",
                [ledger.total, *zip(rows.iloc[1:-1, 0], map(int, rows.iloc[1:-1, -1]), strict=True)],
            )


def main(family: str) -> None:
    before = SimpleNamespace(relu=nn.functional.relu, matmul=torch.matmul)
    of_models = dict(models(family))
    intact = nn.functional.relu is before.relu and torch.matmul is before.matmul
    print(json.dumps({"models": of_models, "intact": intact, "cases": list(cases(family))}))


if __name__ == "__main__":
    main(sys.argv[1])
