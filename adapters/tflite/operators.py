"""TensorFlow Lite's operators by the op of TensorFlow that each is: its name, its attributes and the order of its filter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# TensorFlow Lite's name -> TensorFlow's, where they differ by more than case and underscores.
_NAMES = {
    "ADD": "AddV2", "ASSIGN_VARIABLE": "AssignVariableOp", "AVERAGE_POOL_2D": "AvgPool", "BATCH_MATMUL": "BatchMatMulV2",
    "CALL": "PartitionedCall", "CONCATENATION": "ConcatV2", "CONV_3D_TRANSPOSE": "Conv3DBackpropInputV2",
    "DEPTHWISE_CONV_2D": "Conv2D", "FAKE_QUANT": "FakeQuantWithMinMaxVars", "GATHER": "GatherV2",
    "HASHTABLE_FIND": "LookupTableFindV2", "HASHTABLE_SIZE": "LookupTableSizeV2", "LOGISTIC": "Sigmoid", "MAX_POOL_2D": "MaxPool",
    "PRELU": "LeakyRelu", "READ_VARIABLE": "ReadVariableOp", "REDUCE_ALL": "All", "REDUCE_ANY": "Any", "REDUCE_MAX": "Max",
    "REDUCE_MIN": "Min", "REDUCE_PROD": "Prod", "RELU_0_TO_1": "ClipByValue", "RELU_N1_TO_1": "ClipByValue",
    "STABLEHLO_COMPOSITE": "PartitionedCall", "TRANSPOSE_CONV": "Conv2DBackpropInput", "VAR_HANDLE": "VarHandleOp",
}  # fmt: skip

FILTERS = {"CONV_2D": (1, 2, 3, 0), "DEPTHWISE_CONV_2D": (1, 2, 0, 3), "TRANSPOSE_CONV": (1, 2, 0, 3)}
"""Operator -> the axes of its filter, input 1, in the order of TensorFlow's (*kernel, read channels, written channels)."""

ACTIVATIONS = ("", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
"""ActivationFunctionType of the schema, in its order."""


def spell(name: str) -> str:
    """The letters of TensorFlow's name for an operator, in lower case."""
    return _NAMES.get(name, name.replace("_", "")).lower()


def attributes(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an operator in plain values: by their names in snake case, and by TensorFlow's where it has others."""
    found = {re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", name): _plain(value) for name, value in options.items()}
    found = {name: value for name, value in found.items() if value is not None and not name.endswith("_type")}
    for name, prefix, suffix in (
        ("strides", "stride_", ""),
        ("ksize", "filter_", ""),
        ("dilations", "dilation_", "_factor"),
    ):
        sides = [found.get(f"{prefix}{side}{suffix}") for side in (("height", "width") if name == "ksize" else "dhw")]
        if sides[-1] is not None:
            found[name] = [1, *(side for side in sides if side is not None), 1]
    for name, words in (("padding", ("SAME", "VALID")), ("fused_activation_function", ACTIVATIONS)):
        if isinstance(found.get(name), int):
            found[name] = dict(enumerate(words)).get(found[name], "unknown")
    if "squeeze_dims" in found:
        found["axis"] = found["squeeze_dims"]
    return found


def _plain(value: Any) -> Any:
    """A number, a text, or a list of whole numbers; None for anything else."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (bool, int, float, str)):
        return value
    try:
        return [int(item) for item in value]
    except (TypeError, ValueError):
        return None
