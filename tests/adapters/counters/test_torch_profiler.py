"""torch.profiler's with_flops beside what ran: its total by hand, its known errors with their causes, and other runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import reconcile
from reconcile.core.causes import Cause
from reconcile.core.conventions import MATMUL
from reconcile.core.records import Ledger, Sighting, Tensor, Trace
from tests.adapters.counters.in_environment import explained
from tests.adapters.counters.small_nets import Does, called
from tests.pages.reading import programs

nn = torch.nn

ROOT = Path(__file__).parents[3]
X = torch.ones(2, 3)


def in_place(x: Any) -> Any:
    """Six sums and six products on a copy."""
    y = x.clone()
    y += 1
    y *= 2
    return y


def attention() -> Any:
    """Attention to itself."""
    return Does(
        lambda m, x: m.inner(x, x, x, need_weights=False)[0], inner=nn.MultiheadAttention(4, 2, batch_first=True)
    )


GRU = 3 * 3 * (4 + 3)
"""Products of one step of a GRU of 4 inputs and 3 units."""

NETS = {
    # name: module, inputs, the profiler's total, what the convention "all" adds by cause
    "a - b": (lambda: called(torch.sub), (X, X), 0, {Cause.OP_NOT_COUNTED: 6}),
    "a + b": (lambda: called(torch.add), (X, X), 6, {}),
    "in place": (lambda: called(in_place), (X,), 0, {Cause.OP_NOT_COUNTED: 12}),
    # (3, 1) * (3, 4): the 3 of the first, and not the 12 that ran.
    "broadcast": (lambda: called(torch.mul), (torch.ones(3, 1), torch.ones(3, 4)), 3, {Cause.FORMULA_DIFFERS: 12 - 3}),
    # 2 x 7 positions of 4 outputs, 6 products each.
    "Conv1d": (
        lambda: nn.Conv1d(3, 4, 2, bias=False), (torch.ones(2, 3, 8),), 0, {Cause.OP_NOT_COUNTED: 2 * 7 * 4 * 12},
    ),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3, groups=2, bias=False), (torch.ones(1, 4, 6, 6),), 2 * 16 * 6 * 2 * 9, {}),
    "Conv2d with a bias": (
        lambda: nn.Conv2d(4, 6, 3), (torch.ones(1, 4, 6, 6),), 2 * 16 * 6 * 4 * 9, {Cause.FORMULA_DIFFERS: 16 * 6},
    ),
    "same": (
        lambda: nn.Conv2d(4, 6, 3, padding="same", bias=False),
        (torch.ones(1, 4, 6, 6),),
        0,
        {Cause.OP_NOT_COUNTED: 36 * 6 * 2 * 36},
    ),
    "transposed": (
        lambda: nn.ConvTranspose2d(3, 4, 2, stride=2, bias=False),
        (torch.ones(1, 3, 2, 2),),
        0,
        {Cause.OP_NOT_COUNTED: 16 * 4 * 2 * 3},
    ),
    "Linear": (lambda: nn.Linear(3, 4), (torch.ones(2, 5, 3),), 2 * 10 * 12, {Cause.FORMULA_DIFFERS: 40}),
    "matmul": (lambda: called(torch.matmul), (torch.ones(2, 3, 4), torch.ones(2, 4, 5)), 2 * 2 * 60, {}),
    "vector": (lambda: called(torch.mv), (torch.ones(3, 4), torch.ones(4)), 0, {Cause.OP_NOT_COUNTED: 3 * 8}),
    "LayerNorm": (lambda: nn.LayerNorm(3, elementwise_affine=False), (X,), 0, None),
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_its_total_is_closed_and_the_tool_finds_the_cause(name: str) -> None:
    make, inputs, total, causes = NETS[name]
    with torch.no_grad(), torch.profiler.profile(with_flops=True) as profiler:
        make()(*inputs)
    assert sum(event.flops or 0 for event in profiler.events()) == total
    counted, found = explained("torch.profiler", make(), inputs, "all")
    assert (counted, found) == (
        total,
        causes if causes is not None else {Cause.OP_NOT_COUNTED: found[Cause.OP_NOT_COUNTED]},
    )


def test_a_gru_is_counted_step_by_step_and_its_products_agree() -> None:
    """It counts, for each of 5 steps, the products and the one add of a gate that is not in place (B H = 6)."""
    causes = {Cause.OUTSIDE_CONVENTION: -5 * 6}
    assert explained("torch.profiler", nn.GRU(4, 3), torch.ones(5, 2, 4)) == (5 * 2 * 2 * GRU + 5 * 6, causes)


def test_every_event_belongs_to_the_module_whose_code_called_it() -> None:
    net = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Sequential(nn.Linear(3, 4, bias=False), called(torch.relu)))
    result = reconcile.run(torch=net, inputs=X, counters=("torch.profiler",)).result
    (ledger,) = result.ledgers
    assert {entry.id: entry.value for entry in ledger.entries} == {"0|aten::linear": 2 * 18, "1.0|aten::linear": 2 * 24}


@pytest.mark.parametrize("convention", ["matmul", "all", "textbook"])
def test_attention_runs_op_by_op_and_the_switch_is_as_it_was(convention: str) -> None:
    """A whole encoder layer would be one operator in inference mode, of whose products only a part is counted."""
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    before = torch.backends.mha.get_fastpath_enabled()
    for net in (attention(), layer, nn.LSTM(4, 3, bidirectional=True)):
        run = reconcile.run(torch=net, inputs=torch.ones(2, 5, 4), counters=("torch.profiler",), convention=convention)
        assert [s.residual for s in run.result.statements] == [0]
        notes = [note for ledger in run.result.ledgers for note in ledger.notes if "fused path" in note]
        assert len(notes) == (0 if isinstance(net, nn.LSTM) else 1)
    assert torch.backends.mha.get_fastpath_enabled() == before


def ledger_and_trace(module: Any, *inputs: Any) -> tuple[Ledger, Trace]:
    """What one capture and one trace of the module record."""
    from reconcile.adapters.counters.torch_profiler import capture
    from reconcile.adapters.pytorch import trace
    from reconcile.adapters.pytorch.model import TorchModel

    pair = SimpleNamespace(user_model=False, build_torch=lambda _: module, arguments=lambda _: (inputs, {}))
    return capture.capture("torch.profiler", TorchModel(pair, None)), trace.trace(TorchModel(pair, None))


def residual(ledger: Ledger, trace: Trace) -> tuple[int, int, list[str]]:
    """Residual, number of mismatches, and reasons."""
    from reconcile.align.alignment import Alignment
    from reconcile.engine.ledger import reconcile_ledger

    done = reconcile_ledger(ledger, trace, Alignment([]), MATMUL)
    return sum(r.amount for r in done.residuals), len(done.ledger.mismatches), [r.reason for r in done.residuals]


def test_an_event_whose_op_was_not_dispatched_is_a_residual() -> None:
    ledger, trace = ledger_and_trace(nn.Linear(3, 4, bias=False), X)
    assert residual(ledger, trace) == (0, 0, [])
    without = ledger._replace(sightings=tuple(s for s in ledger.sightings if s.op.op != "aten.mm"))
    amount, mismatches, reasons = residual(without, trace)
    assert (amount, mismatches) == (48 - 48, 0)
    assert [r for r in reasons if "aten::mm (2, 3) x (3, 4) ran less often without the profiler" in r] != []


def test_an_op_without_an_event_was_not_met() -> None:
    """The op was dispatched, but the profiler has no event of it: its work is a residual."""
    ledger, trace = ledger_and_trace(nn.Linear(3, 4, bias=False), X)
    without = ledger._replace(entries=(), total=0, sightings=tuple(s for s in ledger.sightings if "::" not in s.op.op))
    amount, _, reasons = residual(without, trace)
    assert amount == 48
    assert [r for r in reasons if "aten.mm (2, 3) x (3, 4) is in the trace" in r] != []


def test_events_of_other_shapes_are_not_those_of_the_op() -> None:
    """The second call dispatched a product of other shapes: the event is none of it, and the op was not met."""
    ledger, trace = ledger_and_trace(nn.Linear(3, 4, bias=False), X)

    def grown(sighting: Sighting) -> Sighting:
        if sighting.op.op != "aten.mm":
            return sighting
        inputs = (Tensor((5, 3), "float32"), sighting.op.inputs[1])
        return sighting._replace(op=sighting.op._replace(inputs=inputs, outputs=(Tensor((5, 4), "float32"),)))

    _, mismatches, reasons = residual(ledger._replace(sightings=tuple(map(grown, ledger.sightings))), trace)
    assert mismatches == 0
    assert [r for r in reasons if "aten::mm (2, 3) x (3, 4) ran less often without the profiler" in r] != []
    assert [r for r in reasons if "aten.mm (2, 3) x (3, 4) is in the trace" in r] != []


@pytest.mark.slow
def test_the_program_of_the_page_of_bugs_prints_what_it_says() -> None:
    """docs/bugs.md: a difference of 2 x 3 elements counts nothing, a sum counts 6. PyTorch reads the profiler's log level once
    in a process, so the program has one of its own."""
    (code,) = programs((ROOT / "docs" / "bugs.md").read_text())
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "6"]
    assert code.rstrip().endswith("# 0 6")
