"""Notes of a PyTorch trace for the report: work that depends on values (sparsity, masks), and fast paths that PyTorch may take.

``keep_fast_path`` lets PyTorch take such a path although a recorder is active.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

import torch

from ....core.records import AS_WITH_THESE, REGISTERED, STORED, Op
from . import higher_order
from .wrapped_functions import wrap_function

COUNTED_BY_STORED_VALUES = "the work on sparse tensors depends on how many values they store, and " + AS_WITH_THESE
SIZED_BY_VALUES = ("aten.nonzero", "aten.masked_select", "aten._unique2", "aten.unique_dim", "aten.unique_consecutive")
BY_VALUES = "values decide how large some tensors are (%s), and the work " + AS_WITH_THESE
OF_LIBRARY = (
    "%s is counted by the formula that its library registered with torch.utils.flop_counter, which nothing here checks, unless "
    "you give one of your own: flop_counter agrees with it because it uses the same one, so this says nothing about %s"
)
OWN = ("torch_attn.", "flash_attn.", "flashattn.")
"""Libraries' operators that home has formulas for: it reads what they registered as a counter's number alone."""
FAST_PATH = (
    "nn.MultiheadAttention is traced op by op, as hooks and traces see it; in inference mode PyTorch may run it, or the "
    "encoder layer around it, as one fused op: the same products, but only the query is scaled, and no row is tested for "
    "being masked whole"
)
PADDING_DROPPED = (
    "nn.TransformerEncoder drops the positions that its padding mask leaves out (nested tensors), as PyTorch does in inference: "
    "the mask decides how many these are"
)


def of_ways(modules: list[Any], ops: list[Op]) -> Iterator[str]:
    """Notes of ways that PyTorch may take instead, or that a value decides."""
    if any(takes_fast_path(module) for module in modules):
        yield FAST_PATH
    if any(op.op == "aten._nested_tensor_from_mask" for op in ops):
        yield PADDING_DROPPED
    if any(op.attrs.get("block_mask") for op in ops if op.op == higher_order.FLEX):
        yield higher_order.BLOCK_MASK_NOT_READ


def depends_on(ops: tuple[Op, ...]) -> Iterator[str]:
    """Notes on what the work of these ops depends on besides their shapes: stored values, and formulas of other libraries."""
    if any(STORED in op.attrs for op in ops):
        yield COUNTED_BY_STORED_VALUES
    masked = ["aten.index with a mask"] if any(map(_is_masked, ops)) else []
    sized = list(dict.fromkeys(op.op for op in ops if op.op in SIZED_BY_VALUES)) + masked
    if sized:
        yield BY_VALUES % ", ".join(sized)
    for name in dict.fromkeys(op.op for op in ops if REGISTERED in op.attrs and not op.op.startswith(OWN)):
        yield OF_LIBRARY % (name, name)


def _is_masked(op: Op) -> bool:
    """Whether it picks the elements at which a mask is true: as many as there are."""
    return op.op == "aten.index" and any(tensor.dtype == "bool" for tensor in op.inputs[1:])


def takes_fast_path(module: Any) -> bool:
    """Whether PyTorch has another path for this attention in inference mode (nn/modules/activation.py, forward)."""
    if not isinstance(module, torch.nn.MultiheadAttention):
        return False
    return module.batch_first and module.num_heads % 2 == 0 and module._qkv_same_embed_dim


PLAIN = (torch.Tensor, torch.nn.Parameter, type(None))


@contextmanager
def keep_fast_path() -> Iterator[None]:
    """Within this, a mode alone does not keep an encoder from nested tensors, nor attention from those that it is given.

    nn.TransformerEncoder packs the positions that a padding mask leaves into a nested tensor. It asks first whether anything
    overrides functions, and a recorder's own mode does; its answer would be another model than the one that runs.
    """
    encoder = getattr(torch.nn, "TransformerEncoder", None)
    attention = torch.nn.MultiheadAttention.forward.__code__
    packing = None if encoder is None else encoder.forward.__code__

    def watch(has_override: Callable[[Any], bool]) -> Callable[[Any], bool]:
        def answer_query(tensors: Any) -> bool:
            caller = sys._getframe(1).f_code
            if caller in (packing, attention) and all(type(tensor) in PLAIN for tensor in tensors):
                first = tensors[0]  # what the encoder packs, which no other device than a real one can, or the query
                if not first.is_meta if caller is packing else first.is_nested:
                    return False
            return has_override(tensors)

        return answer_query

    with wrap_function(torch.overrides, "has_torch_function", watch):
        yield
