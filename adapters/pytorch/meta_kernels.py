"""Stand-ins on meta for operators whose own meta kernels refuse what their CPU kernels compute: right shapes, no values."""

from typing import Any, List

import torch

_HELD = []  # type: List[Any]  # a registration lasts as long as its library


def register():
    # type: () -> None
    """Let this process use them; once, and as far as this PyTorch has these operators (2.5)."""
    if _HELD or not hasattr(torch.ops.aten, "_grouped_mm"):
        return
    library = torch.library.Library("aten", "IMPL")
    library.impl("_grouped_mm", grouped_mm, "Meta", allow_override=True)
    _HELD.append(library)


def grouped_mm(first, second, offs=None, bias=None, out_dtype=None):
    # type: (Any, Any, Any, Any, Any) -> Any
    """Products of groups: of bfloat16 alone by PyTorch's own kernel for meta."""
    rows, columns = first.shape[-2], second.shape[-1]
    groups = []  # type: List[int]
    if first.dim() == second.dim():
        groups = [first.shape[0] if first.dim() == 3 else offs.shape[0]]
    return first.new_empty(groups + [rows, columns], dtype=out_dtype or first.dtype)
