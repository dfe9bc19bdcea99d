"""Operators that ONNX defines by other operators: each is written out, and its work is that of what its function runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core.records import Tensor
from .load import Model, dtype_name
from .shapes import infer_types

WRITTEN_OUT = {
    "": frozenset((
        "BlackmanWindow", "CausalConvWithState", "CenterCropPad", "DynamicQuantizeLinear", "HammingWindow",
        "HannWindow", "LinearAttention", "MeanVarianceNormalization", "NegativeLogLikelihoodLoss", "ReduceLogSum",
        "RotaryEmbedding", "SoftmaxCrossEntropyLoss", "SwiGLU",
    )),
    "ai.onnx.preview": frozenset(("FlexAttention",)),
}  # fmt: skip
"""Domain -> its operators that have a function in the standard and no formula here."""


def write_out(node: Any, inputs: Iterable[tuple[str, Tensor, Any]], opsets: Mapping[str, int]) -> Model:
    """The model whose graph is a node's function: ``inputs`` are its inputs' names, their types, and their values where they are
    constants. Raises RuntimeError, ValueError or TypeError if ONNX cannot."""
    import onnx

    numbers = {dtype_name(number): number for number in reversed(onnx.TensorProto.DataType.values())}
    types, values = {}, {}
    for name, kind, value in inputs:
        types[name], values[name] = onnx.helper.make_tensor_type_proto(numbers[kind.dtype], kind.shape), value
    version = opsets.get(node.domain, 1)
    schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    if schema.has_context_dependent_function:
        given = [types.get(name, onnx.TypeProto()).SerializeToString() for name in node.input]
        data = schema.get_context_dependent_function(node.SerializeToString(), given)
    else:
        data = schema.get_function_with_opset_version(version)
    body = onnx.FunctionProto()
    body.ParseFromString(data)
    stated = {name: a.default_value for name, a in schema.attributes.items() if a.default_value.name}
    _resolve(body.node, {**stated, **{attribute.name: attribute for attribute in node.attribute}})
    graph = onnx.GraphProto(name="function", node=body.node)
    for inner, name in zip(body.input, node.input):  # noqa: B905
        if name:
            graph.input.add(name=inner).type.CopyFrom(types[name])
        if values.get(name) is not None:
            graph.initializer.add().CopyFrom(values[name])
            graph.initializer[-1].name = inner
    graph.output.extend(onnx.ValueInfoProto(name=inner) for inner, name in zip(body.output, node.output) if name)  # noqa: B905
    imported = {**opsets, **{opset.domain: opset.version for opset in body.opset_import}}
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(*item) for item in imported.items()])
    return Model(model, node.op_type, infer_types(model))


def _resolve(nodes: Iterable[Any], given: Mapping[str, Any]) -> None:
    """Put the attributes of the node that calls a function where its body names them; one that is not given is left out."""
    for node in nodes:
        stated = []
        for attribute in node.attribute:
            _resolve(attribute.g.node, given)
            if attribute.ref_attr_name in given:
                name = attribute.name
                attribute.CopyFrom(given[attribute.ref_attr_name])
                attribute.name = name
            if not attribute.ref_attr_name:
                stated.append(attribute)
        del node.attribute[:]
        node.attribute.extend(stated)
