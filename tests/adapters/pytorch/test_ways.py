"""Every way to run a PyTorch model in ways.py has the count of its closed form, and docs/ways.md says what each counter does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import reconcile
from reconcile.adapters.counters.limits import Limit, explain_limits
from reconcile.adapters.pytorch import compiled
from reconcile.adapters.pytorch.tracing.higher_order import WRITTEN_OUT
from reconcile.adapters.shared.refusal import BeyondCounter
from reconcile.core.causes import State
from reconcile.core.errors import UsageError
from tests.adapters.pytorch.way_parts import BATCH, LINEAR, NARROW, WIDE, Net, x
from tests.adapters.pytorch.ways import WAYS

PAGE = Path(__file__).parents[3] / "docs" / "ways.md"
COUNTERS = ("thop", "fvcore", "flop_counter")
COUNTED = {"counts": True, "cannot": False}


def documented() -> dict[str, list[str]]:
    """The rows of the page's table: name -> what each counter does."""
    rows = [re.split(r"\s*\|\s*", line.strip(" |")) for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return {name: cells for names, *cells in rows[2:] for name in names.split("; ")}


def test_the_page_lists_these_ways() -> None:
    assert sorted(documented()) == sorted(WAYS)


TIMES = 3
CHEAP = {
    "a plain module", "torch.compile(module)", "torch.jit.script(module)", "torch.func.vmap", "a nested tensor (jagged)",
    "checkpoint(use_reentrant=False)", "hooks that compute", "`__call__` overridden",
    "torch.cond", "an autograd.Function",
}  # fmt: skip
"""Of each kind of way one."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in CHEAP else pytest.mark.slow) for n in WAYS])
def test_a_way_to_run_a_model(name: str) -> None:
    counted = documented()[name]
    run = reconcile.run(torch=WAYS[name].make)
    (trace,) = run.result.traces
    assert (trace.reason, trace.totals.get("matmul")) == ("", 2 * WAYS[name].macs)
    ledgers = {ledger.counter: ledger for ledger in run.result.ledgers}
    for counter, cell in zip(COUNTERS, counted, strict=True):
        ledger = ledgers[counter]
        assert (ledger.total is not None) == COUNTED[cell], (counter, ledger.reason)
        if not COUNTED[cell]:
            assert ledger.state is State.NOT_COMPARABLE
            assert not re.search(r"\n|^\w+Error|\.$", ledger.reason), ledger.reason
        else:
            assert ledger.state in (State.EQUAL, State.EXPLAINED), (counter, ledger.reason)
    assert run.exit_code == (0 if "counts" in counted else 1)


COMPILED = [name for name in WAYS if "compile" in name]


@pytest.mark.parametrize("name", [COMPILED[0], *(pytest.param(n, marks=pytest.mark.slow) for n in COMPILED[1:])])
def test_a_compiled_model_runs_as_written_and_the_report_says_so(name: str) -> None:
    for torch_model, inputs in ((WAYS[name].make, None), WAYS[name].make()):
        run = reconcile.run(torch=torch_model, inputs=inputs, counters=["flop_counter"])
        assert run.result.traces[0].totals["matmul"] == 2 * WAYS[name].macs
        assert compiled.COUNTED_AS_WRITTEN in run.result.traces[0].notes


def test_what_is_not_compiled_has_no_note_of_it() -> None:
    """torch.cond compiles as it runs, which is no choice of the model's author."""
    for name in ("a plain module", "torch.cond", "flex_attention"):
        run = reconcile.run(torch=WAYS[name].make, counters=["flop_counter"])
        assert compiled.COUNTED_AS_WRITTEN not in run.result.traces[0].notes


def test_the_callers_compiled_model_stays_compiled() -> None:
    net = torch.compile(Net(), backend="eager")
    inner = Net()
    inner.compile(backend="eager")
    stance = torch._dynamo.eval_frame._stance.stance
    function = torch.compile
    reconcile.run(torch=net, inputs=x(), counters=["flop_counter"])
    reconcile.run(torch=inner, inputs=x(), counters=["flop_counter"])
    assert type(net).__name__ == "OptimizedModule"
    assert inner._compiled_call_impl is not None
    assert (torch._dynamo.eval_frame._stance.stance, torch.compile) == (stance, function)


@pytest.mark.parametrize(
    "name",
    [
        "torch.compile(module)",
        "torch.jit.script(module)",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("an ExportedProgram", "an ExportedProgram's module()")),
    ],
)
def test_a_training_step(name: str) -> None:
    """Forward, both weights' gradients, and the gradient of what is between the two Linears."""
    run = reconcile.run(torch=WAYS[name].make, pass_="training")
    assert (run.exit_code, run.result.traces[0].totals["matmul"]) == (0, 2 * 5 * LINEAR)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    "name",
    [
        "torch.jit.script(module)",
        "an ExportedProgram",
        pytest.param("an ExportedProgram's module()", marks=pytest.mark.slow),
    ],
)
def test_a_graph_at_hand(name: str) -> None:
    model, inputs = WAYS[name].make()
    run = reconcile.run(torch=model, inputs=inputs)
    assert (run.exit_code, run.result.traces[0].totals["matmul"]) == (0, 2 * WAYS[name].macs)


