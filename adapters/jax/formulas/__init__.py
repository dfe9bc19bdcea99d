"""Work formulas of JAX's primitives ("lax.<primitive>"), by their definitions in jax/_src/lax.

They use the functions of reconcile/work, which the formulas of the other frameworks use, too. Inputs are the
equation's operands in order, scalars that are written into the program included; attributes are its parameters.
"""

from __future__ import annotations

from . import elementwise, linalg, moves, products, windows  # noqa: F401
