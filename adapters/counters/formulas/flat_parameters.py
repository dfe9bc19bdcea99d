"""Parameters in the flat tensors of FullyShardedDataParallel (FSDP), of which a rank holds a shard.

FSDP records beside a flat tensor what it consists of (torch/distributed/fsdp/_flat_param.py, ``FlatParameter``): the module,
name and shape of each parameter, and how much of it this rank has.  With ``use_orig_params`` its modules hold views of the
rank's shard.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

WRAPPERS = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod")
"""Names by which wrappers hold a module: the trace has none of them."""
FLAT = "_param_infos"


class Held(NamedTuple):
    """A parameter: the modules that hold it under a name, its shape, and how many elements this rank has. ``padding`` are those
    of a flat tensor that are of none: no module holds them."""

    owners: list[tuple[torch.nn.Module, str]]
    shape: list[int]
    numel: int
    padding: bool = False


def plain(path: str) -> str:
    """The path of a module without the names of wrappers."""
    return ".".join(word for word in path.split(".") if word not in WRAPPERS)


def is_flat(value: Any) -> bool:
    """Whether this is such a flat tensor."""
    return hasattr(value, FLAT) and hasattr(value, "_shapes")


def pieces(value: Any) -> list[Held]:
    """The parameters of a flat tensor, and its padding. A tensor that has all of them gives the whole of each."""
    shapes = [[int(n) for n in shape] for shape in value._shapes]
    parts = list(getattr(value, "_shard_param_infos", ()))
    sizes = [math.prod(shape) for shape in shapes]
    if len(parts) == len(shapes) and int(value.numel()) < sum(sizes):
        sizes = [int(part.numel_in_shard or 0) for part in parts]
    found = []
    for info, shape, size in zip(value._param_infos, shapes, sizes, strict=False):
        owners = [(info.module, info.param_name)]
        for other in getattr(value, "_shared_param_infos", ()):
            if (other.prim_module, other.prim_param_name) == owners[0]:
                owners.append((other.module, other.param_name))
        found.append(Held(owners, shape, size))
    more = int(value.numel()) - sum(sizes)
    return found + [Held([], [more], more, padding=True)] * (more > 0)


def views(module: torch.nn.Module) -> dict[tuple[int, str], list[int]]:
    """The shapes of parameters of which modules hold views, by the module's id and their name."""
    found = {}
    for child in module.modules():
        handle = getattr(child, "_handle", None)
        value = getattr(handle, "flat_param", None)
        if is_flat(value):
            for part in pieces(value):
                for owner, name in part.owners:
                    found[(id(owner), name)] = part.shape
    return found
