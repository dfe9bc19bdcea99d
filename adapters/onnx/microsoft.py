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
    "FusedConv": ("Conv", slice(2)),
    "FusedGemm": ("Gemm", slice(2)),
    **dict.fromkeys(
        (
            *("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "BiasGelu", "FastGelu", "Gelu", "QuickGelu"),
            *("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"),
        ),
        ("Identity", slice(1)),
    ),
    **{name: (name, slice(None)) for name in ("QuantizeLinear", "DequantizeLinear")},
}
"""Operator -> the standard one, and which inputs that has: the others are scales, zero points, or what is added."""


INPUTS = {
    "Attention": "input weights bias mask_index past attention_bias past_sequence_length",
    "MultiHeadAttention": "query key value bias key_padding_mask attention_bias past_key past_value past_sequence_length "
    "cache_indirection",
    "GroupQueryAttention": "query key value past_key past_value seqlens_k total_sequence_length cos_cache sin_cache position_ids "
    "attention_bias head_sink k_scale v_scale q_norm_weight k_norm_weight query_seqlens",
}
"""Operator whose inputs may be left out -> their names, by ONNX Runtime's schema (1.32), with spaces."""


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
    if name in ("MatMulNBits", "Attention"):
        weight = f"{outputs[0]}/weight"
        if name == "Attention":
            (given["K"], columns), *_ = (each.dims for each in graph.initializer if each.name == inputs[1])
            given["N"] = given.get("qkv_hidden_sizes", [columns // 3])[-1]
        graph.input.append(helper.make_tensor_value_info(weight, TensorProto.FLOAT, [given["K"], given["N"]]))
        return [helper.make_node("MatMul", [inputs[0], weight], outputs)]
    if name == "FusedMatMul":
        operands = [f"{outputs[0]}/A", f"{outputs[0]}/B"]
        return [
            *(
                helper.make_node("Einsum", [inputs[i]], [operands[i]], equation=_turn(given, side))
                for i, side in enumerate("AB")
            ),
            helper.make_node("MatMul", operands, outputs),
        ]
    if name in ("MultiHeadAttention", "GroupQueryAttention") and inputs[1]:
        return [helper.make_node("Identity", inputs[:1], outputs)]
    if name in STANDARD and not given.get("channels_last"):
        standard, chosen = STANDARD[name]
        if standard == "Identity":  # the fourth result of a norm is its input and the skip
            return [helper.make_node(standard, inputs[:1], [each]) for each in node.output[::3] if each]
        return [helper.make_node(standard, inputs[chosen], outputs, **given)]
    return [node]


def _turn(given: dict[str, Any], side: str) -> str:
    """How an operand becomes (*, rows, columns): ``trans`` changes these two, ``transBatch`` has the first before the batch."""
    first, last = "ji" if given.get(f"trans{side}") else "ij"
    return f"{first}...{last}->...ij" if given.get(f"transBatch{side}") else f"...{first}{last}->...ij"
