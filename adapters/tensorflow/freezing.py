"""Freezes a concrete function by TensorFlow's own converter, without copies of large weights in its GraphDef.

A counter reads the shapes of the frozen graph, not its weights; but TensorFlow would write and read a graph with a hundred
megabytes of constants half a dozen times on the way to a function and to the profiler.  So every large constant that replaces
a variable holds one repeated value, and the real values are kept beside the graph and added for a run.  Python 3.6,
TensorFlow 2.x.
"""

import re
from contextlib import contextmanager
from typing import Any, Dict, Iterator, NamedTuple, Tuple

from ...core.framework import pause_garbage_collection
from ..shared.refusal import BeyondCounter
from .graphs import graph as tf_graph

LARGE = 4096
"""The values of variables with at least this many elements are left out; a shape or a bound has fewer."""


DECIDING = re.compile(r"^(Stateless)?(If|While|Case)$|^(Ref)?(Switch|Merge|Select)$|^_SwitchN$|^Assert$|^CheckNumerics")
"""Ops by which the values of weights could decide what runs, or whether it does."""


NEEDS = re.compile(r"Input \d+ of node (\S+) was passed .* incompatible with expected resource")
"""TensorFlow's error for an op that lost its variable."""


class Frozen(NamedTuple):
    """The frozen function (control flow lowered), its GraphDef with one repeated value for each large weight, and the real
    values as arrays by node name."""

    function: Any
    hollow: Any
    weights: Dict[str, Any]

    @property
    def decides(self) -> bool:
        """Whether the weights could determine which nodes run; if not, every node runs once for any weights."""
        bodies = [self.hollow.node] + [function.node_def for function in self.hollow.library.function]
        return any(DECIDING.match(node.op) for nodes in bodies for node in nodes)

    def with_weights(self) -> Any:
        """The GraphDef with its weights, for a run."""
        import tensorflow as tf

        graph_def = type(self.hollow)()
        graph_def.CopyFrom(self.hollow)
        for node in graph_def.node:
            if node.name in self.weights:
                node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(self.weights[node.name]))
        return graph_def


class _Hollow:
    """Replaces an array of that shape: it has one value for all elements, as a constant stores it."""

    def __init__(self, shape: Tuple[int, ...]) -> None:
        self.shape = shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy

        return numpy.zeros(1, dtype)


def freeze(concrete: Any) -> Frozen:
    """The same steps as convert_variables_to_constants_v2_as_graph (tensorflow/python/framework/convert_to_constants.py).

    Raises BeyondCounter where TensorFlow's converter cannot: it takes the variable away from an op that writes it.
    """
    try:
        return _freeze(concrete)
    except ValueError as error:
        needs = NEEDS.search(str(error))
        if needs is None:
            raise
        raise BeyondCounter(
            f"TensorFlow cannot freeze this model: {tf_graph.canonical(needs.group(1))} takes a variable, and "
            "freezing makes a constant of it"
        ) from None


def inline_calls(concrete: Any) -> Any:
    """The GraphDef that TensorFlow's converter freezes: calls are inlined and control flow is lowered."""
    from tensorflow.python.framework import convert_to_constants as convert

    return convert._run_inline_graph_optimization(concrete, True, False)


def _freeze(concrete: Any) -> Frozen:
    from tensorflow.python.framework import convert_to_constants as convert

    made = getattr(convert, "_FunctionConverterDataInEager", None) or getattr(convert, "_FunctionConverterData", None)
    if made is None or not hasattr(convert, "_replace_variables_by_constants"):  # the internals of another TensorFlow
        return Frozen(*(convert.convert_variables_to_constants_v2_as_graph(concrete) + ({},)))
    with _swiftly():
        data = made(func=concrete, lower_control_flow=True, aggressive_inlining=False)
        weights = {name: tensor.numpy for name, tensor in data.tensor_data.items() if _left_out(tensor.numpy)}
        for name, array in weights.items():
            data.tensor_data[name] = data.tensor_data[name]._replace(numpy=_Hollow(array.shape))
        graph_def, converted = convert._replace_variables_by_constants(converter_data=data)
        function = convert._construct_concrete_function(concrete, graph_def, converted)
    return Frozen(function, graph_def, weights)


def _left_out(array: Any) -> bool:
    return array.size >= LARGE and array.dtype.name in ("float16", "bfloat16", "float32", "float64")


@contextmanager
def _swiftly() -> Iterator[None]:
    """Within this block, TensorFlow makes ops without checking for a deprecated argument, which inspects the signature of
    Graph.create_op for every copied op, and Python does not collect garbage among the thousands of ops."""
    from tensorflow.python.framework import ops

    checked = ops.Graph.create_op
    with pause_garbage_collection():
        ops.Graph.create_op = getattr(checked, "__wrapped__", checked)
        try:
            yield
        finally:
            ops.Graph.create_op = checked
