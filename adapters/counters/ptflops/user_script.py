"""Source of the shortest user program for ptflops; ``reconcile counter reproduce`` fills in the model.

One program for each of its backends.
"""

_PROGRAM = """\
import torch
from ptflops import get_model_complexity_info

{model}
reported, _ = get_model_complexity_info(
    net, (1,), as_strings=False, print_per_layer_stat=False, input_constructor=lambda _: x, backend="BACKEND"
)
"""
PROGRAM = {f"ptflops@{backend}": _PROGRAM.replace("BACKEND", backend) for backend in ("pytorch", "aten")}
TABLE = "ptflops/pytorch_ops.py, ptflops/aten_ops.py:109"
