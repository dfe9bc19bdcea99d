"""Packed attention on meta: the lengths are the numbers that the program wrote, since its kernels run on a GPU alone."""

from __future__ import annotations

import pytest
import torch

from reconcile.adapters.counters.flop_counter.capture import capture
from reconcile.adapters.pytorch import trace as inference
from reconcile.align.alignment import Alignment
from reconcile.core.conventions import MATMUL
from reconcile.engine.ledger import reconcile_ledger
from reconcile.work import work_of
from tests.adapters.counters.small_nets import Does
from tests.adapters.pytorch.training_models import Model, explained

varlen = pytest.importorskip("torch.nn.attention.varlen")


HEADS, WIDTH, INNER = 4, 16, 24
LENGTHS = (100, 60, 96)
TOKENS = sum(LENGTHS)
PROJECTED = 2 * TOKENS * INNER * 3 * HEADS * WIDTH
ATTENDED = 2 * 2 * HEADS * WIDTH * sum(n * n for n in LENGTHS)


def packed(changed=lambda ends: ends):
    def run(m, x):
        q, k, v = m.qkv(x).view(len(x), 3, HEADS, WIDTH).unbind(1)
        ends = changed(torch.tensor([0, 100, 160, 256], dtype=torch.int32, device=x.device))
        return varlen.varlen_attn(q, k, v, ends, ends, max(LENGTHS), max(LENGTHS))

    make = lambda: Does(run, qkv=torch.nn.Linear(INNER, 3 * HEADS * WIDTH, dtype=torch.bfloat16))  # noqa: E731
    return Model(make, TOKENS, INNER, optimizer="", dtype=torch.bfloat16)


def test_lengths_that_the_program_wrote_are_known():
    """flop_counter takes each sequence for as long as the longest, where it cannot read the lengths."""
    trace, ledger = inference.trace(packed()), capture("flop_counter", packed())
    assert trace.device == "meta"
    assert sum(MATMUL.flops(work_of(op)) * op.calls for op in trace.ops) == PROJECTED + ATTENDED
    done = reconcile_ledger(ledger, trace, Alignment([]), MATMUL)
    assert done.residuals == ()
    longest = 2 * 2 * HEADS * WIDTH * len(LENGTHS) * max(LENGTHS) ** 2
    assert {(line.cause.value, line.amount) for line in done.adjustments} == {("formula-differs", ATTENDED - longest)}
    assert [note for note in trace.notes if "registered" in note] == []


def written_in_place(ends):
    ends[1] = 50
    return ends


def written_in_a_view(ends):
    ends[1:3].add_(1)
    return ends


@pytest.mark.parametrize("changed", [lambda ends: ends + 0, written_in_place, written_in_a_view])
def test_lengths_that_are_computed_are_not(changed):
    (op,) = [op for op in inference.trace(packed(changed=changed)).ops if "varlen" in op.op]
    with pytest.raises(Exception, match="lengths"):
        work_of(op)


def test_a_step_knows_them_too():
    model = packed()
    model.training = "sgd"
    assert "formula-differs" in explained(model)
