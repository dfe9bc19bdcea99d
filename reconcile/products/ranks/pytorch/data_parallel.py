"""Data parallelism on a fake process group: DistributedDataParallel and FSDP as patched, and the mesh and batches that they make.

The reducer of DistributedDataParallel waits for results that never come; it is replaced. FSDP (``fully_shard``) refuses weights
on the meta device before the first step, and makes buffers on the device of the mesh: patches let it gather and reduce weights
without values. Shapes are all that is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

META = torch.device("meta")


def replace_reducer(replace: Callable[[Any, str, Callable[..., Any]], None]) -> None:
    """Let each DistributedDataParallel add its gradients by a call that returns at once; a hook of the program's own stays."""

    def init_model(held: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        held(self, *args, **kwargs)
        self._rank_hooked = False

    def register_hook(held: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        self._rank_hooked = True
        held(self, *args, **kwargs)

    def call_before(held: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        """Of a call of the model, or of one that torch.distributed._composable.replicate holds."""
        if not self._rank_hooked:
            self.register_comm_hook(None, lambda _, bucket: _add_gradients(self, bucket.buffer()))
        return held(self, *args, **kwargs)

    replace(DistributedDataParallel, "__init__", init_model)
    replace(DistributedDataParallel, "register_comm_hook", register_hook)
    replace(DistributedDataParallel, "_pre_forward", call_before)


def _add_gradients(model: Any, gradients: torch.Tensor) -> Any:
    """What the reducer does of its own: it multiplies the gradients by 1 / N as it copies them into the bucket, and adds the
    buckets (torch/csrc/distributed/c10d/reducer.cpp, Reducer::mark_variable_ready_dense and run_allreduce_hook)."""
    gradients.mul_(1 / distributed.get_world_size(model.process_group))
    distributed.all_reduce(gradients, group=model.process_group)
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(gradients)
    return done


def keep_on_meta(replace: Callable[[Any, str, Callable[..., Any]], None]) -> None:
    """Let FSDP keep parameter groups on meta if their weights are there."""
    try:
        from torch.distributed.fsdp._fully_shard import _fsdp_collectives as collectives
        from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups
    except ImportError:
        return

    def settle_weights(held: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        """Before the first step: a program may have given values to its weights since it sharded them."""
        held(self, *args, **kwargs)
        if any(param.sharded_param.device.type != "meta" for param in self.fsdp_params):
            return
        for each in (self, *self.fsdp_params):
            each.device = META
        self._all_gather_output = self._all_gather_output.to(META)

    def get_handle(held: Any, kind: str) -> Any:
        return held("cpu" if kind == "meta" else kind)  # streams and events that do nothing

    replace(groups.FSDPParamGroup, "lazy_init", settle_weights)
    replace(groups.FSDPParamGroup, "_validate_no_meta_params", lambda _held, _self: None)
    for module in (groups, collectives):
        replace(module, "_get_device_handle", get_handle)


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
    return model.module if isinstance(model, DistributedDataParallel) else model


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
    if isinstance(module, DistributedDataParallel):
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
