"""A default process group of any size in one process (PyTorch's fake backend), so that a rank's code runs as it is.

Collectives return at once and send nothing: what a rank receives is its own data.  The program's calls to init_process_group
and destroy_process_group do nothing.  Its queries for its rank are recorded, reads of ``os.environ`` included: ranks whose
answers are equal do the same work.

A mesh of devices that this machine lacks becomes one of "cpu".  ``install`` also applies the patches for pipelines, context
parallelism, data parallelism and the exchange of tokens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from torch import distributed

from ....adapters.shared.refusal import FactoryError
from . import data_parallel, pipelines, sequences, tokens

SKIPPED_CALLERS = (__name__, "os", "_collections_abc", "collections.abc", "functools")
"""Modules between the program and the answer to its question."""
TOOL = __name__.partition(".")[0]
RANK_VARIABLES = ("RANK", "LOCAL_RANK", "GROUP_RANK")
RANKS_NEED_DISTRIBUTED = (
    "ranks need torch.distributed with its mesh of devices and its fake process group, which PyTorch %s lacks"
)


class RankQueries:
    """What a rank's code asked: ``rank_groups`` among which it asked for its place, and ``where`` it asked for its number."""

    def __init__(self) -> None:
        self.meshes: list[Any] = []
        self.sequences: list[list[int]] = []  # groups of ranks that share the tokens of a sequence
        self.ring = False  # whether they computed attention in blocks on the CPU
        self.rank_groups: list[list[int]] = []
        self.where = ""
        self.lacking: set[str] = set()  # devices that the program's meshes are of, and that this machine lacks
        self.pipelines = pipelines.Pipelines()

    def note_query(self, find_group: Callable[[], list[int] | None]) -> None:
        """The program asks for its place in a group of ranks; None for all. PyTorch's own queries are not the program's, and
        may come before a group is known."""
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").startswith(SKIPPED_CALLERS):
            frame = frame.f_back
        asking = "" if frame is None else frame.f_globals.get("__name__", "")
        if frame is None or asking.partition(".")[0] in ("torch", TOOL):
            return
        ranks = find_group() if distributed.is_initialized() else None
        if ranks is None or len(ranks) == distributed.get_world_size():
            self.where = self.where or f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        elif ranks not in self.rank_groups:
            self.rank_groups.append(ranks)


_current: list[RankQueries] = []
"""The rank that this process is now. Patch before importing the program, which may import the functions by name."""


def install() -> None:
    """Let this process be ranks from now on. Raises FactoryError where PyTorch lacks the parts."""
    try:
        from torch.distributed.device_mesh import DeviceMesh
        from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: F401 (as_rank needs it)
    except ImportError as error:
        raise FactoryError(RANKS_NEED_DISTRIBUTED % torch.__version__) from error

    def pass_through(held: Any, *args: Any, **kwargs: Any) -> Any:
        return None if _current else held(*args, **kwargs)

    for module in (distributed, distributed.distributed_c10d):
        patch(module, "init_process_group", pass_through)
        patch(module, "destroy_process_group", pass_through)
        patch(module, "get_rank", _patched_get_rank)
    patch(distributed.ProcessGroup, "rank", _patched_group_rank)
    patch(DeviceMesh, "__init__", _patched_mesh_init)
    for name in ("get_local_rank", "get_rank", "get_coordinate"):
        patch(DeviceMesh, name, _patched_mesh_query)
    patch(os._Environ, "__getitem__", _patched_environ_getitem)
    sequences.follow_context_parallelism(patch, current_rank)
    data_parallel.replace_reducer(patch)
    data_parallel.keep_on_meta(patch)
    pipelines.replace_exchanges(patch, current_rank)
    tokens.replace_all_to_all(patch, current_rank)


def patch(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace a function of this owner, if it has it, by ``wrapper``, which is given the function before its arguments."""
    held = getattr(owner, name, None)
    if held is not None:
        setattr(owner, name, wraps(held)(lambda *args, **kwargs: wrapper(held, *args, **kwargs)))


def current_rank() -> RankQueries:
    """The rank that this process is now."""
    return _current[-1] if _current else RankQueries()


@contextmanager
def as_rank(rank: int, size: int, exchange: str) -> Iterator[RankQueries]:
    """Within this context, this process is rank ``rank`` of ``size``. ``exchange`` is a folder in which the stages of a
    pipeline leave the shapes that they send."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(size), MASTER_ADDR="localhost",
        MASTER_PORT="0",
    )  # fmt: skip
    devices = distributed.Backend.backend_capability["fake"]
    if "meta" not in devices:
        devices.append("meta")
    distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=size)
    seen = RankQueries()
    seen.pipelines.exchange = exchange
    _current.append(seen)
    try:
        yield seen
    finally:
        _current.pop()
        distributed.destroy_process_group()


def _patched_get_rank(held: Any, group: Any = None) -> Any:
    place = held(group)
    current_rank().note_query(
        lambda: None if group is None or place < 0 else distributed.get_process_group_ranks(group)
    )
    return place


def _patched_group_rank(held: Any, group: Any) -> Any:
    current_rank().note_query(lambda: distributed.get_process_group_ranks(group))
    return held(group)


def _patched_mesh_init(held: Any, mesh: Any, /, device_type: str, *args: Any, **kwargs: Any) -> None:
    if _is_lacking(device_type):
        current_rank().lacking.add(device_type)
        device_type = "cpu"
    held(mesh, device_type, *args, **kwargs)
    current_rank().meshes.append(mesh)


def _is_lacking(kind: str) -> bool:
    """Whether these are devices that PyTorch knows, and this machine has none of."""
    handle: Any = getattr(torch, kind, None)
    return hasattr(handle, "is_available") and not handle.is_available()


def _patched_mesh_query(held: Any, mesh: Any, *args: Any, **kwargs: Any) -> Any:
    place = held(mesh, *args, **kwargs)
    dim = args[0] if args else kwargs.get("mesh_dim")
    whole = dim is None and mesh.ndim > 1
    current_rank().note_query(
        lambda: (
            list(map(int, mesh.mesh.flatten().tolist()))
            if whole
            else distributed.get_process_group_ranks(mesh.get_group(dim))
        )
    )
    return place


def _patched_environ_getitem(held: Any, environ: Any, name: Any) -> Any:
    value = held(environ, name)
    if name in RANK_VARIABLES:
        current_rank().note_query(lambda: None)
    return value
