"""Dispatched calls of operators: their signatures, the record that equal calls share, and the tally of a recorder's ops.

A record costs more to make than most operators cost to run, and a call of a model repeats a few hundred different calls many
times.  Two calls are equal if they have the same operator, the same shapes and dtypes, and the same other arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch

from ....core.records import INSIDE, Op
from ..module_tensors import is_lazy
from .call_records import operator, record_dispatch
from .launches import SPACE, count_launch
from .module_path import Aside
from .records import tensors_in

PLAIN = frozenset((type(None), bool, int, float, str))
DENSE = frozenset((torch.Tensor, torch.nn.Parameter))
ATEN = ("aten", "prims")


class _HasValues(Exception):
    """A record of these arguments shows more than their shapes and dtypes."""


class DispatchedCall:
    """A call of an operator: its result, the tensors that went in and came out, and its signature.

    ``key`` is the signature; None where a record of the call depends on more than that. ``opened`` is the kernel of another
    library's operator (opened_kernels.py), or what is known of a launch of Triton.
    """

    __slots__ = ("args", "func", "inputs", "key", "kwargs", "opened", "out", "outputs")

    def __init__(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, opened: Any = None) -> None:
        self.func, self.args, self.kwargs, self.out = func, args, kwargs, out
        self.opened = count_launch() if func.namespace == SPACE else opened
        self.inputs: list[torch.Tensor] = []
        self.outputs: list[torch.Tensor] = []
        try:
            if opened is not None or _reads_values(func):
                raise _HasValues
            given = _sign(args, self.inputs)
            named = _sign([*kwargs, *kwargs.values()], self.inputs) if kwargs else None
            self.key: Any = (func, given, named, _sign((out,), self.outputs))
        except _HasValues:
            self.key = None
            self.inputs, self.outputs = tensors_in([*args, *kwargs.values()]), tensors_in(out)


@cache
def _reads_values(func: Any) -> bool:
    """Whether a record of the operator's calls may show values: of another library, whose formula may read them, or of packed
    sequences, whose lengths it shows."""
    return func.namespace not in ATEN or operator(func).takes_lengths


class SharedRecords:
    """The records of calls, of which equal calls have one."""

    def __init__(self) -> None:
        self._by_key: dict[Any, Op] = {}

    def record(self, call: DispatchedCall, layer: str) -> Op:
        """The record of a call in a layer, without an id; equal calls in any layers share its ``attrs``."""
        try:
            op = None if call.key is None else self._by_key.get(call.key)
        except TypeError:  # an argument that has no hash
            call.key = None
        if call.key is None:
            op = record_dispatch(call.func, call.args, call.kwargs, call.out, "", layer)
            return op if call.opened is None else op._replace(attrs={**op.attrs, INSIDE: call.opened.inside})
        if op is None:
            op = self._by_key[call.key] = record_dispatch(call.func, call.args, call.kwargs, call.out, "", "")
        return op._replace(layer=layer)


def _sign(values: Any, found: list[torch.Tensor]) -> tuple[Any, ...]:
    """What a record shows of these arguments, whose tensors are added to ``found``. Raises _HasValues where it shows more."""
    signs: list[Any] = []
    for value in values:
        kind = type(value)
        if kind in DENSE or isinstance(value, torch.Tensor):
            if value.layout is not torch.strided or value.is_nested or (kind not in DENSE and is_lazy(value)):
                raise _HasValues
            found.append(value)
            signs += (value.shape, value.dtype)
        elif kind in PLAIN:
            signs += (kind, value)
        elif isinstance(value, Mapping):
            signs += (Mapping, _sign([*value, *value.values()], found))
        elif isinstance(value, (tuple, list)):
            signs += (tuple, _sign(value, found))
        elif isinstance(value, torch.ScriptObject):
            raise _HasValues
        else:
            signs.append(value)
    return tuple(signs)


class Tally:
    """The ops that ran: counts their calls at little cost while they run, and merges equal ops when it is asked for them."""

    def __init__(self) -> None:
        self._counted: dict[
            Any, list[Any]
        ] = {}  # by what tells ops apart at little cost: the op, and the number of its calls
        self._merged: dict[Any, Op] | None = None

    def add(self, op: Op) -> None:
        """One more call of the op."""
        # equal attrs are one object (SharedRecords), or are told apart here and merged at the end
        key = (id(op.attrs), op.layer, getattr(op.layer, "tag", None), op.phase, len(op.outputs), op.within)
        self._merged = None
        found = self._counted.get(key)
        if found is None:
            self._counted[key] = [op, 1]
        else:
            found[1] += 1

    def merge_ops(self, name: Callable[[Op], Op]) -> dict[Any, Op]:
        """The ops in the order of their first call, each as ``name`` returns it, by what tells it from others."""
        if self._merged is None:
            texts: dict[int, str] = {}  # attrs that several ops share, as text
            ops: dict[Any, Op] = {}
            for op, calls in list(self._counted.values()):
                text = texts.get(id(op.attrs))
                if text is None:
                    text = texts[id(op.attrs)] = repr(sorted(op.attrs.items()))
                if isinstance(op.layer, Aside):
                    text += repr(op.layer.tag)
                    op = op._replace(layer=str(op.layer), attrs=dict([*op.attrs.items(), op.layer.tag]))
                op = name(op)
                key = (op.op, op.layer, op.phase, op.inputs, op.outputs, text, op.within)
                met = ops.get(key)
                ops[key] = (
                    op._replace(id=f"op{len(ops)}", calls=calls)
                    if met is None
                    else met._replace(calls=met.calls + calls)
                )
            self._merged = ops
        return self._merged
