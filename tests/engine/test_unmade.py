"""The exit code if the model that one counter needs could not be made."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reconcile.core.errors import EXIT_OK, EXIT_UNEXPLAINED
from reconcile.core.results import State
from reconcile.engine.settle import exit_code

NO = "PyTorch cannot export this model to ONNX"


@pytest.mark.parametrize(("traced", "code"), [(NO, EXIT_OK), ("a formula is missing", EXIT_UNEXPLAINED)])
def test_a_trace_missing_for_a_counters_reason_leaves_none_open(traced: str, code: int) -> None:
    def trace(name: str, state: State, reason: str = "") -> SimpleNamespace:
        return SimpleNamespace(name=f"trace@{name}", framework=name, state=state, reason=reason)

    def ledger(counter: str, framework: str, state: State, total: int | None, reason: str = "") -> SimpleNamespace:
        return SimpleNamespace(counter=counter, framework=framework, state=state, total=total, reason=reason)

    missing = State.NOT_COMPARABLE
    ends = [("thop", "trace@torch", State.EXPLAINED), ("onnx_tool", "trace@onnx", missing)]
    ends += [("thop", "onnx_tool", missing), ("trace@torch", "trace@onnx", missing)]
    books = SimpleNamespace(
        traces=[trace("torch", State.EXPLAINED), trace("onnx", missing, traced)],
        ledgers=[ledger("thop", "torch", State.EXPLAINED, 3), ledger("onnx_tool", "onnx", missing, None, NO)],
        statements=[SimpleNamespace(from_=a, to=b, state=state) for a, b, state in ends],
    )
    assert exit_code(books) == code  # type: ignore[arg-type]
