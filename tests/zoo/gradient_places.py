"""Which element of a PyTorch parameter is which element of a TensorFlow variable, found out without knowing the pair.

Every element of every variable gets a number of its own, is copied, and is looked for on the other side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconcile.model_zoo.parity import Both


@dataclass(frozen=True)
class Places:
    """Every TensorFlow element has a number from 1 on: ``start`` of each variable; ``of`` each PyTorch parameter, the number
    of the element that it is a copy of, 0 where it is none."""

    total: int
    start: dict[int, int]
    of: dict[str, Any]


def places_of(both: Both) -> tuple[Places, list[str], list[str]]:
    """Where the elements go, PyTorch parameters that nothing goes to, and those that something else than a copy goes to."""
    import numpy
    import torch

    every = getattr(both.tf_model, "variables", both.tf_model.weights)
    variables = [v for v in every if "float" in str(v.dtype)]
    held = [v.numpy() for v in variables]
    kept = {name: p.detach().clone() for name, p in both.torch_model.named_parameters()}
    start, total = {}, 0
    try:
        for variable, value in zip(variables, held, strict=True):
            start[id(variable)] = total + 1
            numbers = numpy.arange(total + 1, total + 1 + value.size).reshape(value.shape)
            variable.assign(numbers.astype(value.dtype))
            total += value.size
        with torch.no_grad():
            for parameter in both.torch_model.parameters():
                parameter.fill_(float("nan"))
        both.pair.copy_weights(both.tf_model, both.torch_model)
        copies = {name: p.detach().numpy().copy() for name, p in both.torch_model.named_parameters()}
    finally:
        for variable, value in zip(variables, held, strict=True):
            variable.assign(value)
        with torch.no_grad():
            for name, parameter in both.torch_model.named_parameters():
                parameter.copy_(kept[name])
        both.pair.copy_weights(both.tf_model, both.torch_model)
    if total >= 2**24 and not both.double:
        raise ValueError(f"{total} weights cannot all have numbers of their own in 32 bits: take smaller settings")
    places, alone, otherwise = {}, [], []
    for name, copy in copies.items():
        untouched = numpy.isnan(copy)
        whole = numpy.where(untouched, 0, copy)
        known = (whole == numpy.round(whole)) & (whole >= 1) & (whole <= total)
        places[name] = numpy.where(known, whole, 0).astype(numpy.int64)
        rest = int((~known & ~untouched & (whole != 0)).sum())
        if rest:
            otherwise.append(f"{name}: {rest} of {copy.size}")
        idle = int((untouched | (~known & (whole == 0))).sum())
        if idle:
            alone.append(f"{name} (PyTorch): {idle} of {copy.size}")
    return Places(total, start, places), alone, otherwise
