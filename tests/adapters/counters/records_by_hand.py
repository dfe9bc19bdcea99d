"""What settles ledgers and traces that a test writes by hand, without a framework and without a counter."""

from __future__ import annotations

from reconcile.align.alignment import Alignment
from reconcile.core.causes import Cause
from reconcile.core.conventions import MATMUL, Convention, Conventions
from reconcile.core.records import Ledger, Op, Tensor, Trace
from reconcile.core.results import Statement
from reconcile.engine.ledger import Reconciled, reconcile_ledger
from reconcile.engine.settle import Collected, settle

META = {"name": "m", "doc": "", "params": {}, "notes": (), "layers": (), "inputs": ()}


def tensor(*shape: int | None, dtype: str = "float32") -> Tensor:
    return Tensor(shape, dtype)


def tensors(*shapes: tuple[int, ...], dtype: str = "float32") -> tuple[Tensor, ...]:
    return tuple(Tensor(shape, dtype) for shape in shapes)


def trace(*ops: Op, framework: str = "torch", version: str = "2.13.0") -> Trace:
    """What ran, in the modules that these ops name."""
    layers = tuple(dict.fromkeys(op.layer for op in ops))
    return Trace(framework, {framework: version}, "meta", ops, (), (), layers, ())


def statement(ledger: Ledger, *ops: Op, by: Convention = MATMUL) -> Statement:
    """From a counter's total to what ran of its framework."""
    ran = trace(*ops, framework=ledger.framework, version=ledger.versions[ledger.framework])
    (found,) = settle(Collected(META, (ran,), (ledger,)), Conventions(by)).statements
    return found


def reconciled(ledger: Ledger, *ops: Op, convention: Convention = MATMUL) -> Reconciled:
    return reconcile_ledger(ledger, trace(*ops), Alignment([]), convention)


def causes(found: Reconciled | Statement) -> dict[Cause, int]:
    """The adjustments by cause, of a ledger that leaves no residual."""
    left = [residual.reason for residual in found.residuals] if isinstance(found, Reconciled) else found.residual
    assert not left
    sums: dict[Cause, int] = {}
    for line in found.adjustments:
        sums[line.cause] = sums.get(line.cause, 0) + line.amount
    return sums
