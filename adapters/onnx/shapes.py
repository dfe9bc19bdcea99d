"""Shape inference of an ONNX model whose inputs load.py has fixed: ONNX's own, with constants for nodes that compute sizes.

Exporters compute paddings and sizes with nodes (Shape, Slice, Concat, ...) that inference does not follow to the end. In a
copy of the model, ONNX's reference implementation evaluates such nodes and constants replace them; the model itself keeps
its nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .external_data import value_of
from .microsoft import state_standard

FOLDED = frozenset((
    "Shape", "Size", "Constant", "Identity", "Cast", "CastLike", "Gather", "Slice", "Concat", "Reshape", "Squeeze", "Unsqueeze",
    "Transpose", "Split", "Add", "Sub", "Mul", "Div", "Mod", "Neg", "Min", "Max", "Floor", "Ceil", "Sqrt",
    "ReduceProd", "ReduceSum", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Not", "And", "Or",
    "Where", "ConstantOfShape", "Expand", "Range",
))  # fmt: skip
"""Operators that compute sizes; for the last three, the size of the output depends on a value."""
ELEMENTS = 4096
"""The largest number of elements of a value that is evaluated: sizes have few."""
ROUNDS = 20


def infer_types(proto: Any) -> dict[str, Any]:
    """Write the types of a model's values into it. Returns its values that can be computed, as tensors. Raises the errors of
    ONNX's inference."""
    import onnx

    constants: dict[str, Any] = {}
    known = onnx.ModelProto()
    known.CopyFrom(proto)
    state_defaults(known)
    state_standard(known.graph)
    for _ in range(ROUNDS):
        known = onnx.shape_inference.infer_shapes(known, strict_mode=True, data_prop=True)
        if not _fold_constants(known, constants):
            break
    del proto.graph.value_info[:]
    proto.graph.value_info.extend(known.graph.value_info)
    for value, typed in zip(proto.graph.output, known.graph.output):  # noqa: B905
        value.CopyFrom(typed)
    bodies = {node.output[0]: node for node in known.graph.node if node.output}
    for node in proto.graph.node:
        typed = bodies.get(node.output[0], node) if node.output else node
        if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in typed.attribute):
            node.CopyFrom(typed)  # with the types inside
    return constants


def state_defaults(proto: Any) -> None:
    """Write the defaults of attributes into the nodes of operators that ONNX defines by other operators, in place: its inference
    reads the function without them."""
    import onnx

    opsets = {opset.domain: opset.version for opset in proto.opset_import}
    for node in proto.graph.node:
        try:
            schema = onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
        except onnx.defs.SchemaError:
            continue
        if schema.has_function or schema.has_context_dependent_function:
            stated = {attribute.name for attribute in node.attribute}
            defaults = (a.default_value for name, a in schema.attributes.items() if name not in stated)
            node.attribute.extend(default for default in defaults if default.name)


def _fold_constants(proto: Any, constants: dict[str, Any]) -> bool:
    """Replace nodes in place: by constants where they can be evaluated, an If whose condition is one by the branch that it runs.
    Adds them to ``constants``. True if a node was replaced."""
    import onnx

    graph, folded = proto.graph, False
    shapes = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(d.HasField("dim_value") for d in dims):
            shapes[value.name] = tuple(d.dim_value for d in dims)
    values = {tensor.name: value_of(tensor) for tensor in graph.initializer if _count_elements(tensor.dims) <= ELEMENTS}
    opsets = {opset.domain: opset.version for opset in proto.opset_import}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            if _count_elements(node.attribute[0].t.dims) <= ELEMENTS:
                values[node.output[0]] = value_of(node.attribute[0].t)
            continue
        if node.op_type in ("Shape", "Size") and node.input[0] in shapes:
            import numpy

            like = numpy.broadcast_to(numpy.float32(0), shapes[node.input[0]])  # takes no memory
            value = evaluate(node, {node.input[0]: like}, opsets)
        else:
            value = evaluate(node, values, opsets)
        if value is not None:
            values[node.output[0]] = value
            tensor = constants[node.output[0]] = onnx.numpy_helper.from_array(value)
            node.CopyFrom(onnx.helper.make_node("Constant", [], [node.output[0]], name=node.name, value=tensor))
            folded = True
    lent = [_copy_constants(inner, values) for node in graph.node for inner in graphs_of(node)]
    return _take_branches(graph, values) or any(lent) or folded


