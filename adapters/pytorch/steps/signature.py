"""Merges equal calls of a recorded step into one record: same operator, same shapes and dtypes, same other arguments.

A record costs more to make than most operators cost to run, and a step repeats a few hundred different calls many times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ....core.records import IN_HOOK, ON_THREAD, Op
from ..tracing.call_records import record_dispatch
from ..tracing.module_path import AfterForward
from ..tracing.records import tensors_in

PLAIN = frozenset((type(None), bool, int, float, str))
DENSE = frozenset((torch.Tensor, torch.nn.Parameter))
ATEN = ("aten", "prims")


class _Unlike(Exception):
    """Arguments that tell more than their shapes do."""


class Signed:
    """A dispatched call: its signature, None where that is not all of it, and the tensors that went in and came out."""

    __slots__ = ("inputs", "key", "outputs")

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        self.inputs: list[torch.Tensor] = []
        self.outputs: list[torch.Tensor] = []
        try:
            if func.namespace not in ATEN:  # a library's own formula may read values
                raise _Unlike
            given = _signs(args, self.inputs)
            named = _signs([*kwargs, *kwargs.values()], self.inputs) if kwargs else None
            self.key: Any = (func, given, named, _signs((out,), self.outputs))
        except _Unlike:
            self.key = None
            self.inputs, self.outputs = tensors_in([*args, *kwargs.values()]), tensors_in(out)


class Signatures:
    """Records by signature. ``record`` gives the one of a call, without an id."""

    def __init__(self) -> None:
        self._held: dict[Any, Op] = {}
        self._layered: dict[tuple[int, str], Op] = {}  # by the record that a signature has, and the layer

    def record(
        self, signed: Signed, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, layer: str
    ) -> Op:
        """The record of a dispatched call in a layer; equal calls share it, and those in several layers its ``attrs``."""
        try:
            op = None if signed.key is None else self._held.get(signed.key)
        except TypeError:  # an argument that has no hash
            signed.key = None
        if signed.key is None:
            return record_dispatch(func, args, kwargs, out, "", layer)
        if op is None:
            op = self._held[signed.key] = record_dispatch(func, args, kwargs, out, "", "")
        found = self._layered.get((id(op), layer))
        if found is None:
            found = self._layered[id(op), layer] = op._replace(layer=layer)
        return found


def _signs(values: Any, found: list[torch.Tensor]) -> tuple[Any, ...]:
    """What a record shows of these arguments, and their tensors. Raises _Unlike where that is more than this tells."""
    signs: list[Any] = []
    for value in values:
        kind = type(value)
        if kind in DENSE or isinstance(value, torch.Tensor):
            if value.layout is not torch.strided or value.is_nested:
                raise _Unlike
            found.append(value)
            signs += (value.shape, value.dtype)
        elif kind in PLAIN:
            signs += (kind, value)
        elif isinstance(value, Mapping):
            signs += (Mapping, _signs([*value, *value.values()], found))
        elif isinstance(value, (tuple, list)):
            signs += (tuple, _signs(value, found))
        elif isinstance(value, torch.ScriptObject):
            raise _Unlike
        else:
            signs.append(value)
    return tuple(signs)


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


class Tally:
    """The ops of a step by layer and phase: counts calls while it runs, at little cost, and merges equal ops when it is done."""

    def __init__(self) -> None:
        self._held: dict[Any, list[Any]] = {}  # by what tells ops apart: the op, and the number of its calls

    def add(self, op: Op, layer: str, phase: str, on_thread: bool) -> None:
        """A call of the op in this layer and phase."""
        if on_thread or isinstance(layer, AfterForward):
            tags = {ON_THREAD: True} if on_thread else {IN_HOOK: True}
            op, layer = op._replace(attrs=dict(op.attrs, **tags)), str(layer)
        # equal attrs are one object (Signatures), or are told apart here and merged at the end
        key = (id(op.attrs), layer, phase, len(op.outputs))
        found = self._held.get(key)
        if found is None:
            self._held[key] = [op._replace(layer=layer, phase=phase), 1]
        else:
            found[1] += 1

    def merge_ops(self, named: Callable[[Op], Op]) -> dict[Any, Op]:
        """The ops in the order of their first execution, each as ``named`` returns it, by what tells it from others."""
        told: dict[int, str] = {}  # attrs that several ops share, as text
        ops: dict[Any, Op] = {}
        for op, calls in self._held.values():
            text = told.get(id(op.attrs))
            if text is None:
                text = told[id(op.attrs)] = repr(sorted(op.attrs.items()))
            op = named(op)._replace(id=f"op{len(ops)}", calls=calls)
            key = (op.op, op.layer, op.phase, op.inputs, op.outputs, text, op.within)
            met = ops.get(key)
            ops[key] = op if met is None else met._replace(calls=met.calls + calls)
        return ops
