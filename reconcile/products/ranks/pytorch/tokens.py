"""Expert parallelism without peers: what ``all_to_all`` returns to a rank, if all ranks read equal batches.

Each rank then gets from every other what it sends to the rank of its own place.  PyTorch's fake backend gives it the beginning of
its own data instead, as if it were the first rank (torch/csrc/distributed/c10d/FakeProcessGroup.hpp, ``alltoall_base``, 2.13):
how many tokens go to the experts of a rank would be those of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import torch
from torch import distributed
from torch.utils._python_dispatch import _disable_current_modes

FUNCTIONS = "torch.distributed._functional_collectives"


def replace_all_to_all(replace: Callable[[Any, str, Callable[..., Any]], None], asking: Callable[[], Any]) -> None:
    """Let each call of all_to_all_single return what the rank would receive."""

    def return_tokens(held: Any, given: Any, takes: Any, gives: Any, group: Any, *args: Any, **kwargs: Any) -> Any:
        out = held(given, takes, gives, group, *args, **kwargs)
        found = resolve(group)
        if isinstance(found, str):
            found = distributed.distributed_c10d._resolve_process_group(found)
        _fill(asking, getattr(out, "elem", out), given, takes, gives, found)
        return out

    def write_tokens(
        held: Any, output: Any, input: Any, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None,
        async_op: bool = False,
    ) -> Any:  # fmt: skip
        work = held(output, input, output_split_sizes, input_split_sizes, group, async_op)
        _fill(asking, output, input, output_split_sizes, input_split_sizes, group)
        return work

    functions: Any = import_module(FUNCTIONS)
    resolve: Any = getattr(functions, "_resolve_group", None)  # of a mesh, too
    if resolve is not None:
        replace(functions, "all_to_all_single", return_tokens)
    for module in (distributed, distributed.distributed_c10d):
        replace(module, "all_to_all_single", write_tokens)


def _fill(asking: Any, output: Any, given: Any, takes: Any, gives: Any, group: Any) -> None:
    """Write the part that every rank sends to this one into each part of ``output``, as far as it goes."""
    world = distributed.get_world_size(group)
    given = getattr(given, "elem", given)
    if world == 1 or not len(given) or "meta" in (output.device.type, given.device.type):
        return
    with _disable_current_modes(), torch.no_grad():
        sent = given.detach().split(list(gives or _even(given, world)))
        received = output.detach().split(list(takes or _even(output, world)))
        if _differ(sent):
            line = distributed.get_process_group_ranks(group)
            if line not in asking().rank_groups:  # how much a rank gets depends on its place
                asking().rank_groups.append(line)
        own = sent[distributed.get_rank(group)]
        for part in received:
            size = min(len(part), len(own))
            part[:size].copy_(own[:size])


def _even(tensor: Any, world: int) -> list[int]:
    return [len(tensor) // world] * world


def _differ(sent: Sequence[Any]) -> bool:
    """Whether these are parts of several sizes, or several numbers of tokens."""
    first = sent[0]
    if any(part.shape != first.shape for part in sent):
        return True
    return not first.is_floating_point() and any(not torch.equal(part, first) for part in sent)
