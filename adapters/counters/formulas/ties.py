"""Which products of a trace read which parameter: by the module that owns it, and by the shapes of the products' tensors.

A product reads a parameter if it ran in the parameter's module (or in the module around it, for a function that is given the
weights of its children) and one of its inputs has the parameter's shape, in any order of dimensions.  The product that makes a
weight's gradient has it for its output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....core.records import WEIGHT_GRADIENT, Op, Shape, Trace
from ..bridge import by_layer, known_work

Facts = Mapping[str, Any]


def products(trace: Trace) -> list[Op]:
    """The ops that have multiply-adds."""
    return [op for op in trace.ops if (known_work(op) or _NONE).mac]


class _Nothing:
    mac = 0


_NONE: Any = _Nothing()


def _key(shape: Shape) -> tuple[int, ...]:
    return tuple(sorted(n for n in shape or () if n is not None and n != 1))


def _shapes(facts: Facts) -> set[tuple[int, ...]]:
    """The shapes under which a product may read it: an expert's share of a stack of experts, too."""
    shape: Sequence[int] = facts["shape"]
    return {_key(tuple(shape)), *([_key(tuple(shape[1:]))] if facts["routed"] else [])}


def _scopes(facts: Facts) -> Iterable[str]:
    """The modules that hold the parameter, then the modules around these."""
    owners: list[str] = facts["owners"]
    return (*owners, *(owner.rpartition(".")[0] for owner in owners))


def reads(op: Op, facts: Facts) -> bool:
    """Whether an op reads this parameter, or makes its gradient."""
    tensors = op.outputs if op.phase == WEIGHT_GRADIENT else op.inputs
    shapes = _shapes(facts)
    return any(_key(tensor.shape) in shapes for tensor in tensors)


def tied(weights: Iterable[Facts], trace: Trace) -> dict[str, list[Op]]:
    """The products that read each parameter of two or more dimensions, by the parameter's name. A product that reads several
    goes to the first of them."""
    ran = by_layer(products(trace))
    taken = set[str]()
    ops: dict[str, list[Op]] = {}
    for facts in weights:
        ops[facts["name"]] = []
        if len(facts["shape"]) < 2:
            continue
        own = [op for scope in facts["owners"] for op in ran.get(scope, ())]
        near = own or [op for scope in _scopes(facts) for op in ran.get(scope, ())]
        for op in near:
            if op.id not in taken and reads(op, facts):
                ops[facts["name"]].append(op)
                taken.add(op.id)
    return ops


def met(facts: Facts, layers: Mapping[str, list[Op]]) -> bool:
    """Whether any op of the trace read this parameter at all: by its shape, in the modules that hold it or around them."""
    shape = _key(tuple(facts["shape"]))
    return any(
        _key(tensor.shape) == shape for scope in _scopes(facts) for op in layers.get(scope, ()) for tensor in op.inputs
    )


def layer_of(op: Op, layers: Iterable[str]) -> str:
    """The layer of the network in which an op ran; '' for one outside of them."""
    return next((layer for layer in layers if f"{op.layer}.".startswith(f"{layer}.")), "")


def softmaxes(trace: Trace, layers: Sequence[str]) -> set[str]:
    """The modules inside the layers in which a softmax ran."""
    return {op.layer for op in trace.ops if "softmax" in op.op and layer_of(op, layers)}


def attends(op: Op, softmax: Iterable[str]) -> bool:
    """Whether a product is one of attention: the op says so, or the module in which it ran takes a softmax."""
    near = (layer for layer in softmax if layer == op.layer or layer.startswith(f"{op.layer}."))
    return "attention" in op.op or any(near)


def recurrent(weights: Iterable[Facts], layers: Sequence[str], trace: Trace) -> list[Op]:
    """The products inside the layers that read no parameter and are not attention's: those of a recurrence, such as a scan."""
    read = {op.id for ops in tied(weights, trace).values() for op in ops}
    softmax = softmaxes(trace, layers)
    free = [op for op in products(trace) if op.id not in read and layer_of(op, layers)]
    return [op for op in free if not attends(op, softmax)]
