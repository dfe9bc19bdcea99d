"""Collectives of a trace: which operators are some, and the bytes that a process sends by each, in a ring.

The operators and their work are those of collectives.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction

from ...core.records import GROUP, Op, Tensor
from ...core.work import numel
from .collectives import MOVING, REDUCING, join_names

_ALL = frozenset((*join_names(MOVING), *join_names(REDUCING)))


def is_collective(op: str) -> bool:
    """Whether processes pass tensors to each other by this operator."""
    return op in _ALL


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
    kind = next((kind for kind, (names, _) in _SENT.items() if space in MOVING and name in names.split()), None)
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
