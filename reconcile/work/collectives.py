"""Operators by which processes pass tensors to each other (torch.distributed): one part of the processes' work, as this one
runs it.

None has products of matrices.  Operators that only pass values on do no arithmetic.  Operators that reduce also add, compare or
multiply, and the library that carries them (a ring, a tree, a switch) decides how much of that each process does: under `matmul`
their work is known, and under others the trace names them as unknown.
"""

from __future__ import annotations

from ..core.records import Op
from ..core.work import SINGLE, UnknownWork, Work, complex_formula, formula, no_arithmetic
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
}
_REDUCING = {
    "c10d": """_reduce_scatter_base allreduce allreduce_coalesced reduce reduce_scatter
    reduce_scatter_tensor_coalesced""",
    "_c10d_functional": """all_reduce all_reduce_coalesced reduce_scatter_tensor reduce_scatter_tensor_coalesced
    reduce_scatter_tensor_out""",
    "_c10d_functional_autograd": "reduce_scatter_tensor",
    "c10d_functional": "all_reduce all_reduce_coalesced reduce_scatter_tensor reduce_scatter_tensor_coalesced",
}


def _named(spaces: dict[str, str]) -> list[str]:
    return [f"{space}.{name}" for space, names in spaces.items() for name in names.split()]


no_arithmetic("passes values from process to process, or copies them for that", *_named(_MOVING))

_SOURCE = "no products of matrices; which process reduces how much is the library's choice: torch/csrc/distributed/c10d/Ops.cpp"


@complex_formula(*_named(_REDUCING), source=_SOURCE)
@formula(*_named(_REDUCING), source=_SOURCE)
def _reduced(op: Op) -> Work:
    n_in(op)
    raise UnknownWork(
        f"the work of {op.op} is not fixed: the processes share it as the library that carries the tensors chooses",
        SINGLE,
    )


@formula("c10d.check_for_nan", source="is it a number, each element: torch/csrc/distributed/c10d/NanCheck.cpp")
def _check(op: Op) -> Work:
    return CMP * n_in(op)
