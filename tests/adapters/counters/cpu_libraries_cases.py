"""Lines of the logs of MKL and oneDNN by hand: an op is counted by what the libraries wrote while it ran."""

from __future__ import annotations

from collections.abc import Sequence

from reconcile.adapters.counters.cpu_libraries import PRODUCTS
from reconcile.core.records import Shape
from reconcile.work import Work
from tests.adapters.counters.cases import Case, op

RELEASES, TF_RELEASES = ("2.13.0",), ("2.21.0",)


def case(
    releases: Sequence[str], macs: int, name: str, inputs: list[Shape], output: Shape, *lines: tuple[str, int, int, int]
) -> Case:
    """An op below which there are lines of this routine and these m, n and k."""
    written = [[routine, {"m": m, "n": n, "k": k}, "", "f32"] for routine, m, n, k in lines]
    return Case(op(name, inputs, [output], **{PRODUCTS: written}), releases, macs, Work(mac=macs))


HEADS = (1, 1, 4, 3)
TORCH = (
    case(RELEASES, 2 * 3 * 5, "aten.mm", [(2, 3), (3, 5)], (2, 5), ("SGEMM", 5, 2, 3)),
    case(
        RELEASES, 2 * 4 * 4 * 3, "aten.scaled_dot_product_attention", [HEADS] * 3, HEADS, ("SGEMM", 4, 4, 3), ("SGEMM", 3, 4, 4)
    ),
)  # fmt: skip
TENSORFLOW = (
    case(TF_RELEASES, 2 * 3 * 5, "MatMul", [(2, 3), (3, 5)], (2, 5), ("gemm_api", 2, 5, 3)),
    case(TF_RELEASES, 8 * 64 * 128, "MatMul", [(8, 64), (64, 128)], (8, 128), ("inner_product", 8, 128, 64)),
    # in two blocks of rows
    case(TF_RELEASES, 7 * 3 * 5, "MatMul", [(7, 3), (3, 5)], (7, 5), ("gemm_api", 4, 5, 3), ("gemm_api", 3, 5, 3)),
)
FAMILIES = {"cpu_libraries": (RELEASES, TORCH), "tf_libraries": (TF_RELEASES, TENSORFLOW)}
