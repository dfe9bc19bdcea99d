"""Trace recorders that read the log of MKL and oneDNN after each op, for one call and for a training step.

A line belongs to the op in which it was written. One call may compute several gradients, each with a record of its own: each
record then has all lines of the call, and ``gradient_lines.py`` selects those of its gradient.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ....core.records import Op
from ...pytorch.phases import TrainingRecorder
from ...pytorch.tracing.recorder import Recorder
from . import PRODUCTS
from .batch_sizes import BY_BATCH
from .log_lines import Product
from .log_reader import Listening


class Log:
    """The log of a run: ``total``, and the amount and the number of calls of each layer and op, as the lines say."""

    def __init__(self, listening: Listening) -> None:
        self.listening = listening
        self.total = 0
        self.amounts: dict[tuple[str, str], list[int]] = {}

    def read_lines(self, op: Op) -> list[Any]:
        """The lines since the last op, which are this one's, as an attribute of it."""
        products = self.listening.read_products()
        if products:
            amount = sum(p.macs for p in products)
            self.total += amount
            held = self.amounts.setdefault((str(op.layer), op.op), [0, 0])
            held[0] += amount
            held[1] += 1
        return as_attribute(products)

    def move(self, renamed: dict[str, str]) -> None:
        """Rename layers whose names changed by the end of the step."""
        for layer, name in [key for key in self.amounts if key[0] in renamed]:
            held = self.amounts.setdefault((renamed[layer], name), [0, 0])
            for i, more in enumerate(self.amounts.pop((layer, name))):
                held[i] += more

    def rest(self) -> int:
        """The multiply-adds of lines that came after the last op."""
        after = sum(p.macs for p in self.listening.read_products())
        self.total += after
        return after


def as_attribute(products: list[Product]) -> list[Any]:
    """Lines as the attribute PRODUCTS of an op."""
    return [list(p) for p in products]


def with_lines(op: Op, lines: list[Any]) -> Op:
    """The op with its lines, if there are any."""
    return op._replace(attrs=dict(op.attrs, **{PRODUCTS: lines})) if lines else op


def read_batch_sizes(log: Log, func: Any) -> AbstractContextManager[None]:
    """While an operator runs: if it calls batches, their sizes are read."""
    schema = getattr(func, "_schema", None)
    return log.listening.batches.record_sizes() if schema is not None and schema.name in BY_BATCH else nullcontext()


class _Listens:
    """The part that both recorders share: ``log`` is set before anything runs."""

    log: Log
    _call: tuple[Any, list[Any]] = ((), [])

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with read_batch_sizes(self.log, func):
            return super().__torch_dispatch__(func, types, args, kwargs)  # type: ignore[misc]

    def record(self, *args: Any) -> Op:
        """A dispatched call: what was written until now is its own, whenever its phase is known."""
        op = super().record(*args)  # type: ignore[misc]
        self._call = (), []
        return with_lines(op, self.log.read_lines(op))

    def add(self, op: Op) -> None:
        """A call that was let through as one op was not dispatched; its gradients are parts of one call."""
        if PRODUCTS not in op.attrs:
            lines, call = self.log.read_lines(op), (op.op, op.layer, op.inputs)
            if "part" in op.attrs:
                lines = lines or (self._call[1] if self._call[0] == call else [])
                self._call = call, lines
            op = with_lines(op, lines)
        super().add(op)  # type: ignore[misc]


class Witness(_Listens, Recorder):
    """Records every op of a call with the products that were written while it ran."""


class TrainingWitness(_Listens, TrainingRecorder):
    """Records every op of a training step with the products that were written while it ran."""
