"""Nested tensors: each sequence attends to itself alone, so the work is a sum over the sequences."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from reconcile.adapters.pytorch.trace import FusedCalls, Recorder  # noqa: E402
from reconcile.work import UnknownWork, Work, work_of  # noqa: E402
from tests.work.records_by_hand import make  # noqa: E402

LENGTHS = (3, 5)


class _Root:
    """The layer where ops are recorded."""

    current = ""


def _attention(layout: Any) -> Any:
    with torch.no_grad():
        nested = torch.nested.nested_tensor([torch.randn(2, n, 4) for n in LENGTHS], layout=torch.strided)
        if layout is torch.jagged:
            nested = torch.nested.nested_tensor([torch.randn(n, 2, 4) for n in LENGTHS], layout=layout).transpose(1, 2)
        recorder: Any = Recorder(_Root())  # type: ignore[arg-type]
        with FusedCalls(recorder), recorder:
            torch.nn.functional.scaled_dot_product_attention(nested, nested, nested)
    (op,) = [op for op in recorder.ops.values() if op.op == "aten.scaled_dot_product_attention"]
    return op


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_attention_within_each_sequence(layout: str) -> None:
    op = _attention(getattr(torch, layout))
    plain = [make("aten.scaled_dot_product_attention", [(2, n, 4)] * 3, [(2, n, 4)]) for n in LENGTHS]
    assert work_of(op) == sum(map(work_of, plain), Work())
    assert work_of(op).mac == 2 * 2 * 4 * sum(n * n for n in LENGTHS)
    with pytest.raises(UnknownWork, match="of nested tensors"):
        work_of(op._replace(op=op.op + "_backward"))
