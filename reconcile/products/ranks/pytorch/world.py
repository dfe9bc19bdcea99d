"""A default process group of any size in one process (PyTorch's fake backend), so that a rank's code runs as it is.

Collectives return at once and send nothing: what a rank receives is its own data.  The rank's own calls that make or end the
group pass, and what the program asks about its place is noted: ranks that differ in nothing else do equal work.
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

NEAR = (__name__, "os", "_collections_abc", "collections.abc", "functools")
"""Modules between the program and the answer to its question."""
TOOL = __name__.partition(".")[0]
PLACES = ("RANK", "LOCAL_RANK", "GROUP_RANK")
RANKS_NEED_DISTRIBUTED = (
    "ranks need torch.distributed with its mesh of devices and its fake process group, which PyTorch %s lacks"
)


class RankQueries:
    """What a rank's code asked: ``lines`` of ranks among which it asked for its place, and ``where`` it asked for its number."""

    def __init__(self) -> None:
        self.meshes: list[Any] = []
        self.sequences: list[list[int]] = []  # lines of ranks that share the tokens of a sequence
        self.ring = False  # whether they computed attention in blocks on the CPU
        self.lines: list[list[int]] = []
        self.where = ""
        self.lacking: set[str] = set()  # devices that the program's meshes are of, and that this machine lacks
        self.pipelines = pipelines.Pipelines()

    def asked(self, line: Callable[[], list[int] | None]) -> None:
        """The program asks for its place in a line of ranks; None for all. PyTorch's own questions are none of the program's, and
        may come before a line is known."""
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").startswith(NEAR):
            frame = frame.f_back
        asking = "" if frame is None else frame.f_globals.get("__name__", "")
        if frame is None or asking.partition(".")[0] in ("torch", TOOL):
            return
        ranks = line() if distributed.is_initialized() else None
        if ranks is None or len(ranks) == distributed.get_world_size():
            self.where = self.where or f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        elif ranks not in self.lines:
            self.lines.append(ranks)


_current: list[RankQueries] = []
"""The rank that this process is now. What is replaced is replaced before the program is imported, which may keep it by name."""


def install() -> None:
    """Let this process be ranks from now on. Raises FactoryError where PyTorch lacks the parts."""
    try:
        from torch.distributed.device_mesh import DeviceMesh
        from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: F401 (standing needs it)
    except ImportError as error:
        raise FactoryError(RANKS_NEED_DISTRIBUTED % torch.__version__) from error

    def pass_through(held: Any) -> Any:
        return lambda *args, **kwargs: None if _current else held(*args, **kwargs)

    for module in (distributed, distributed.distributed_c10d):
        patch(module, "init_process_group", pass_through)
        patch(module, "destroy_process_group", pass_through)
        patch(module, "get_rank", _rank)
    patch(distributed.ProcessGroup, "rank", _group_rank)
    patch(DeviceMesh, "__init__", _mesh)
    for name in ("get_local_rank", "get_rank", "get_coordinate"):
        patch(DeviceMesh, name, _place)
    patch(os._Environ, "__getitem__", _variable)
    sequences.follow_context_parallelism(patch, current_rank)
    data_parallel.replace_reducer(patch)
    data_parallel.keep_on_meta(patch)
    pipelines.replace_exchanges(patch, current_rank)
    tokens.replace_all_to_all(patch, current_rank)


def patch(owner: Any, name: str, made: Callable[[Any], Any]) -> None:
    """Replace this function of PyTorch's."""
    held = getattr(owner, name, None)
    if held is not None:
        setattr(owner, name, wraps(held)(made(held)))


def current_rank() -> RankQueries:
    """The rank that this process is now."""
    return _current[-1] if _current else RankQueries()


@contextmanager
def as_rank(rank: int, size: int, exchange: str) -> Iterator[RankQueries]:
    """Meanwhile this process is the rank of that number in a world of that size. ``exchange`` is a folder in which the stages
    of a pipeline leave the shapes that they send."""
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


def _rank(held: Any) -> Any:
    def get_rank(group: Any = None) -> Any:
        place = held(group)
        current_rank().asked(lambda: None if group is None or place < 0 else distributed.get_process_group_ranks(group))
        return place

    return get_rank


def _group_rank(held: Any) -> Any:
    def rank(group: Any) -> Any:
        current_rank().asked(lambda: distributed.get_process_group_ranks(group))
        return held(group)

    return rank


def _mesh(held: Any) -> Any:
    def init(mesh: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        if _is_lacking(device_type):
            current_rank().lacking.add(device_type)
            device_type = "cpu"
        held(mesh, device_type, *args, **kwargs)
        current_rank().meshes.append(mesh)

    return init


def _is_lacking(kind: str) -> bool:
    """Whether these are devices that PyTorch knows, and this machine has none of."""
    handle: Any = getattr(torch, kind, None)
    return hasattr(handle, "is_available") and not handle.is_available()


def _place(held: Any) -> Any:
    def note_mesh_query(mesh: Any, *args: Any, **kwargs: Any) -> Any:
        place = held(mesh, *args, **kwargs)
        dim = args[0] if args else kwargs.get("mesh_dim")
        whole = dim is None and mesh.ndim > 1
        current_rank().asked(
            lambda: (
                list(map(int, mesh.mesh.flatten().tolist()))
                if whole
                else distributed.get_process_group_ranks(mesh.get_group(dim))
            )
        )
        return place

    return note_mesh_query


def _variable(held: Any) -> Any:
    def getitem(environ: Any, name: Any) -> Any:
        value = held(environ, name)
        if name in PLACES:
            current_rank().asked(lambda: None)
        return value

    return getitem
