"""Quantities of one call (components of work, sizes of tensors) to which ``reconcile counter draft`` fits a counter's numbers.

The work of a module is that of the op of its class (module_work.py); the work of an op is its own.  Unknown quantities are
left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...adapters.counters.bridge import known_work
from ...adapters.counters.module_work import GATES, own_work
from ...core.records import Op
from ...work import UnknownWork, Work, known_shape, prod

SIZES = ("input", "output", "bias", "parameters", "output_products", "cells")
"""Elements of the first input and of the output, biases that are added, parameters times output positions; for a convolution
of any kind, a product with the whole filter at every element of the output; for a recurrent layer, its units at every step."""


def quantities(op: Op) -> dict[str, int]:
    """Each known quantity of one call by its name; ``mac`` to ``special`` are the components of its work."""
    work = own_work(op) if op.op.startswith("torch.nn.") else known_work(op)
    found = {} if work is None else dict(work.items())
    for name, measure in (("input", op.inputs[:1]), ("output", op.outputs[:1])):
        try:
            found[name] = prod(known_shape(measure[0].shape))
        except (UnknownWork, IndexError):
            continue
    weight, bias = op.attrs.get("weight"), op.attrs.get("bias")
    if "output" in found and isinstance(weight, list | tuple) and isinstance(op.outputs[0].shape, tuple):
        found |= _weighted_quantities(op, found["output"], tuple(map(int, weight)), isinstance(bias, list | tuple))
    hidden = op.attrs.get("hidden_size")
    if isinstance(hidden, int) and "input" in found:
        steps = found["input"] // op.attrs["input_size"]
        directions = 2 if op.attrs.get("bidirectional") else 1
        found["cells"] = steps * hidden * directions * op.attrs.get("num_layers", 1)
        found["bias"] = 2 * _gates(op) * found["cells"] if op.attrs.get("bias") else 0
    return found


def _gates(op: Op) -> int:
    name = op.op.rpartition(".")[2].removesuffix("Cell")
    return GATES.get(name, 0)


def _weighted_quantities(op: Op, elements: int, weight: tuple[int, ...], bias: bool) -> dict[str, int]:
    convolves = len(weight) > 2
    shape = op.outputs[0].shape or ()
    channels = shape[1 if convolves else -1] if len(shape) > 1 else None
    weighted = {"bias": elements if bias else 0}
    if channels:
        weighted["parameters"] = elements // channels * (prod(weight) + (channels if bias else 0))
    if convolves and "groups" in op.attrs and "in_channels" in op.attrs:
        weighted["output_products"] = elements * (op.attrs["in_channels"] // op.attrs["groups"]) * prod(weight[2:])
    return weighted


def total(amounts: Iterable[tuple[dict[str, int], int]]) -> dict[str, int]:
    """Sum the quantities of several calls, each times its count; only quantities that all calls have."""
    parts = list(amounts)
    names = set.intersection(*(set(part) for part, _ in parts)) if parts else set()
    return {name: sum(part[name] * times for part, times in parts) for name in sorted(names)}


def work_component(name: str) -> str:
    """The component of work as which a draft books a quantity."""
    if name == "output_products":
        return "mac"
    return name if name in dict(Work().items()) else "add"
