"""Calls that look alike share one record: one operator, tensors of the same shapes and types, the same other arguments.

A record costs more to make than most operators cost to run, and a step calls the same few hundred over and over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ....core.records import Op
from ..tracing.call_records import dispatched

PLAIN = frozenset((type(None), bool, int, float, str))
DENSE = frozenset((torch.Tensor, torch.nn.Parameter))
ATEN = ("aten", "prims")


class _Unlike(Exception):
    """Arguments that tell more than their shapes do."""


class Signatures:
    """Records by signature. ``record`` gives the one of a call, without an id."""

    def __init__(self) -> None:
        self._held: dict[Any, Op] = {}
        self._layered: dict[tuple[int, str], Op] = {}  # by the record that a signature has, and the layer

    def record(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, layer: str) -> Op:
        """The record of a dispatched call in a layer; equal calls share it, and those in several layers its ``attrs``."""
        try:
            if func.namespace not in ATEN:  # a library's own formula may read values
                raise _Unlike
            key = (func, _sign(args), _sign(kwargs) if kwargs else None, _sign(out))
            op = self._held.get(key)
        except (_Unlike, TypeError):
            return dispatched(func, args, kwargs, out, "", layer)
        if op is None:
            op = self._held[key] = dispatched(func, args, kwargs, out, "", "")
        found = self._layered.get((id(op), layer))
        if found is None:
            found = self._layered[id(op), layer] = op._replace(layer=layer)
        return found


def _sign(value: Any) -> Any:
    """What a record shows of an argument. Raises _Unlike where that is more than this tells."""
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    if kind in DENSE or isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_nested:
            raise _Unlike
        return value.shape, value.dtype
    if kind in (tuple, list):
        return tuple([_sign(item) for item in value])
    if isinstance(value, Mapping):
        return tuple([(name, _sign(item)) for name, item in value.items()])
    if isinstance(value, torch.ScriptObject):
        raise _Unlike
    if isinstance(value, (tuple, list)):
        return tuple([_sign(item) for item in value])
    return value


def given_tensors(value: Any) -> list[torch.Tensor]:
    """The tensors that a call is given, in lists and dicts, too."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [t for item in value for t in given_tensors(item)] if isinstance(value, (tuple, list)) else []


def shapes_of(given: Any) -> list[tuple[tuple[int, ...], torch.dtype]]:
    """Shape and type of each."""
    return [(tuple(map(int, t.shape)), t.dtype) for t in given_tensors(given)]
