"""Lines of oneDNN's log by hand: an op of TensorFlow is counted by what was written below its node."""

from __future__ import annotations

from reconcile.adapters.counters.cpu_libraries import PRODUCTS
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES = ("2.21.0",)

WHOLE = op(
    "MatMul", [(2, 3), (3, 5)], [(2, 5)], **{PRODUCTS: [["gemm_api", {"b": 1, "m": 2, "n": 5, "k": 3}, "", "f32"]]}
)
LAYER = op(
    "MatMul",
    [(8, 64), (64, 128)],
    [(8, 128)],
    **{PRODUCTS: [["inner_product", {"m": 8, "n": 128, "k": 64}, "", "f32"]]},
)
BLOCKS = op(
    "MatMul",
    [(7, 3), (3, 5)],
    [(7, 5)],
    **{PRODUCTS: [["gemm_api", {"b": 1, "m": rows, "n": 5, "k": 3}, "", "f32"] for rows in (4, 3)]},
)
CASES = (
    Case(WHOLE, RELEASES, 2 * 3 * 5, Work(mac=2 * 3 * 5)),
    Case(LAYER, RELEASES, 8 * 64 * 128, Work(mac=8 * 64 * 128)),
    Case(BLOCKS, RELEASES, 7 * 3 * 5, Work(mac=7 * 3 * 5)),
)
FAMILIES = {"tf_libraries": (RELEASES, CASES)}