def test_a_program_brings_its_inputs() -> None:
    run = reconcile.run(torch=lambda: torch.export.export(Net(), (x(),)), counters=["flop_counter"])
    assert run.result.traces[0].totals["matmul"] == 2 * 2 * LINEAR
    assert run.result.traces[0].notes[-1] == f"called with float32 ({BATCH}, {WIDE})"


def test_an_exported_program_keeps_its_layers() -> None:
    run = reconcile.run(torch=WAYS["an ExportedProgram"].make, counters=["flop_counter"])
    products = {row.path for row in run.result.traces[0].rows if row.work.mac}
    assert products == {"up", "down"}


def test_a_step_of_flex_attention_is_refused() -> None:
    with pytest.raises(UsageError, match="its training step cannot be traced; count the forward pass") as refused:
        reconcile.run(torch=WAYS["flex_attention"].make, pass_="training")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["scan", "map", "while_loop", "torch.cond"])
def test_a_step_of_an_operator_that_runs_functions_is_counted_as_these(name: str) -> None:
    """Of a scan, the last state gets no gradient, and the first one needs none."""
    weights = {"scan": 2 * TIMES - 1, "map": TIMES, "while_loop": TIMES, "torch.cond": 1}[name]
    states = {"scan": 2 * (TIMES - 1) - 1, "map": 0, "while_loop": TIMES - 1, "torch.cond": 0}[name]
    forward = {"scan": 2 * TIMES, "map": TIMES, "while_loop": TIMES, "torch.cond": 1}[name]
    run = reconcile.run(torch=lambda: (Repeats(name), torch.ones(TIMES, BATCH, WIDE)), pass_="training")
    (trace,) = run.result.traces
    assert trace.totals["matmul"] == 2 * (forward + weights + states) * BATCH * WIDE * WIDE
    assert {row.path for row in trace.rows if row.work.mac} == {""}
    assert (
        len(
            [
                note
                for note in trace.notes
                if note == WRITTEN_OUT % name.replace("torch.", "").replace("map", "map_impl")
            ]
        )
        == 1
    )
    (ledger,) = [each.ledger for each in run.verdict.counters if each.ledger.counter == "flop_counter"]
    assert ledger.total is None


def test_gradients_of_such_an_operator_stay_what_they_are_within_count() -> None:
    found = []
    for name in ("scan", "loop"):
        net, x = Repeats(name), torch.arange(TIMES * BATCH * WIDE).reshape(TIMES, BATCH, WIDE) / 99
        with reconcile.count() as step:
            net(x).sum().backward()
        found.append((net.weight.grad, step.flops()))
    assert torch.allclose(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


class Repeats(nn.Module):
    """Products with a weight within an operator that runs functions; ``loop`` is a scan that is written out."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.weight, self.name = nn.Parameter(torch.eye(WIDE)), name

    def multiply(self, state: Any, row: Any) -> tuple[Any, Any]:
        return state @ self.weight + row, torch.tanh(state @ self.weight)

    def forward(self, x: Any) -> Any:
        from torch._higher_order_ops import map, scan, while_loop

        if self.name == "map":
            return map(lambda row: row @ self.weight, x)
        if self.name == "while_loop":
            body = lambda i, row: (i + 1, row @ self.weight)  # noqa: E731
            return while_loop(lambda i, _: i < TIMES, body, (torch.tensor(0), x[0]))[1]
        if self.name == "torch.cond":
            return torch.cond(x.sum() > 0, lambda rows: rows[0] @ self.weight, lambda rows: rows[0], (x,))
        if self.name == "scan":
            return scan(self.multiply, torch.zeros(BATCH, WIDE), x)[1]
        state, found = torch.zeros(BATCH, WIDE), []
        for row in x:
            state, out = self.multiply(state, row)
            found.append(out)
        return torch.stack(found)


def from_library() -> None:
    torch.zeros(WIDE) @ torch.zeros(NARROW)


def from_user() -> None:
    raise ValueError("no")


def test_an_error_of_a_library_is_a_limit_of_the_counter() -> None:
    limits = (Limit(("size",), "it does not know that"),)
    with pytest.raises(BeyondCounter, match=r"^it does not know that$"), explain_limits(limits, lambda: None):
        from_library()
    with (
        pytest.raises(BeyondCounter, match=r"^its own code stops on this model, .* \(RuntimeError: .*\)$"),
        explain_limits((), lambda: None),
    ):
        from_library()


def test_a_counter_that_counts_nothing_has_failed() -> None:
    with pytest.raises(RuntimeError, match="inconsistent tensor size"), explain_limits((), from_library):
        from_library()


def test_an_error_that_users_code_raises_stays_theirs() -> None:
    with pytest.raises(ValueError, match="no"), explain_limits((), lambda: None):
        from_user()
