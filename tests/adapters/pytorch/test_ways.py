"""Every way to run a PyTorch model in ways.py has the count of its closed form, and docs/ways.md says what each counter does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import reconcile
from reconcile.adapters.counters.limits import Limit, explain_limits
from reconcile.adapters.pytorch import compiled
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


@pytest.mark.parametrize("name", ["torch.cond", "while_loop", "flex_attention"])
def test_a_step_of_an_operator_that_runs_functions_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="its training step cannot be traced; count the forward pass") as refused:
        reconcile.run(torch=WAYS[name].make, pass_="training")
    assert "\n" not in str(refused.value)


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
