"""DistributedDataParallel on a fake process group: its reducer, which waits for results that never come, is replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel


def replace_reducer(replace: Callable[[Any, str, Callable[[Any], Any]], None]) -> None:
    """Let each DistributedDataParallel add its gradients by a call that returns at once; a hook of the program's own stays."""

    def init(held: Any) -> Any:
        def init_model(self: Any, *args: Any, **kwargs: Any) -> None:
            held(self, *args, **kwargs)
            self._rank_hooked = False

        return init_model

    def replace_hook(held: Any) -> Any:
        def register_hook(self: Any, *args: Any, **kwargs: Any) -> None:
            self._rank_hooked = True
            held(self, *args, **kwargs)

        return register_hook

    def before(held: Any) -> Any:  # a call of the model, or of one that torch.distributed._composable.replicate holds
        def call_before(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._rank_hooked:
                self.register_comm_hook(None, lambda _, bucket: _add_gradients(self, bucket.buffer()))
            return held(self, *args, **kwargs)

        return call_before

    replace(DistributedDataParallel, "__init__", init)
    replace(DistributedDataParallel, "register_comm_hook", replace_hook)
    replace(DistributedDataParallel, "_pre_forward", before)


def _add_gradients(model: Any, gradients: torch.Tensor) -> Any:
    """What the reducer does of its own: it multiplies the gradients by 1 / N as it copies them into the bucket, and adds the
    buckets (torch/csrc/distributed/c10d/reducer.cpp, Reducer::mark_variable_ready_dense and run_allreduce_hook)."""
    gradients.mul_(1 / distributed.get_world_size(model.process_group))
    distributed.all_reduce(gradients, group=model.process_group)
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(gradients)
    return done
