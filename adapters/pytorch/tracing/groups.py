"""Process group of a collective operator (torch.distributed) as record attributes: its ranks, and its reduction (sum, max).
``is_shared`` says whether other processes take part at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import torch

from ....core.records import GROUP

PROCESSES = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "_dtensor")
"""Namespaces of collective operators."""
OBJECTS = ("process_group", "reduce_op", "group_name", "timeout", "async_op", "tag")
"""Arguments that say which processes, and how: the addresses of objects, or names that a program counts up."""

REDUCTIONS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX")


def is_shared() -> bool:
    """Whether other processes take part: what they send, PyTorch writes into memory past its operators."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def with_group(attrs: dict[str, Any], values: Iterable[Any]) -> dict[str, Any]:
    """The arguments of a collective operator, with its group instead of objects where the group is one of this process's."""
    group, reduce = None, str(attrs.get("reduce_op") or "")
    for value in values:
        group = group or _group(value)
        reduce = _reduction(value) or reduce
    kept = {name: value for name, value in attrs.items() if name not in OBJECTS}
    if group is None:
        return kept
    from torch import distributed

    ranks = distributed.get_process_group_ranks(group)
    place = ranks.index(distributed.get_rank())
    return dict(kept, **{GROUP: {"ranks": ranks, "place": place, "reduce": reduce.lower()}})


def _group(value: Any) -> Any:
    """The process group that this argument is or names; None if it is none."""
    module: Any = sys.modules.get("torch.distributed.distributed_c10d")
    if module is None:
        return None
    if isinstance(value, str):
        try:
            return module._resolve_process_group(value)
        except (RuntimeError, ValueError, LookupError):
            return None
    if isinstance(value, module.ProcessGroup):
        return value
    if isinstance(value, torch.ScriptObject) and value._type().name() == "ProcessGroup":
        return module.ProcessGroup.unbox(value)
    return None


def _reduction(value: Any) -> str:
    """``SUM`` of an object that says how processes reduce; '' of anything else."""
    if not isinstance(value, torch.ScriptObject) or value._type().name() != "ReduceOp":
        return ""
    from torch.distributed import ReduceOp

    return next((name for name in REDUCTIONS if int(getattr(ReduceOp.RedOpType, name)) == value.op()), "other")
