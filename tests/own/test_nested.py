"""Nested tensors: each sequence attends to itself alone, so the work is a sum over the sequences."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import reconcile  # noqa: E402
from reconcile.adapters.pytorch.tracing.fused_calls import FusedCalls  # noqa: E402
from reconcile.adapters.pytorch.tracing.recorder import Recorder  # noqa: E402
from reconcile.adapters.pytorch.tracing.trace_notes import PADDING_DROPPED  # noqa: E402
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
    backward = op._replace(op=op.op + "_backward", attrs={**op.attrs, "needs": [True] * 3})
    assert work_of(backward).mac == 2 * work_of(op).mac  # two products for each one of the forward pass
    with pytest.raises(UnknownWork):
        work_of(backward._replace(inputs=(*op.inputs, op.inputs[0]), attrs={**op.attrs, "needs": [True] * 4}))


LONGEST, E, HEADS = 6, 8, 2


def _padded(lengths: list[int]) -> tuple[Any, Any, Any]:
    """A layer of an encoder, its input and the mask of what each sequence lacks."""
    layer = torch.nn.TransformerEncoderLayer(E, HEADS, 16, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=True).eval()
    mask = torch.tensor([[position >= length for position in range(LONGEST)] for length in lengths])
    return encoder, torch.randn(len(lengths), LONGEST, E), mask


def _factory(lengths: list[int]) -> tuple[Any, tuple[()], dict[str, Any]]:
    encoder, x, mask = _padded(lengths)
    return encoder, (), {"src": x, "src_key_padding_mask": mask}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("lengths", [[2, 4, 5], [6, 1], [3, 3]], ids=str)
def test_an_encoder_of_padded_sequences_runs_its_kernels_work(lengths: list[int]) -> None:
    """Beneath the fused call, PyTorch's profiler shows the products with their shapes."""
    encoder, x, mask = _padded(lengths)
    with torch.no_grad(), torch.profiler.profile(record_shapes=True) as profiled:
        encoder(x, src_key_padding_mask=mask)
    products = {"aten::mm": 0, "aten::addmm": 1, "aten::_addmm_activation": 1, "aten::bmm": 0, "aten::baddbmm": 1}
    ran = 0
    for event in profiled.events():
        if event.name in products:
            left, right = event.input_shapes[products[event.name] :][:2]
            ran += math.prod(left) * right[-1]
    run = reconcile.run(torch=lambda: _factory(lengths), counters=["thop", "flop_counter"])
    assert [ledger.reason for ledger in run.result.ledgers] == ["", ""]
    assert PADDING_DROPPED in run.result.traces[0].notes
    assert [figure.flops for figure in run.verdict.figures] == [2 * ran]
    rows, padded = sum(lengths), len(lengths) * max(lengths) ** 2
    assert ran == rows * E * 3 * E + 2 * padded * E + rows * E * E + 2 * rows * E * 16


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("convention", ["all", "textbook"])
def test_the_fused_layer_does_what_its_parts_do(convention: str) -> None:
    run = reconcile.run(torch=lambda: _factory([2, 4, 5]), counters=["thop", "flop_counter"], convention=convention)
    assert {(s.from_, s.to, s.residual) for s in run.result.statements if "trace" in s.to} == {
        ("thop", "trace@torch", 0),
        ("flop_counter", "trace@torch", 0),
    }
