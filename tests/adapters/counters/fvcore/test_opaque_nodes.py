"""Nodes of a TorchScript graph that hide products, beside a product that fvcore counts in the same module.

A product of two matrices of N x N has N³ multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import reconcile
from reconcile.adapters.counters.fvcore.graph_nodes import dropped_ops
from reconcile.core.causes import Cause
from reconcile.core.records import Op, Tensor
from tests.adapters.counters.small_nets import called

N = 3
PRODUCT = 2 * N**3
SMALL = 0.3 * torch.eye(N)


@torch.library.custom_op("reconcile_opaque::powers", mutates_args=())
def powers(x: torch.Tensor, count: int) -> list[torch.Tensor]:
    return [x @ x for _ in range(count)]


@torch.jit.script
def square(x: torch.Tensor) -> torch.Tensor:
    return x @ x


def both(x: torch.Tensor) -> Any:
    return sum(powers(x, 2)) + sum(powers(x, 1)) + x @ x


def untraced(x: torch.Tensor) -> torch.Tensor:
    """A product more where PyTorch traces no graph, which it asks past ``torch.jit.is_tracing``."""
    out = x @ x + powers(x, 1)[0]
    return out if torch._C._get_tracing_state() else out + x @ x


CALLS: dict[str, tuple[Callable[..., Any], int, int]] = {
    # three products of a Taylor polynomial for a norm of 0.3 (Bader, Blanes and Casas 2019, in float32)
    "an exponential": (lambda x: torch.linalg.matrix_exp(x) + x @ x, 3, 0),
    "an exponential by its old name": (lambda x: torch.matrix_exp(x) + x @ x, 3, 0),
    "an operator called twice": (both, 3, 0),
    "a function of TorchScript": (lambda x: square(x) + x @ x, 1, 0),
    "a product that no node holds": (untraced, 0, 2),
}
"""Name -> (call, products that are explained by the node that hides them, products that stay unexplained)."""


@pytest.mark.parametrize("name", CALLS)
def test_what_runs_inside_of_a_node_is_named(name: str) -> None:
    call, hidden, unexplained = CALLS[name]
    (statement,) = reconcile.run(torch=called(call), inputs=(SMALL,), counters=["fvcore"]).result.statements
    assert {a.cause: a.amount for a in statement.adjustments} == (
        {Cause.OP_NOT_COUNTED: hidden * PRODUCT} if hidden else {}
    )
    assert (statement.from_total, statement.residual) == (PRODUCT, unexplained * PRODUCT)


def test_a_node_that_the_graph_names_anew_was_kept() -> None:
    old, new, gone = (
        Op("", op, "", (Tensor((2, N, N), "float32"),), (Tensor((size,), "float32"),), {})
        for op, size in (("aten.det", 2), ("aten.linalg_det", 2), ("aten.trace", 1))
    )
    assert dropped_ops([old, gone], [new]) == [gone]
