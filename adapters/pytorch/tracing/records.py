"""What a record of a PyTorch call holds: shapes, dtypes and plain arguments, and what its counts are read from.

The latter are the stored values of a sparse tensor and their pairs in a product (``sparse_product_counts``), the FLOPs by a
library's own formula (``registered_flops``), the storage of a tensor, and whether a product is added in place.  Python 3.8,
torch 1.x and later.
"""

import sys
from functools import lru_cache
from typing import Any, List, Optional, Tuple

import torch

from ....core.records import Shape, Tensor
from ..module_tensors import is_lazy


def tensor_record(tensor: torch.Tensor) -> Tensor:
    """Shape and dtype of a tensor."""
    return Tensor(_shape(tensor), _dtype(tensor.dtype))


@lru_cache(maxsize=None)
def _dtype(dtype: Any) -> str:
    return str(dtype).replace("torch.", "")


def _shape(tensor: torch.Tensor) -> Shape:
    """The sizes; of a nested tensor those of all its rows together, as it keeps them; None of a weight before its first
    value, and of a tensor that is nested with parts of differing sizes."""
    if is_lazy(tensor):
        return None
    if not getattr(tensor, "is_nested", False):
        return tuple(map(int, tensor.shape))
    if tensor.layout is not torch.strided:
        return tuple(int(s) for s in tensor.values().shape)
    parts = part_sizes(tensor) or []
    if len({tuple(part[1:]) for part in parts}) != 1:
        return None
    return (sum(part[0] for part in parts),) + tuple(parts[0][1:])


def part_sizes(tensor: torch.Tensor) -> Optional[List[List[int]]]:
    """The sizes of each part of a nested tensor; None of another, and of one of jagged layout, whose parts lie in one tensor."""
    if not getattr(tensor, "is_nested", False) or tensor.layout is not torch.strided:
        return None
    sizes: List[List[int]] = tensor._nested_tensor_size().tolist()
    return sizes


ACCUMULATING_PRODUCTS = ("addbmm", "addmm", "addmv", "addr", "baddbmm")
"""Products that are added to a tensor, and that may be written into it: ``addmm_``."""


def is_in_place(name: str) -> bool:
    """Whether it is the name of a product that is added to a tensor in place (``addmm_``)."""
    return name.endswith("_") and name[:-1] in ACCUMULATING_PRODUCTS


SPARSE_LAYOUTS = frozenset(
    getattr(torch, "sparse_" + name) for name in ("coo", "csr", "csc", "bsr", "bsc") if hasattr(torch, "sparse_" + name)
)


def stored_values(tensor: torch.Tensor) -> Optional[int]:
    """How many values a sparse tensor keeps; None of a dense one."""
    if tensor.layout not in SPARSE_LAYOUTS:
        return None
    values = tensor._values() if tensor.layout is torch.sparse_coo else tensor.values()
    return int(values.numel())


def sparse_product_counts(tensors: List[torch.Tensor], out: Any) -> Optional[List[int]]:
    """For a product of two sparse matrices, the last two of these: how many pairs of values have the column of the first and
    the row of the second in common, and how many results their products add up to.  None of other tensors."""
    factors = tensors[-2:]
    if len(factors) < 2 or any(t.layout not in SPARSE_LAYOUTS or t.dim() != 2 or t.is_meta for t in factors):
        return None
    with _unseen():
        pairs = int((_values_per_row_or_column(factors[0], 1) * _values_per_row_or_column(factors[1], 0)).sum())
        results = stored_values(out)
    return [pairs, pairs if results is None else min(pairs, results)]


def _values_per_row_or_column(tensor: torch.Tensor, axis: int) -> torch.Tensor:
    """How many values each column (axis 1) or row of a sparse matrix has; several at one place are added before a product."""
    indices = tensor.detach().to_sparse_coo().coalesce().indices()
    return torch.bincount(indices[axis], minlength=tensor.shape[axis])


def _unseen() -> Any:
    """A context in which no mode sees a call."""
    modes: Any = sys.modules.get("torch.utils._python_dispatch")
    return modes._disable_current_modes()


def registered_flops(func: Any, args: Any, kwargs: Any, out: Any) -> Optional[int]:
    """FLOPs of this call by the formula that its library registered (torch.utils.flop_counter.register_flop_formula), or None.

    PyTorch's own operators are left to this tool's own formulas. A formula that fails or returns another thing than a count
    gives None.
    """
    module: Any = sys.modules.get("torch.utils.flop_counter")
    if module is None or func.namespace in ("aten", "prims"):
        return None
    formula = getattr(module, "flop_registry", {}).get(getattr(func, "overloadpacket", None))
    if formula is None:
        return None
    try:
        flops = formula(*args, **dict(kwargs, out_val=out))
    except Exception:  # a library's own code
        return None
    return flops if isinstance(flops, int) and not isinstance(flops, bool) and flops >= 0 else None


def tensors_in(value: Any) -> List[torch.Tensor]:
    """Tensors in a value, a tuple or a list, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in tensors_in(item)]
    return []


def storage_of(tensor: torch.Tensor) -> Tuple[Any, Any]:
    """The storage's id, and the storage, to keep it alive; None of a tensor without one."""
    try:
        held = tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # sparse and wrapped tensors have none
        return None, None
    return held._cdata, held


def plain(value: Any) -> Any:
    """A non-tensor argument as a JSON value."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value if not isinstance(value, float) or (value == value and abs(value) != float("inf")) else str(value)
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return str(value)
