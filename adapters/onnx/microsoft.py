"""Operators of ONNX Runtime (com.microsoft) that do what a standard operator does to some of their inputs, as data.

Their shapes are inferred, and their products counted, as that operator's are.
"""

from __future__ import annotations

from typing import Any

MICROSOFT = "com.microsoft"

STANDARD: dict[str, tuple[str, slice]] = {
    "QLinearConv": ("Conv", slice(0, 4, 3)),
    "QGemm": ("Gemm", slice(0, 4, 3)),
    "MatMulIntegerToFloat": ("MatMul", slice(2)),
    "DynamicQuantizeMatMul": ("MatMul", slice(2)),
    "QLinearAdd": ("Add", slice(0, 4, 3)),
    "QLinearMul": ("Mul", slice(0, 4, 3)),
    "QLinearConcat": ("Concat", slice(2, None, 3)),
    "QLinearAveragePool": ("AveragePool", slice(1)),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", slice(1)),
    **dict.fromkeys(("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"), ("Identity", slice(1))),
    **{name: (name, slice(None)) for name in ("QuantizeLinear", "DequantizeLinear")},
}
"""Operator -> the standard one, and which inputs that has: the others are scales and zero points."""


def state_standard(graph: Any) -> None:
    """Put standard operators of the same shapes in the place of ONNX Runtime's, where there are any. A node without the inputs
    or attributes of its operator stays as it is: ONNX's checker does not know them."""
    nodes: list[Any] = []
    for node in graph.node:
        try:
            nodes += _standard(node, graph) if node.domain == MICROSOFT else [node]
        except (LookupError, TypeError, ValueError):
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _standard(node: Any, graph: Any) -> list[Any]:
    from onnx import TensorProto, helper

    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    name, inputs, outputs = node.op_type, list(node.input), node.output[:1]
    if name == "MatMulNBits":
        weight = f"{outputs[0]}/weight"
        graph.input.append(helper.make_tensor_value_info(weight, TensorProto.FLOAT, [given["K"], given["N"]]))
        return [helper.make_node("MatMul", [inputs[0], weight], outputs)]
    if name == "FusedMatMul" and not (given.get("transBatchA") or given.get("transBatchB")):
        turned = [i for i, flag in enumerate(("transA", "transB")) if given.get(flag)]
        nodes = [
            helper.make_node("Einsum", [inputs[i]], [f"{outputs[0]}/{i}"], equation="...km->...mk") for i in turned
        ]
        operands = [f"{outputs[0]}/{i}" if i in turned else inputs[i] for i in range(2)]
        return [*nodes, helper.make_node("MatMul", operands, outputs)]
    if name in STANDARD and not given.get("channels_last"):
        standard, chosen = STANDARD[name]
        return [helper.make_node(standard, inputs[chosen], outputs, **given)]
    return [node]
