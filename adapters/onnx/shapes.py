"""Shape inference of an ONNX model whose inputs load.py has fixed: ONNX's own, with constants for nodes that compute sizes.

Exporters compute paddings and sizes with nodes (Shape, Slice, Concat, ...) that inference does not follow to the end. In a
copy of the model, ONNX's reference implementation evaluates such nodes and constants replace them; the model itself keeps
its nodes.
"""

from __future__ import annotations

from typing import Any

from .elsewhere import value_of

FOLDED = frozenset((
    "Shape", "Size", "Constant", "Identity", "Cast", "Gather", "Slice", "Concat", "Reshape", "Squeeze", "Unsqueeze",
    "Transpose", "Split", "Add", "Sub", "Mul", "Div", "Mod", "Neg", "Min", "Max", "Floor", "Ceil", "Sqrt",
    "ReduceProd", "ReduceSum", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Not", "And", "Or",
    "Where", "ConstantOfShape", "Expand", "Range",
))  # fmt: skip
"""Operators that compute sizes; for the last three, the size of the output depends on a value."""
ELEMENTS = 4096
"""The largest number of elements of a value that is evaluated: sizes have few."""
ROUNDS = 20


def infer_types(proto: Any) -> Any:
    """The model with the types of its values. Raises the errors of ONNX's inference."""
    import onnx

    known = onnx.ModelProto()
    known.CopyFrom(proto)
    for _ in range(ROUNDS):
        known = onnx.shape_inference.infer_shapes(known, strict_mode=True, data_prop=True)
        if not _fold(known):
            break
    del proto.graph.value_info[:]
    proto.graph.value_info.extend(known.graph.value_info)
    for value, typed in zip(proto.graph.output, known.graph.output):  # noqa: B905
        value.CopyFrom(typed)
    for node, typed in zip(proto.graph.node, known.graph.node):  # noqa: B905
        if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in typed.attribute):
            node.CopyFrom(typed)  # with the types inside
    return proto


def _fold(proto: Any) -> bool:
    """Replace the nodes that can be evaluated by constants, in place; True if there were any."""
    import onnx

    graph, folded = proto.graph, False
    shapes = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(d.HasField("dim_value") for d in dims):
            shapes[value.name] = tuple(d.dim_value for d in dims)
    values = {tensor.name: value_of(tensor) for tensor in graph.initializer if _count(tensor.dims) <= ELEMENTS}
    for node in graph.node:
        if node.domain not in ("", "ai.onnx") or node.op_type not in FOLDED or not node.output:
            continue
        if node.op_type == "Constant":
            if node.attribute[0].name == "value" and _count(node.attribute[0].t.dims) <= ELEMENTS:
                values[node.output[0]] = value_of(node.attribute[0].t)
            continue
        given = {name: values.get(name) for name in node.input if name}
        if node.op_type in ("Shape", "Size") and node.input[0] in shapes:
            import numpy

            given = {node.input[0]: numpy.broadcast_to(numpy.float32(0), shapes[node.input[0]])}  # takes no memory
        if any(value is None for value in given.values()) or not _small(node, given):
            continue
        outputs = _evaluate_node(proto, node, given)
        if len(outputs) == 1 and outputs[0].size <= ELEMENTS:
            values[node.output[0]] = outputs[0]
            made = onnx.helper.make_node(
                "Constant", [], [node.output[0]], name=node.name, value=onnx.numpy_helper.from_array(outputs[0])
            )
            node.CopyFrom(made)
            folded = True
    return folded


def _count(dims: Any) -> int:
    count = 1
    for size in dims:
        count *= int(size)
    return count


def _small(node: Any, given: dict[str, Any]) -> bool:
    """Whether the output of a node has at most ELEMENTS elements."""
    values = list(given.values())
    if node.op_type == "ConstantOfShape":
        return _count(values[0].tolist()) <= ELEMENTS
    if node.op_type == "Expand":
        return _count(values[1].tolist()) <= ELEMENTS
    if node.op_type == "Range":
        start, limit, delta = (float(value) for value in values)
        return delta != 0 and abs(limit - start) / abs(delta) <= ELEMENTS
    return True


def _evaluate_node(proto: Any, node: Any, given: dict[str, Any]) -> list[Any]:
    """The node's outputs by ONNX's reference implementation; none if it cannot evaluate the node."""
    import numpy
    import onnx
    from onnx.reference import ReferenceEvaluator

    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = onnx.helper.make_graph([node], "one", inputs, outputs)
    model = onnx.helper.make_model(graph, opset_imports=list(proto.opset_import), ir_version=proto.ir_version)
    try:
        return [numpy.asarray(value) for value in ReferenceEvaluator(model).run(None, given)]
    except Exception:  # a node that it cannot evaluate stays as it is
        return []
