"""Loops: layers that run nothing but another layer, turn by turn, and are one row with it."""

from __future__ import annotations

from ..core.records import Trace
from .alignment import inside, outermost
from .sites import paths_of


def loops_of(trace: Trace) -> frozenset[str]:
    """The layers that hold a loop, compute nothing of their own, and have one layer inside that computes, in the loop.

    Example: a recurrent layer of Keras, which runs its cell.
    """
    layers = {op.id: op.layer for op in trace.ops if op.layer}
    holding = {layers[call] for op in trace.ops for call in op.within if inside(op.layer, layers.get(call, op.layer))}
    working = paths_of(trace) if holding else ()
    return frozenset(path for path in holding if path not in working and sum(inside(x, path) for x in working) == 1)


def join_layers(trace: Trace, wholes: frozenset[str]) -> Trace:
    """The trace with everything in these layers as their own."""
    if not wholes:
        return trace
    ops = tuple(op._replace(layer=outermost(op.layer, wholes)) for op in trace.ops)
    return trace._replace(ops=ops, layers=tuple(dict.fromkeys(outermost(path, wholes) for path in trace.layers)))
