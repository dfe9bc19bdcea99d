"""Formulas of collective operators such as all-reduce (torch.distributed, XLA): the work and the bytes sent of one process.

None has matrix products.  Operators that only pass values on do no arithmetic.  Operators that reduce also add, compare or
multiply: of N elements that D processes reduce in a ring, each process adds all but the chunk that it sends first,
N (D - 1) / D of them (NCCL's documentation, nccl-tests doc/PERFORMANCE.md), and all of them together N (D - 1), in a tree as
well. Where a trace does not say which processes take part, this work is unknown, and `matmul` gives it no weight.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

from ..core.records import GROUP, Op, Tensor
from ..core.work import SINGLE, ZERO, UnknownWork, Work, complex_formula, formula, no_arithmetic, numel
from .common_formulas import per_input
from .elementwise import CMP
from .shapes import n_in

_MOVING = {
    "c10d": """_allgather_base allgather allgather_coalesced allgather_into_tensor_coalesced alltoall alltoall_base barrier
    broadcast gather monitored_barrier recv recv_any_source scatter send""",
    "_c10d_functional": """_wrap_tensor_autograd all_gather_into_tensor all_gather_into_tensor_coalesced
    all_gather_into_tensor_out all_to_all_single batch_p2p_ops broadcast irecv isend wait_tensor""",
    "_c10d_functional_autograd": "all_gather_into_tensor all_to_all_single",
    "c10d_functional": """all_gather_into_tensor all_gather_into_tensor_coalesced all_to_all_single batch_p2p_ops broadcast
    irecv isend wait_tensor""",
    "fsdp": "all_gather_copy_in chunk_cat copy split_with_sizes_copy",
    "_dtensor": "shard_dim_alltoall",
    "hlo": "all-gather all-to-all collective-permute collective-broadcast",
}
_REDUCING = {
    "c10d": """_reduce_scatter_base allreduce allreduce_coalesced reduce reduce_scatter
    reduce_scatter_tensor_coalesced""",
    "_c10d_functional": """all_reduce all_reduce_coalesced reduce_scatter_tensor reduce_scatter_tensor_coalesced
    reduce_scatter_tensor_out""",
    "_c10d_functional_autograd": "reduce_scatter_tensor",
    "c10d_functional": "all_reduce all_reduce_coalesced reduce_scatter_tensor reduce_scatter_tensor_coalesced",
    "hlo": "all-reduce reduce-scatter",
}


def _join_names(spaces: dict[str, str]) -> list[str]:
    return [f"{space}.{name}" for space, names in spaces.items() for name in names.split()]


_ALL = frozenset((*_join_names(_MOVING), *_join_names(_REDUCING)))


def is_collective(op: str) -> bool:
    """Whether processes pass tensors to each other by this operator."""
    return op in _ALL


no_arithmetic("passes values from process to process, or copies them for that", *_join_names(_MOVING))

_RING_SOURCE = (
    "a ring: each process reduces N (D - 1) / D elements: nccl-tests doc/PERFORMANCE.md; no products of matrices"
)
_KINDS = {"sum": "add", "avg": "add", "product": "mul", "min": "cmp", "max": "cmp"}
_TO_ONE = ("c10d.reduce",)
"""Which process adds how much depends on the order in which they pass the sum on."""


def _ring(op: Op, each: int) -> Work:
    """``each`` single operations per element that this process reduces."""
    n_in(op)
    group = op.attrs.get(GROUP)
    kind = _KINDS.get(group["reduce"]) if group else None
    if group is None or kind is None or op.op in _TO_ONE:
        raise UnknownWork(
            f"the work of {op.op} is not fixed: the processes share it as the library that carries the tensors chooses",
            SINGLE,
        )
    size, work = len(group["ranks"]), ZERO
    for tensor in op.inputs[-len(op.outputs) :] if op.outputs and op.op in _INTO else op.inputs:
        count = numel(tensor.shape)
        chunk = count // size + (group["place"] < count % size)
        work = work + Work(**{kind: (count - chunk) * each})
        if group["reduce"] == "avg":
            work = work + Work(div=chunk)
    return work


_INTO = ("c10d._reduce_scatter_base", "c10d.reduce_scatter_tensor_coalesced")
"""Operators whose first tensors are those that they write into: the others are reduced."""


formula(*_join_names(_REDUCING), source=_RING_SOURCE)(partial(_ring, each=1))
complex_formula(*_join_names(_REDUCING), source=_RING_SOURCE)(partial(_ring, each=2))

_CHECK_SOURCE = "is it a number, each element: torch/csrc/distributed/c10d/NanCheck.cpp"
formula("c10d.check_for_nan", source=_CHECK_SOURCE)(per_input(CMP))


_SENT: dict[str, tuple[str, Callable[[int], Fraction] | None]] = {
    "all_reduce": (
        "allreduce allreduce_coalesced all_reduce all_reduce_coalesced all-reduce",
        lambda n: Fraction(2 * (n - 1), n),
    ),
    "all_gather": (
        "_allgather_base allgather allgather_coalesced allgather_into_tensor_coalesced all_gather_into_tensor "
        "all_gather_into_tensor_coalesced all_gather_into_tensor_out all-gather",
        lambda n: Fraction(n - 1),
    ),
    "reduce_scatter": (
        "_reduce_scatter_base reduce_scatter reduce_scatter_tensor_coalesced reduce_scatter_tensor reduce_scatter_tensor_out "
        "reduce-scatter",
        lambda n: Fraction(n - 1),
    ),
    "all_to_all": (
        "alltoall alltoall_base all_to_all_single shard_dim_alltoall all-to-all",
        lambda n: Fraction(n - 1, n),
    ),
    "broadcast": ("broadcast collective-broadcast", lambda _n: Fraction(1)),
    "reduce": ("reduce", lambda _n: Fraction(1)),
    "gather": ("gather", lambda _n: Fraction(1)),
    "scatter": ("scatter", None),
    "send": ("send isend", lambda _n: Fraction(1)),
    "recv": ("recv recv_any_source irecv", lambda _n: Fraction(0)),
    "p2p": ("batch_p2p_ops collective-permute", None),
}
"""Kinds of collectives, and what a process sends in a ring of n, over the bytes of its part: nccl-tests doc/PERFORMANCE.md."""


def sent_bytes(op: Op) -> tuple[str, Fraction | None] | None:
    """The kind of a collective and the bytes that this process sends in one call; None for any other operator, such as the wait
    for a result. The bytes are None where the kind does not say them."""
    space, _, name = op.op.partition(".")
    kind = next((kind for kind, (names, _) in _SENT.items() if space in _MOVING and name in names.split()), None)
    if kind is None:
        return None
    factor, size = _SENT[kind][1], len(op.attrs[GROUP]["ranks"]) if GROUP in op.attrs else 0
    part = _bytes(op.outputs if kind == "reduce_scatter" else op.inputs[-max(1, len(op.outputs)) :])
    if factor is None or not size or part is None:
        return kind, None
    return kind, factor(size) * part


def _bytes(tensors: Sequence[Tensor]) -> int | None:
    sizes = [None if t.shape is None or None in t.shape else numel(t.shape) * _width(t.dtype) for t in tensors]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _width(dtype: str) -> int:
    """Bytes of an element: ``float32`` has 4, ``float8_e4m3fn`` and ``bool`` 1."""
    bits = re.search(r"\d+", dtype)
    return int(bits[0]) // 8 if bits else 1
