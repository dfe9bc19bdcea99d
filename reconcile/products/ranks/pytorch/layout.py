"""The layout of ranks as a program made it: its device mesh, and the groups of ranks that read batches of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed


def mesh_of(meshes: list[Any], world: int) -> dict[str, Any]:
    """The finest mesh of the whole world: the ``names`` and ``sizes`` of its dimensions, and its ``ranks``, row by row. Without
    one, the ranks stand in a line."""
    whole = [mesh for mesh in meshes if mesh.mesh.numel() == world]
    if not whole:
        return {"names": ["rank"], "sizes": [world], "ranks": list(range(world))}
    finest = max(whole, key=lambda mesh: sum(size > 1 for size in mesh.mesh.shape))
    names = finest.mesh_dim_names or tuple(f"dim {i}" for i in range(finest.mesh.ndim))
    ranks = [int(rank) for rank in finest.mesh.flatten().tolist()]
    return {"names": list(names), "sizes": list(map(int, finest.mesh.shape)), "ranks": ranks}


def unwrap_model(model: torch.nn.Module) -> torch.nn.Module:
    """The model that DistributedDataParallel holds: its layers have the names that they have on one device."""
    return model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model


def batches_of(models: list[torch.nn.Module]) -> list[list[int]]:
    """The lines of ranks that take batches of their own: those over which DistributedDataParallel or FSDP reduce gradients."""
    found: list[list[int]] = []
    for model in models:
        for module in model.modules():
            for ranks in _lines(module):
                if len(ranks) > 1 and ranks not in found:
                    found.append(ranks)
    return found


def _lines(module: Any) -> list[list[int]]:
    module = _find_reducer(module) or module
    if isinstance(module, torch.nn.parallel.DistributedDataParallel):
        return [distributed.get_process_group_ranks(module.process_group)]
    state = getattr(module, "_get_fsdp_state", None)
    if state is not None:  # fully_shard
        groups = getattr(state(), "_fsdp_param_groups", None) or [getattr(state(), "_fsdp_param_group", None)]
        return [ranks for group in groups if group is not None for ranks in _of_mesh(group.mesh_info.mesh)]
    group = getattr(module, "process_group", None)
    if type(module).__name__ == "FullyShardedDataParallel" and group is not None:
        return [distributed.get_process_group_ranks(group)]
    return []


def _find_reducer(module: Any) -> Any:
    """What adds the gradients of a module that ``replicate`` left in its place; None of any other, and before its first call."""
    try:
        from torch.distributed._composable.replicate import DDP, replicate
    except ImportError:
        return None
    return getattr(replicate.state(module), "_ddp", None) if isinstance(module, DDP) else None


def _of_mesh(mesh: Any) -> list[list[int]]:
    return [distributed.get_process_group_ranks(mesh.get_group(dim)) for dim in range(mesh.ndim)]
