"""Packed attention on meta: the lengths are the numbers that the program wrote, since its kernels run on a GPU alone."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
varlen = pytest.importorskip("torch.nn.attention.varlen")

from reconcile.adapters.counters.flop_counter.capture import capture  # noqa: E402
from reconcile.adapters.pytorch import trace as inference  # noqa: E402
from reconcile.align.alignment import Alignment  # noqa: E402
from reconcile.core.conventions import MATMUL  # noqa: E402
from reconcile.engine.ledger import reconcile_ledger  # noqa: E402
from reconcile.work import work_of  # noqa: E402
from tests.adapters.pytorch.training_models import Model, explained  # noqa: E402

HEADS, WIDTH, INNER = 4, 16, 24
LENGTHS = (100, 60, 96)
TOKENS = sum(LENGTHS)
PROJECTED = 2 * TOKENS * INNER * 3 * HEADS * WIDTH
ATTENDED = 2 * 2 * HEADS * WIDTH * sum(n * n for n in LENGTHS)


class Packed(torch.nn.Module):
    def __init__(self, changed=None):
        super().__init__()
        self.qkv = torch.nn.Linear(INNER, 3 * HEADS * WIDTH, dtype=torch.bfloat16)
        self.changed = changed

    def forward(self, x):
        q, k, v = self.qkv(x).view(len(x), 3, HEADS, WIDTH).unbind(1)
        ends = torch.tensor([0, 100, 160, 256], dtype=torch.int32, device=x.device)
        if self.changed:
            ends = self.changed(ends)
        return varlen.varlen_attn(q, k, v, ends, ends, max(LENGTHS), max(LENGTHS))


def packed(**options):
    return Model(lambda: Packed(**options), TOKENS, INNER, optimizer="", dtype=torch.bfloat16)


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
