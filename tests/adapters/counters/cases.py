"""What a counter counts for one op, worked out by hand from the counter's own source: a case per rule and release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from reconcile.core.causes import Cause
from reconcile.core.records import Op, Shape, Tensor
from reconcile.work import Work


class Case(NamedTuple):
    """``total`` is what the counter adds in its own unit, by its own formula; ``work`` are the components that it is made of.

    ``missed`` is the cause of a rule that says that the counter counts nothing; without ``work`` and ``missed`` there is
    no rule in these ``releases``.
    """

    op: Op
    releases: Sequence[str]
    total: int = 0
    work: Work | None = None
    missed: Cause | None = None


def op(name: str, inputs: Sequence[Shape], outputs: Sequence[Shape], **attrs: Any) -> Op:
    """One op of these shapes."""
    ins, outs = (tuple(Tensor(shape, "float32") for shape in shapes) for shapes in (inputs, outputs))
    return Op(name, name, "", ins, outs, attrs)


def case_of(releases: Sequence[str], prefix: str = "", **common: Any) -> Callable[..., Case]:
    """A function that makes a case of these releases: of its work, total, name, shapes and attributes."""

    def case(
        work: Work, total: int, name: str, inputs: Sequence[Shape], outputs: Sequence[Shape], **attrs: Any
    ) -> Case:
        return Case(op(prefix + name, inputs, outputs, **{**common, **attrs}), releases, total, work)

    return case


def zero_of(releases: Sequence[str], shapes: Sequence[Shape], prefix: str = "", **common: Any) -> Callable[..., Case]:
    """A function that makes a case of an op that counts nothing, from and to these shapes."""

    def zero(name: str, **attrs: Any) -> Case:
        op_ = op(prefix + name, shapes, shapes, **{**common, **attrs})
        return Case(op_, releases, missed=Cause.OP_NOT_COUNTED)

    return zero


def product(terms: int, out: int, bias: int = 0) -> tuple[Work, int]:
    """Products without their first addition: of so many ``terms`` for each output, and what a counter adds for them."""
    return Work(mac=terms * out, accumulators=out, add=bias * out), (2 * terms - 1 + bias) * out
