"""Formulas of collective operators such as all-reduce (torch.distributed, XLA): the work of one process.

None has matrix products.  Operators that only pass values on do no arithmetic.  Operators that reduce also add, compare or
multiply: of N elements that D processes reduce in a ring, each process adds all but the chunk that it sends first,
N (D - 1) / D of them (NCCL's documentation, nccl-tests doc/PERFORMANCE.md), and all of them together N (D - 1), in a tree as
well. Where a trace does not say which processes take part, this work is unknown, and `matmul` gives it no weight.
"""

from __future__ import annotations

from ...core.records import GROUP, Op
from ...core.work import SINGLE_COMPONENTS, ZERO, UnknownWork, Work, complex_formula, formula, no_arithmetic, numel
from ...work.common_formulas import per_input
from ...work.elementwise import CMP
from ...work.shapes import n_in

MOVING = {
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
"""Operators that only pass values on, by namespace."""
REDUCING = {
    "c10d": """_reduce_scatter_base allreduce allreduce_coalesced reduce reduce_scatter
    reduce_scatter_tensor_coalesced""",
    "_c10d_functional": """all_reduce all_reduce_coalesced reduce_scatter_tensor reduce_scatter_tensor_coalesced
    reduce_scatter_tensor_out""",
    "_c10d_functional_autograd": "reduce_scatter_tensor",
    "c10d_functional": "all_reduce all_reduce_coalesced reduce_scatter_tensor reduce_scatter_tensor_coalesced",
    "hlo": "all-reduce reduce-scatter",
}
"""Operators that reduce, by namespace."""


def join_names(spaces: dict[str, str]) -> list[str]:
    """Full names of operators, from their names by namespace."""
    return [f"{space}.{name}" for space, names in spaces.items() for name in names.split()]


no_arithmetic("passes values from process to process, or copies them for that", *join_names(MOVING))

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
            SINGLE_COMPONENTS,
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


formula(*join_names(REDUCING), source=_RING_SOURCE)(lambda op: _ring(op, 1))
complex_formula(*join_names(REDUCING), source=_RING_SOURCE)(lambda op: _ring(op, 2))

_CHECK_SOURCE = "is it a number, each element: torch/csrc/distributed/c10d/NanCheck.cpp"
formula("c10d.check_for_nan", source=_CHECK_SOURCE)(per_input(CMP))
