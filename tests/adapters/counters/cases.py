"""What a counter counts for one op, worked out by hand from the counter's own source: a case per rule and release."""

from __future__ import annotations

from collections.abc import Sequence
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