def graphs_of(node: Any) -> list[Any]:
    """The graphs that a node runs."""
    return [attribute.g for attribute in node.attribute if attribute.HasField("g")]


def _copy_constants(graph: Any, values: Mapping[str, Any]) -> bool:
    """Copy the constants that a graph inside a node reads from around it into it, as inference reads its own graph alone."""
    import onnx

    inner = [_copy_constants(each, values) for node in graph.node for each in graphs_of(node)]
    own = {name for node in graph.node for name in node.output}
    own |= {value.name for value in (*graph.input, *graph.initializer)}
    wanted = {name for node in graph.node for name in node.input if values.get(name) is not None} - own
    graph.initializer.extend(onnx.numpy_helper.from_array(values[name], name) for name in sorted(wanted))
    return bool(wanted) or any(inner)


def _take_branches(graph: Any, values: Mapping[str, Any]) -> bool:
    """Put the nodes of a branch that a constant chooses in the place of the choice, unless they reuse a name."""
    import onnx

    nodes: list[Any] = []
    names = {name for node in graph.node for name in node.output}
    for node in graph.node:
        chosen = values.get(node.input[0]) if node.op_type == "If" else None
        which = {attribute.name: attribute.g for attribute in node.attribute}
        branch = None if chosen is None else which["then_branch" if chosen.item() else "else_branch"]
        own = set() if branch is None else {name for each in branch.node for name in each.output}
        if branch is None or names & own:
            nodes.append(node)
            continue
        names |= own
        graph.initializer.extend(branch.initializer)
        results = zip(branch.output, node.output)  # noqa: B905
        nodes += [*branch.node, *(onnx.helper.make_node("Identity", [a.name], [b]) for a, b in results)]
    taken = len(nodes) != len(graph.node)
    if taken:
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del graph.node[:]
        graph.node.extend(copies)
    return taken


def _count_elements(dims: Any) -> int:
    count = 1
    for size in dims:
        count *= int(size)
    return count


def _has_few_elements(node: Any, given: dict[str, Any]) -> bool:
    """Whether the output of a node has at most ELEMENTS elements."""
    values = list(given.values())
    if node.op_type == "ConstantOfShape":
        return _count_elements(values[0].tolist()) <= ELEMENTS
    if node.op_type == "Expand":
        return _count_elements(values[1].tolist()) <= ELEMENTS
    if node.op_type == "Range":
        start, limit, delta = (float(value.reshape(-1)[0]) for value in values)
        return delta != 0 and abs(limit - start) / abs(delta) <= ELEMENTS
    return True


def evaluate(node: Any, values: Mapping[str, Any], opsets: Mapping[str, int]) -> Any:
    """The one output of a node that computes sizes, by ONNX's reference implementation: an array of at most ELEMENTS elements.
    None if one of its inputs is not among the ``values``, or it cannot be evaluated."""
    import numpy
    import onnx
    from onnx.reference import ReferenceEvaluator

    given: dict[str, Any] = {name: values.get(name) for name in node.input if name}
    known = node.domain in ("", "ai.onnx") and node.op_type in FOLDED and len(node.output) == 1
    if not known or any(value is None for value in given.values()):
        return None
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in given.items()
    ]
    graph = onnx.helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name=node.output[0])])
    imported = [onnx.helper.make_opsetid(*item) for item in opsets.items()]
    try:
        if not _has_few_elements(node, given):
            return None
        (value,) = ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=imported)).run(None, given)
        return numpy.asarray(value) if numpy.size(value) <= ELEMENTS else None
    except Exception:  # a node that it cannot evaluate stays as it is
        return None
