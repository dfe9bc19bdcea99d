"""Contractions in a TorchScript trace: PyTorch takes a matrix product or goes element by element, by how the operands lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import reconcile
from reconcile.adapters.counters.fvcore.graph_nodes import is_seen, node_record
from reconcile.core.causes import Cause, State
from reconcile.work import ZERO, Work, work_of
from tests.adapters.counters.small_nets import called
from tests.work.torch_records import work_dispatched

K = 3 * 4
DOT = Work(mac=K, accumulators=1)
ELEMENTWISE = Work(mul=K, add=K - 1)
x, y = torch.ones(3, 4), torch.ones(4, 3).t()
thin = torch.ones(1, 4)


CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Work]] = {
    # both (3, 4); the second of y lies by columns
    "by rows": (lambda a, b: torch.tensordot(a, b, 2), (x, x), DOT),
    "by columns": (lambda a, b: torch.tensordot(a, b, 2), (y, y), ELEMENTWISE),
    "one by columns": (lambda a, b: torch.tensordot(a, b, 2), (x, y), ELEMENTWISE),
    "by columns, in the order of columns": (lambda a, b: torch.tensordot(a, b, ([1, 0], [1, 0])), (y, y), DOT),
    "an axis is left": (lambda a, b: torch.tensordot(a, b, ([1], [1])), (y, y), Work(mac=3 * K, accumulators=9)),
    "an axis is summed first": (lambda a, b: torch.tensordot(a, b, 2), (y, thin), Work(add=8, mac=4, accumulators=1)),
    "inner, every second": (lambda a, b: torch.inner(a, b), (torch.ones(2 * K)[::2],) * 2, ELEMENTWISE),
    "inner": (lambda a, b: torch.inner(a, b), (torch.ones(K),) * 2, DOT),
    "inner of a number": (lambda a, b: torch.inner(a, b), (torch.ones(()), x), Work(mul=K)),
}
"""Name -> (call, its operands, its work)."""


@pytest.mark.parametrize("name", CALLS)
def test_a_node_has_the_work_that_pytorch_dispatches(name: str) -> None:
    call, operands, work = CALLS[name]
    graph, _ = torch.jit._get_trace_graph(call, operands)
    nodes = [node_record(node, "", "") for node in graph.nodes() if is_seen(node)]
    assert sum(map(work_of, nodes), ZERO) == work == work_dispatched(call, *operands)


def test_a_node_of_a_trace_under_way_is_not_recorded_in_it() -> None:
    def call(a: Any) -> Any:
        out = torch.tensordot(a, a, 2)
        made = [node for node in torch._C._get_tracing_state().graph().nodes() if is_seen(node)]
        assert [work_of(node_record(node, "", "")) for node in made] == [ELEMENTWISE]
        return out

    graph, _ = torch.jit._get_trace_graph(call, (y,))
    assert [node.kind() for node in graph.nodes() if is_seen(node)] == ["aten::tensordot"]


@pytest.mark.parametrize(("given", "missed", "state"), [(x, 2 * K, State.EXPLAINED), (y, 0, State.EQUAL)])
def test_what_fvcore_does_not_count_is_what_ran(given: Any, missed: int, state: State) -> None:
    squares = called(lambda x: torch.tensordot(x, x, dims=x.dim()))
    (statement,) = reconcile.run(torch=squares, inputs=(given,), counters=["fvcore"]).result.statements
    assert (statement.state, statement.residual, statement.to_total) == (state, 0, missed)
    assert {a.cause: a.amount for a in statement.adjustments} == ({Cause.OP_NOT_COUNTED: missed} if missed else {})
