"""Formulas of ONNX operators ("onnx.<op_type>" of the default domain), each by the operator's definition in
https://onnx.ai/onnx/operators, with the same functions as the other frameworks' operators.

Inputs are in signature order; an omitted input is None in attrs under its name, and attributes are there under theirs.
"""

from __future__ import annotations

from . import elementwise, layers, moves  # noqa: F401
