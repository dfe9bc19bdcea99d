"""Context parallelism without a GPU: PyTorch's ring attention, registered for the CPU's attention operator.

PyTorch's ring of attention has no operator of the CPU: it knows those of CUDA (torch/distributed/tensor/experimental/
_context_parallel/_attention.py, ``_sdpa_handler``, 2.13).  Here the same ring runs on the operator of the CPU, which takes and
returns the same shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import distributed

PACKAGE = "torch.distributed.tensor.experimental"
RING = PACKAGE + "._context_parallel._attention"
PLACES = (PACKAGE, PACKAGE + "._attention", PACKAGE + "._context_parallel", RING)
STARTS = ("context_parallel", "_context_parallel_shard")
"""Functions of PyTorch's that take the mesh of such ranks first."""
SEQUENCE = 2
"""The dimension of a query, (batch, heads, positions, width), that the ranks share."""
OP = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
TENSORS = {OP: (2, 3), BACKWARD: (3, 6)}
"""How many tensors these give, and how many they take."""
ON_CPU = (
    "the ring of context_parallel ran on the CPU's operator of attention, which PyTorch's own ring lacks: its blocks and their "
    "shapes are those of the ring on a GPU, and a counter that knows a GPU's operators alone counts none of it"
)
"""Note of such a step."""


def follow_context_parallelism(
    replace: Callable[[Any, str, Callable[..., Any]], None], asking: Callable[[], Any]
) -> None:
    """Let each use of context parallelism tell its line of ranks, and run on the CPU."""

    def call_with_mesh(held: Any, mesh: Any, *args: Any, **kwargs: Any) -> Any:
        line = distributed.get_process_group_ranks(mesh.get_group())
        if line not in asking().sequences:
            asking().sequences.append(line)
        return held(mesh, *args, **kwargs)

    def enable_on_cpu(held: Any) -> None:
        held()
        _rules()

    for name in PLACES:
        try:
            module = import_module(name)
        except ImportError:
            continue
        for start in STARTS:
            replace(module, start, call_with_mesh)
    try:
        ring = import_module(RING)
        ring.custom_ops.update(dict.fromkeys(TENSORS, partial(_ring, asking)))
    except (ImportError, AttributeError):
        return
    replace(ring, "_enable_cp_dtensor_dispatcher", enable_on_cpu)


def _rules() -> None:
    """Say of the CPU's operators that ranks may share the positions of their tensors."""
    from torch.distributed.tensor._ops.utils import expand_to_full_mesh_op_strategy, register_op_strategy
    from torch.distributed.tensor.placement_types import Shard

    for op, (gives, takes) in TENSORS.items():

        def rule(schema: Any, given: int = gives, taken: int = takes) -> Any:
            shared: list[Any] = [[Shard(SEQUENCE)] * (given + taken)]
            return expand_to_full_mesh_op_strategy(
                schema.get_mesh_from_args(validate=False), schema, shared, input_index=given
            )

        register_op_strategy(op)(rule)


def _ring(asking: Callable[[], Any], op: Any, args: Any, kwargs: Any) -> Any:
    """PyTorch's ring, block by block, each by this operator: its own ``_sdpa_handler`` for operators that it does not know."""
    from torch.distributed.tensor import DTensor

    asking().ring = True
    ring: Any = import_module(RING)
    dispatcher: Any = DTensor._op_dispatcher
    info = dispatcher.unwrap_to_op_info(op, args, kwargs)
    dispatcher.sharding_propagator.propagate(info)
    names = [each.name for each in op._schema.arguments]
    given = {**dict(zip(names, info.local_args, strict=False)), **info.local_kwargs}
    group = info.compute_mesh.get_group()
    if op is OP:
        found = ring._templated_ring_attention(group, SEQUENCE, op, **given)
    else:
        gradient = given.pop("grad_out")
        found = ring._templated_ring_attention_backward(
            group, SEQUENCE, op, grad_out=gradient, grad_out_name="grad_out", **given
        )
    return dispatcher.wrap(found, info.output_sharding.output_spec)
