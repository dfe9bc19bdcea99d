"""FSDP (``fully_shard``) of a model on the meta device: patches that let it gather and reduce weights without values.

PyTorch refuses meta weights before the first step, and makes buffers on the device of the mesh.  Shapes are all that is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

META = torch.device("meta")


def keep_on_meta(replace: Callable[[Any, str, Callable[[Any], Any]], None]) -> None:
    """Let FSDP keep parameter groups on meta if their weights are there."""
    try:
        from torch.distributed.fsdp._fully_shard import _fsdp_collectives as collectives
        from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups
    except ImportError:
        return

    def settle_weights(held: Any) -> Any:
        """Before the first step: a program may have given values to its weights since it sharded them."""

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            held(self, *args, **kwargs)
            if any(param.sharded_param.device.type != "meta" for param in self.fsdp_params):
                return
            for each in (self, *self.fsdp_params):
                each.device = META
            self._all_gather_output = self._all_gather_output.to(META)

        return init

    def handle(held: Any) -> Any:
        return lambda kind: held("cpu" if kind == "meta" else kind)  # streams and events that do nothing

    replace(groups.FSDPParamGroup, "lazy_init", settle_weights)
    replace(groups.FSDPParamGroup, "_validate_no_meta_params", lambda _held: lambda _self: None)
    for module in (groups, collectives):
        replace(module, "_get_device_handle", handle)
