"""Modules that are not plain: each reconciles under `matmul` and `all`, with a word about what it was called with.

``X`` is (2, 3, 8): 2 x 3 = 6 rows of 8.  Expected work is in multiply-adds, 2 FLOPs each under `matmul`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import reconcile
from reconcile.core.errors import UsageError

pytestmark = pytest.mark.frameworks
X = torch.ones(2, 3, 8)
ROWS = 2 * 3


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 4)
        self.a.register_forward_hook(lambda m, i, o: o @ m.weight)
        self.b.register_forward_pre_hook(lambda m, i: (i[0] * 2,))
        self.register_forward_pre_hook(lambda m, i, named: ((), {"x": named["x"] @ m.a.weight}), with_kwargs=True)
        self.register_forward_hook(lambda m, i, o: o["out"].softmax(-1))

    def forward(self, x: Any) -> Any:
        return {"out": self.b(self.a(x))}


class Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(8, 8))

    def forward(self, x: Any) -> Any:
        x = F.linear(x, self.w) + torch.einsum("bti,ij->btj", x, self.w)
        x = F.scaled_dot_product_attention(x, x, x)
        return F.layer_norm(F.gelu(torch.bmm(x, x.transpose(1, 2)) @ x), (8,))


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, w: Any) -> Any:
        return x @ w


class Custom(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.w = nn.Linear(8, 8), nn.Parameter(torch.randn(8, 4))

    def forward(self, x: Any) -> Any:
        return Product.apply(self.a(x), self.w)


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.a = nn.Embedding(50, 8), nn.Linear(8, 4)

    def forward(self, ids: Any, mask: Any = None, *, scale: float = 1.0, extra: Any) -> Any:
        h = self.a(self.embedding(ids)) * scale
        if mask is not None:
            h = h * mask.unsqueeze(-1)
        return {"h": h, "more": [extra["pair"][0] @ extra["pair"][1], extra["flag"]]}


def nested() -> Any:
    extra = {"pair": (torch.ones(3, 4), torch.ones(4, 5)), "flag": True}
    return Nested(), {"ids": torch.full((2, 7), 49), "mask": torch.ones(2, 7), "scale": 2, "extra": extra}


def mixed() -> Any:
    extra = {"pair": [torch.ones(3, 4), torch.ones(4, 5)], "flag": None}
    return Nested(), [torch.full((2, 7), 49)], {"extra": extra}


CASES: dict[str, tuple[Callable[[], Any], int]] = {
    # The root's hook and its product, linear a and the product of its hook, linear b.
    "hooked": (lambda: (Hooked(), {"x": X}), ROWS * (8 * 8 + 8 * 8 + 8 * 8 + 8 * 4)),
    # linear, einsum; attention: scores and values of 2 x (3, 3, 8); (3, 8, 3) and (3, 3, 8).
    "functional": (lambda: (Functional(), X), ROWS * 8 * 8 * 2 + 2 * (2 * 3 * 3 * 8) + 2 * (3 * 8 * 3 + 3 * 3 * 8)),
    "custom": (lambda: (Custom(), X), ROWS * (8 * 8 + 8 * 4)),
    "nested": (nested, 2 * 7 * 8 * 4 + 3 * 4 * 5),
    "mixed": (mixed, 2 * 7 * 8 * 4 + 3 * 4 * 5),
}


@pytest.mark.slow
@pytest.mark.parametrize("convention", ["matmul", "all"])
@pytest.mark.parametrize("name", CASES)
def test_it_reconciles(name: str, convention: str) -> None:
    make, macs = CASES[name]
    run = reconcile.run(torch=make, convention=convention)
    (trace,) = run.result.traces
    assert run.exit_code == 0
    assert (trace.device, trace.totals["matmul"]) == ("cpu", 2 * macs)
    assert [ledger.reason for ledger in run.result.ledgers if ledger.total is None] == []
    assert {statement.residual for statement in run.result.statements} == {0}
    assert [note for note in trace.notes if note.startswith("cannot run on meta")] == []


def test_the_inside_of_a_custom_function_is_not_counted() -> None:
    """fvcore meets one opaque node there: not a formula of its own for the product."""
    run = reconcile.run(torch=CASES["custom"][0], counters=["fvcore"])
    (statement,) = [s for s in run.result.statements if (s.from_, s.to) == ("fvcore", "trace@torch")]
    (line,) = statement.adjustments
    assert (line.cause.value, line.layer, line.amount) == ("op-not-counted", "(model)", 2 * ROWS * 8 * 4)
    assert "prim.PythonOp.Product" in line.evidence[0].formula


def test_the_report_says_what_the_model_was_called_with() -> None:
    run = reconcile.run(torch=nested, counters=["flop_counter"])
    said = "ids=int64 (2, 7), mask=float32 (2, 7), scale=2, extra={pair: (float32 (3, 4), float32 (4, 5)), flag: True}"
    assert run.result.traces[0].notes == (f"called with {said}",)


def test_inputs_that_are_given_replace_the_factorys() -> None:
    def plain() -> Any:
        return nn.Embedding(2, 8), torch.zeros(9, 9)

    with pytest.raises(UsageError, match=r"called with \(float32 \(9, 9\)\), raised RuntimeError: "):
        reconcile.run(torch=plain, counters=["thop"])
    run = reconcile.run(torch=plain, inputs="4,5:int64", counters=["thop"])
    assert run.result.traces[0].notes == ("called with int64 (4, 5)",)
