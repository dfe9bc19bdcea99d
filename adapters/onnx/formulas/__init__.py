"""Work formulas of ONNX operators ("onnx.<op_type>"), by the definitions in https://onnx.ai/onnx/operators.

Operators of the default domain have them, and some of com.microsoft. They use the functions of reconcile/work, as the formulas
of other frameworks do.
Inputs are in signature order; an omitted input is None in attrs under its name, and attributes are there under their names.
"""

from __future__ import annotations

from . import elementwise, layers, moves, quantized, runtime_attention  # noqa: F401
