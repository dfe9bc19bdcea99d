"""The ops of a step by layer and phase, each with the number of its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.records import IN_HOOK, ON_THREAD, Op
from ..tracing.module_path import AfterForward


class Tally:
    """Counts calls while a step runs, at little cost, and merges equal ops when it is done."""

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

    def merged(self, named: Callable[[Op], Op]) -> dict[Any, Op]:
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
