"""Traces made by hand: a layer is a path and what it does, the same in either framework."""

from __future__ import annotations

from collections.abc import Iterable

from reconcile.core.records import Op, Tensor, Trace

F32 = "float32"
BATCH = 3

Layer = tuple[str, int, int]
"""Path, inputs and outputs of a dense layer; no inputs for an activation of that many elements."""


def dense(framework: str, path: str, inputs: int, outputs: int) -> Op:
    """(BATCH, inputs) x (inputs, outputs)."""
    name = "MatMul" if framework == "tf" else "aten.mm"
    tensors = (Tensor((BATCH, inputs), F32), Tensor((inputs, outputs), F32))
    return Op(f"{path}/{name}", name, path, tensors, (Tensor((BATCH, outputs), F32),), {})


def relu(framework: str, path: str, elements: int) -> Op:
    """One comparison per element."""
    name = "Relu" if framework == "tf" else "aten.relu"
    tensor = Tensor((elements,), F32)
    return Op(f"{path}/{name}", name, path, (tensor,), (tensor,), {})


def trace(framework: str, layers: Iterable[Layer]) -> Trace:
    """A trace whose layers run in this order, each once."""
    ops = tuple(
        dense(framework, path, inputs, outputs) if inputs else relu(framework, path, outputs)
        for path, inputs, outputs in layers
    )
    return Trace(framework, {}, "", ops, (), (), tuple(dict.fromkeys(op.layer for op in ops)), ())


def pair(tf: Iterable[Layer], torch: Iterable[Layer]) -> tuple[Trace, Trace]:
    return trace("tf", tf), trace("torch", torch)
