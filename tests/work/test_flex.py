"""The gradients of flex_attention as one op have the work of the ops that PyTorch's own kernel for the CPU runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from reconcile.adapters.pytorch.tracing import higher_order
from reconcile.core.records import Op
from reconcile.work import UnknownWork, Work, attention, work_of
from tests.work.torch_records import work_dispatched

kernels = pytest.importorskip("torch._higher_order_ops.flex_attention")


SHAPES = {
    "attention": ((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 7)),
    "repeated heads": ((2, 6, 5, 4), (2, 3, 7, 4), (2, 3, 7, 3)),
    "repeated batch": ((2, 3, 5, 4), (1, 3, 6, 4), (1, 3, 6, 7)),
}


def identity(score: Any, *_: Any) -> Any:
    return score


def everywhere(*positions: Any) -> Any:
    return positions[0].new_ones((), dtype=torch.bool)


def joint(score: Any, b: Any, h: Any, m: Any, n: Any, gradient: Any) -> list[Any]:
    return [gradient, None, None, None, None]


def call(shapes: tuple[tuple[int, ...], ...], score_mod: Any = identity) -> tuple[Any, ...]:
    query, key, value = (torch.randn(shape, dtype=torch.float64) for shape in shapes)
    mask = (*[None] * 12, everywhere)
    result = torch.randn(*query.shape[:3], value.shape[-1], dtype=torch.float64)
    row = torch.randn(query.shape[:3], dtype=torch.float64)
    return query, key, value, result, row, result.clone(), row.clone(), score_mod, joint, mask, 0.5, {}, (), ()


def recorded(shapes: tuple[tuple[int, ...], ...], score_mod: Any = identity) -> Op:
    args = call(shapes, score_mod)
    return higher_order.record(kernels.flex_attention_backward, args, args[:3], "")


@pytest.mark.parametrize("name", SHAPES)
def test_the_one_op_has_the_work_of_its_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(higher_order, "_passes_on", lambda function: function is identity)
    parts = work_dispatched(kernels.sdpa_dense_backward, *call(SHAPES[name]))
    assert work_of(recorded(SHAPES[name])) == parts


def test_gradients_through_a_score_mod_have_their_products_alone() -> None:
    op = recorded(SHAPES["attention"], lambda score, *_: score * 2)
    with pytest.raises(UnknownWork, match="score_mod") as unknown:
        work_of(op)
    whole = attention.flex_gradient(*SHAPES["attention"])
    assert unknown.value.known == Work(mac=whole.mac, accumulators=whole.accumulators)
