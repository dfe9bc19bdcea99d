"""Data of ranks that ran: ``Rank``, with its trace, and ``World``, with the mesh, the batches that ranks read, and one device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

from ...core.records import GROUP, Trace
from ...engine.settle import Collected
from .plan import Mesh

_PASSING = (
    "c10d.alltoall",
    "c10d.alltoall_base",
    "_c10d_functional.all_to_all_single",
    "_c10d_functional_autograd.all_to_all_single",
)
"""Operators by which a program itself sends tokens to other ranks. (DTensor changes the sharded dimension by another one.)"""


@dataclass(frozen=True, slots=True)
class Rank:
    """Ranks that do equal work, and what one of them recorded. ``told`` is what is known of its place (worker.py)."""

    ranks: tuple[int, ...]
    collected: Collected
    told: Mapping[str, Any]

    @property
    def trace(self) -> Trace:
        """The trace of one of them."""
        (trace,) = self.collected.traces
        assert isinstance(trace, Trace)
        return trace


@dataclass(frozen=True, slots=True)
class World:
    """``ran`` are the ranks that ran, and ``one`` is the step on one device, if it was asked for. ``chosen`` says that the user
    chose ranks, so that there is no sum."""

    size: int
    mesh: Mesh
    ranks: tuple[Rank, ...]
    ran: tuple[int, ...]
    one: Rank | None = None
    chosen: bool = False

    @property
    def batches(self) -> int:
        """How many batches, or parts of one, the ranks read: along lines that reduce gradients of data parallelism, that share
        the tokens of a sequence, or that pass tokens on to each other's experts."""
        lines = [line for rank in self.ranks for name in ("batches", "sequences") for line in rank.told[name]]
        passed = {tuple(op.attrs[GROUP]["ranks"]) for rank in self.ranks for op in rank.trace.ops if op.op in _PASSING}
        return prod(
            self.mesh.sizes[dim] for dim in {dim for line in (*lines, *passed) for dim in self.mesh.along(line)}
        )

    @property
    def one_batch(self) -> bool:
        """Whether the program of all ranks is written for one batch: arrays of JAX are whole, and a device has a part of each."""
        return all(rank.told.get("one_batch") for rank in self.ranks)

    @property
    def share(self) -> Fraction:
        """How much of the one device's batch a rank reads: the first rank, which has the first stage of a pipeline."""
        first = next((rank for rank in self.ranks if self.mesh.first in rank.ranks), None)
        if first is None or self.one is None or not (first.told["read"] and self.one.told["read"]):
            return Fraction(1)
        return Fraction(first.told["read"], self.one.told["read"])
