"""The work of torchtitan's own operator, for --formulas."""

from __future__ import annotations

from math import prod

from reconcile.work import Work, formula


@formula(
    "torchtitan.deterministic_scatter_add", source="torchtitan/ops/scatter_add.py 0.3.0: out.scatter_add(0, index, src)"
)
def scatter_add(op):
    """Each element of ``src``, the last of its inputs, is added to one of ``out``."""
    return Work(add=prod(op.inputs[-1].shape))
