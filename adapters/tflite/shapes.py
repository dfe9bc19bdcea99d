"""Open sizes of a TensorFlow Lite model, and small constants that it computes: by TensorFlow's op of the same name.

Sizes follow from TensorFlow's shape functions, in a graph that nothing runs. Constants are sizes and counters of loops: at most
ELEMENTS elements of operators in FOLDED, which TensorFlow computes.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from ...core.records import Shape
from .load import ELEMENTS, KEPT, Operator, Value
from .operators import FILTERS, spell

FOLDED = frozenset((
    "ADD", "SUB", "MUL", "DIV", "FLOOR_DIV", "FLOOR_MOD", "NEG", "MINIMUM", "MAXIMUM", "EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL",
    "GREATER", "GREATER_EQUAL", "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT", "SELECT", "SELECT_V2", "RESHAPE", "SQUEEZE",
    "EXPAND_DIMS", "TRANSPOSE", "PACK", "UNPACK", "CONCATENATION", "SPLIT", "SPLIT_V", "SLICE", "STRIDED_SLICE", "GATHER", "SUM",
    "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL", "CAST", "SHAPE",
))  # fmt: skip
"""Operators that compute sizes and counters, of no more elements than their inputs have together or as a broadcast."""
LISTS = ("PACK", "CONCATENATION", "ADD_N")
LIKE_INPUT = frozenset((
    "CAST", "QUANTIZE", "DEQUANTIZE", "PRELU", "HARD_SWISH", "GELU", "RELU_N1_TO_1", "RELU_0_TO_1", "L2_NORMALIZATION",
    "LOCAL_RESPONSE_NORMALIZATION", "FAKE_QUANT", "LEAKY_RELU", "DYNAMIC_UPDATE_SLICE",
))  # fmt: skip
"""Operators whose result has the shape of input 0."""
SEQUENCES = ("UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN", "LSTM", "RNN", "SVDF")
"""Operators whose result has all sizes of input 0 but the last, which its weights state."""


@cache
def _raw_ops() -> dict[str, Any]:
    import tensorflow as tf

    found = {name.lower(): getattr(tf.raw_ops, name) for name in dir(tf.raw_ops) if name[0] != "_"}
    return {name: (function, list(inspect.signature(function).parameters)) for name, function in found.items()}


def _call(operator: Operator, inputs: Sequence[Any]) -> list[Any]:
    """The results of TensorFlow's op for an operator, on values or on parts of a graph. Raises whatever TensorFlow raises."""
    import tensorflow as tf

    function, parameters = _raw_ops()[spell(operator.name)]
    if operator.name in FILTERS:
        inputs = [inputs[0], tf.transpose(inputs[1], FILTERS[operator.name]), *inputs[2:]]
    given = {parameters[0]: list(inputs)} if operator.name in LISTS else dict(zip(parameters, inputs))  # noqa: B905
    given.update({name: value for name, value in operator.attrs.items() if name in parameters})
    if "num_split" in parameters:
        given["num_split"] = len(operator.outputs)
    results: list[Any] = tf.nest.flatten(function(**given))
    return results


def compute(operator: Operator, inputs: Sequence[Any], shapes: Sequence[Shape], outputs: Sequence[Value]) -> list[Any]:
    """The constants that an operator makes of these values and shapes; None for each that is not known."""
    import numpy

    unknown: list[Any] = [None] * len(outputs)
    if operator.name not in FOLDED or operator.attrs.get("offset"):
        return unknown
    if operator.name == "SHAPE":
        known = bool(shapes) and shapes[0] is not None and None not in shapes[0]
        return [numpy.array(shapes[0], outputs[0].dtype)] if known else unknown
    if any(value is None for value in inputs):
        return unknown
    try:
        found = list(inputs) if operator.name == "CAST" else [each.numpy() for each in _call(operator, inputs)]
        return [
            value.astype(to.dtype) if value.size <= ELEMENTS else None for value, to in zip(found, outputs, strict=True)
        ]
    except Exception:  # what TensorFlow cannot compute stays unknown
        return unknown


def infer(
    operator: Operator,
    inputs: Sequence[Value],
    shapes: Sequence[Shape],
    values: Sequence[Any],
    declared: Sequence[Shape],
) -> list[Shape]:
    """The shapes of an operator's results: as declared, and where a size is open there, as it follows from the inputs."""
    if all(shape is not None and None not in shape for shape in declared):
        return list(declared)
    found = _from_inputs(operator, shapes, declared)
    if found is None:
        found = _by_tensorflow(operator, inputs, shapes, values) or list(declared)
    return [merge(*pair) for pair in zip(declared, [*found, *declared[len(found) :]], strict=True)]


def merge(declared: Shape, found: Shape) -> Shape:
    """A shape with the open sizes that the other knows."""
    if declared is None or found is None or len(declared) != len(found):
        return found if declared is None else declared
    return tuple(size if size is not None else other for size, other in zip(declared, found, strict=True))


def _from_inputs(operator: Operator, shapes: Sequence[Shape], declared: Sequence[Shape]) -> list[Shape] | None:
    """The shapes of those whose rule is not TensorFlow's; None for others."""
    name, first = operator.name, shapes[0] if shapes else None
    if first is None:
        return None
    if name in LIKE_INPUT or (name == "FULLY_CONNECTED" and operator.attrs.get("keep_num_dims")):
        return [first if name in LIKE_INPUT else (*first[:-1], None)]
    if name in SEQUENCES:
        return [(*first[:-1], None)]
    if name == "FULLY_CONNECTED" and None not in first and shapes[1]:
        return [(math.prod(size or 0 for size in first) // shapes[1][1], shapes[1][0])] if shapes[1][1] else None
    return None


def _by_tensorflow(
    operator: Operator, inputs: Sequence[Value], shapes: Sequence[Shape], values: Sequence[Any]
) -> list[Shape] | None:
    """The shapes by TensorFlow's shape function; None if it has none for these inputs."""
    import tensorflow as tf

    try:
        with tf.Graph().as_default():
            parts = [
                tf.constant(value)
                if value is not None
                else tf.compat.v1.placeholder(each.dtype if each.dtype in KEPT else "float32", shape)
                for each, shape, value in zip(inputs, shapes, values, strict=True)
            ]
            results = _call(operator, parts)
            return [None if each.shape.rank is None else tuple(each.shape.as_list()) for each in results]
    except Exception:  # what TensorFlow cannot infer stays open
        return None
