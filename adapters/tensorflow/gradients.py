"""Records, while a graph is built, which of its ops compute the gradient of which forward op.

TensorFlow calls every gradient function of a registered op at one place for tapes and one for ``tf.gradients`` (inside
function bodies), and receives every custom gradient function when its forward op is recorded. The ops that such a function
adds to the graph, its inputs and its results are all that the phases of a training step need (phases.py): no name is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple


class Call(NamedTuple):
    """One gradient function's work.

    Attributes:
        graph: The graph that has its ops.
        start: The number of the first of its ops in the graph.
        end: The number after the last of them.
        forward: The forward op's name.
        inputs: The forward op's input tensors.
        outputs: The forward op's output tensors.
        results: The gradients with respect to each input, in their order: () where there is none, several of sparse rows.
        received: The gradients with respect to the outputs, where known.
    """

    graph: Any
    start: int
    end: int
    forward: str
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    results: tuple[tuple[Any, ...], ...]
    received: tuple[Any, ...]


def size(graph: Any) -> int:
    """Number of ops in a graph."""
    return int(graph.num_operations())


def parts(value: Any) -> tuple[Any, ...]:
    """The tensors of a gradient: none, one, or those of sparse rows."""
    import tensorflow as tf

    if value is None:
        return ()
    return tuple(t for t in tf.nest.flatten(value, expand_composites=True) if hasattr(t, "op"))


class Calls:
    """Notes the calls of gradient functions, in order, and finds the forward op of each."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._forward: dict[str, Any] = {}  # op by its token

    def note_gradient(
        self, graph: Any, op: tuple[str, Any, Any], compute: Callable[[], Any], received: Sequence[Any]
    ) -> Any:
        """The result of ``compute()``; the ops that it adds are noted as the gradient of ``op``: name, inputs and outputs."""
        start = size(graph)
        results = compute()
        several = list(results) if isinstance(results, (list, tuple)) else [results]
        gradients = tuple(parts(r) for r in several)
        name, inputs, outputs = op
        arrived = tuple(t for r in received for t in parts(r))
        self.calls.append(Call(graph, start, size(graph), name, tuple(inputs), tuple(outputs), gradients, arrived))
        return results

    def token(self, op: Any) -> str:
        """A token for a forward op, valid until its gradient is computed."""
        name = f"{id(op.graph)}/{op.name}"
        self._forward[name] = op
        return name

    def of(self, token: str) -> Any:
        """The forward op of a token, or None."""
        return self._forward.get(token)


@contextmanager
def noted_gradients() -> Iterator[Calls]:
    """Within this block every gradient added to a graph is noted. Raises ImportError if TensorFlow lacks these internals."""
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import backprop, execute, record
    from tensorflow.python.framework import ops
    from tensorflow.python.ops import gradients_util

    calls = Calls()
    gradient, recording = backprop._gradient_function, execute.record_gradient
    operation, compiled = record.record_operation, gradients_util._MaybeCompile

    def record_gradient(name: str, inputs: Any, attrs: Any, outputs: Any) -> Any:
        made = outputs[0] if isinstance(outputs, (list, tuple)) and outputs else outputs
        if made is None or not hasattr(made, "op") or hasattr(made, "numpy"):
            return recording(name, inputs, attrs, outputs)
        scope = calls.token(made.op) + "@" + ops.get_name_scope()
        return pywrap_tfe.TFE_Py_RecordGradient(name, inputs, attrs, outputs, scope)

    def record_on_tape(
        name: str, attrs: Any, count: int, inputs: Any, outputs: Any, grads: Any, skip: Any, scope: Any
    ) -> Any:
        token, _, name_scope = (scope or "").rpartition("@")
        op = calls.of(token)
        plain = (name, attrs, count, inputs, outputs, grads, skip, name_scope if op is not None else scope)
        if op is None:
            return gradient(*plain)
        forward = (op.name, op.inputs, op.outputs)
        return calls.note_gradient(ops.get_default_graph(), forward, lambda: gradient(*plain), grads)

    def record_operation(
        op_type: Any, output_tensors: Any, input_tensors: Any, backward_function: Any, forward_function: Any = None
    ) -> Any:
        made = next((t for t in output_tensors if not hasattr(t, "numpy")), None)
        if made is None:
            return operation(op_type, output_tensors, input_tensors, backward_function, forward_function)
        op = (made.op.name, tuple(input_tensors), tuple(output_tensors))

        def compute_noted(*grads: Any) -> Any:
            return calls.note_gradient(ops.get_default_graph(), op, lambda: backward_function(*grads), grads)

        return operation(op_type, output_tensors, input_tensors, compute_noted, forward_function)

    def maybe_compile(scope: Any, op: Any, func: Any, compute: Any) -> Any:
        forward = (op.name, op.inputs, op.outputs)
        return calls.note_gradient(ops.get_default_graph(), forward, lambda: compiled(scope, op, func, compute), ())

    execute.record_gradient, record.record_operation = record_gradient, record_operation
    gradients_util._MaybeCompile = maybe_compile
    pywrap_tfe.TFE_Py_RegisterGradientFunction(record_on_tape)
    try:
        yield calls
    finally:
        execute.record_gradient, record.record_operation = recording, operation
        gradients_util._MaybeCompile = compiled
        pywrap_tfe.TFE_Py_RegisterGradientFunction(gradient)
