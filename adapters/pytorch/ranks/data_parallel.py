"""DistributedDataParallel on a process group that sends nothing: its reducer waits for results that the fake backend lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel


def put(replace: Callable[[Any, str, Callable[[Any], Any]], None]) -> None:
    """Let each such model add its gradients by a call whose result is there at once; a hook of the program's own stays."""

    def init(held: Any) -> Any:
        def made(self: Any, *args: Any, **kwargs: Any) -> None:
            held(self, *args, **kwargs)
            self._rank_hooked = False

        return made

    def hooked(held: Any) -> Any:
        def registered(self: Any, *args: Any, **kwargs: Any) -> None:
            self._rank_hooked = True
            held(self, *args, **kwargs)

        return registered

    def before(held: Any) -> Any:  # a call of the model, or of one that torch.distributed._composable.replicate holds
        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._rank_hooked:
                self.register_comm_hook(None, lambda _, bucket: _added(self, bucket.buffer()))
            return held(self, *args, **kwargs)

        return called

    replace(DistributedDataParallel, "__init__", init)
    replace(DistributedDataParallel, "register_comm_hook", hooked)
    replace(DistributedDataParallel, "_pre_forward", before)


def _added(model: Any, gradients: torch.Tensor) -> Any:
    """What the reducer does of its own: it multiplies the gradients by 1 / N as it copies them into the bucket, and adds the
    buckets (torch/csrc/distributed/c10d/reducer.cpp, Reducer::mark_variable_ready_dense and run_allreduce_hook)."""
    gradients.mul_(1 / distributed.get_world_size(model.process_group))
    distributed.all_reduce(gradients, group=model.process_group)
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(gradients)
    return done
