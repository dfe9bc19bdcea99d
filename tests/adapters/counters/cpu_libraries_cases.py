"""Lines of MKL's and oneDNN's log by hand: an op is counted by what the libraries wrote while it ran."""

from __future__ import annotations

from reconcile.adapters.counters.cpu_libraries import PRODUCTS
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES = ("2.13.0",)


def gemm(m: int, n: int, k: int) -> list[object]:
    return ["SGEMM", {"m": m, "n": n, "k": k}, "", "f32"]


ONE = op("aten.mm", [(2, 3), (3, 5)], [(2, 5)], **{PRODUCTS: [gemm(5, 2, 3)]})
TWO = op(
    "aten.scaled_dot_product_attention",
    [(1, 1, 4, 3)] * 3,
    [(1, 1, 4, 3)],
    **{PRODUCTS: [gemm(4, 4, 3), gemm(3, 4, 4)]},
)
CASES = (
    Case(ONE, RELEASES, 2 * 3 * 5, Work(mac=2 * 3 * 5)),
    Case(TWO, RELEASES, 2 * 4 * 4 * 3, Work(mac=2 * 4 * 4 * 3)),
)
FAMILIES = {"cpu_libraries": (RELEASES, CASES)}
