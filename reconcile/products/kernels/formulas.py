"""The work of a product of blocks in a kernel of Triton (tl.dot)."""

from ...core.records import Op
from ...core.work import MASKED, UnknownWork, Work, formulas
from ...work.contraction import dots
from ...work.shapes import n_out, shape

MASKS_NOT_SHOWN = (
    "a compiled kernel of Triton does not show which of its products a mask discards: with TRITON_INTERPRET=1 set before the "
    "kernel is declared, and on the CPU, they are counted; or choose the convention matmul"
)


def _multiply_blocks(op: Op) -> Work:
    # (..., M, K) x (..., K, N)
    work = dots(n_out(op), shape(op)[-1])
    if MASKED not in op.attrs:
        raise UnknownWork(MASKS_NOT_SHOWN, (MASKED,), work)
    return work + Work(masked=op.attrs[MASKED])


formulas({"tl.dot": ("a program's blocks (..., M, K) x (..., K, N): triton/language/core.py (dot)", _multiply_blocks)})
