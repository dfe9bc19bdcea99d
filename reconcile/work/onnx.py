"""Formulas of ONNX operators ("onnx.<op_type>" of the default domain), each by the operator's definition in
https://onnx.ai/onnx/operators: what it computes, by the same functions as the other frameworks' operators.

Inputs in signature order, those left out are None in attrs by their names; attributes by theirs.
"""

from __future__ import annotations

from . import onnx_elementwise, onnx_layers, onnx_moves  # noqa: F401
