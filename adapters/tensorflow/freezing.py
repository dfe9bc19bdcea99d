"""Freezes a concrete function by TensorFlow's own converter, without copies of large weights in its GraphDef.

A counter reads the shapes of the frozen graph, not its weights; but TensorFlow would write and read a graph with a hundred
megabytes of constants half a dozen times on the way to a function and to the profiler.  So every large constant that replaces
a variable holds one repeated value, and the real values are kept beside the graph and added for a run.  The frozen function
also says whether the weights may steer its control flow.  ``inline_calls`` gives the graph before its variables are replaced.
Python 3.6, TensorFlow 2.x.
"""

import re
from contextlib import contextmanager
from typing import Any, Dict, Iterator, NamedTuple, Tuple

from ...core.framework import pause_garbage_collection
from ..shared.refusal import BeyondCounter
from .graphs import graph as tf_graph

MIN_ELEMENTS_LEFT_OUT = 4096
"""The values of variables with at least this many elements are left out; a shape or a bound has fewer."""


CONTROL_FLOW_OPS = re.compile(
    r"^(Stateless)?(If|While|Case)$|^(Ref)?(Switch|Merge|Select)$|^_SwitchN$|^Assert$|^CheckNumerics"
)
"""Ops by which the values of weights could decide what runs, or whether it does."""


LOST_VARIABLE_ERROR = re.compile(r"Input \d+ of node (\S+) was passed .* incompatible with expected resource")
"""TensorFlow's error for an op whose variable was replaced by a constant."""


class Frozen(NamedTuple):
    """The frozen function (control flow lowered), its GraphDef with one repeated value for each large weight, and the real
    values as arrays by node name."""

    function: Any
    graph_def_without_weights: Any
    weights: Dict[str, Any]

    @property
    def weights_may_steer_control_flow(self) -> bool:
        """Whether the weights could determine which nodes run; if not, every node runs once for any weights."""
        graph_def = self.graph_def_without_weights
        bodies = [graph_def.node] + [function.node_def for function in graph_def.library.function]
        return any(CONTROL_FLOW_OPS.match(node.op) for nodes in bodies for node in nodes)

    def with_weights(self) -> Any:
        """The GraphDef with its weights, for a run."""
        import tensorflow as tf

        graph_def = type(self.graph_def_without_weights)()
        graph_def.CopyFrom(self.graph_def_without_weights)
        for node in graph_def.node:
            if node.name in self.weights:
                node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(self.weights[node.name]))
        return graph_def


class _PlaceholderArray:
    """Replaces an array of that shape: it has one value for all elements, as a constant stores it."""

    def __init__(self, shape: Tuple[int, ...]) -> None:
        self.shape = shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        import numpy

        return numpy.zeros(1, dtype)


def freeze(concrete: Any) -> Frozen:
    """The same steps as convert_variables_to_constants_v2_as_graph (tensorflow/python/framework/convert_to_constants.py).

    Raises BeyondCounter if an op writes a variable, because the converter replaces every variable by a constant.
    """
    try:
        return _freeze(concrete)
    except ValueError as error:
        needs = LOST_VARIABLE_ERROR.search(str(error))
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

    converter_class = getattr(convert, "_FunctionConverterDataInEager", None)
    converter_class = converter_class or getattr(convert, "_FunctionConverterData", None)
    if converter_class is None or not hasattr(
        convert, "_replace_variables_by_constants"
    ):  # another TensorFlow's internals
        return Frozen(*(convert.convert_variables_to_constants_v2_as_graph(concrete) + ({},)))
    with _faster_graph_building():
        data = converter_class(func=concrete, lower_control_flow=True, aggressive_inlining=False)
        weights = {name: tensor.numpy for name, tensor in data.tensor_data.items() if _is_large_float(tensor.numpy)}
        for name, array in weights.items():
            data.tensor_data[name] = data.tensor_data[name]._replace(numpy=_PlaceholderArray(array.shape))
        graph_def, converted = convert._replace_variables_by_constants(converter_data=data)
        function = convert._construct_concrete_function(concrete, graph_def, converted)
    return Frozen(function, graph_def, weights)


def _is_large_float(array: Any) -> bool:
    return array.size >= MIN_ELEMENTS_LEFT_OUT and array.dtype.name in ("float16", "bfloat16", "float32", "float64")


@contextmanager
def _faster_graph_building() -> Iterator[None]:
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
