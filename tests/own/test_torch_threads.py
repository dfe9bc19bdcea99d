"""PyTorch models that run layers on threads of their own: what runs there is traced, or the trace says that it is incomplete."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Thread
from typing import Any

import pytest

import reconcile
from reconcile.core.causes import Cause
from reconcile.work import work_of
from tests.own.test_torch_models import products, traced

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]  # PyTorch's own
torch = pytest.importorskip("torch")
nn = torch.nn


class Pooled(nn.Module):  # type: ignore[name-defined, misc]
    """Three layers, each on a thread of a pool of its call's own."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(64, 8) for _ in range(3))

    def forward(self, x: Any) -> Any:
        with ThreadPoolExecutor(3) as pool:
            return sum(pool.map(lambda part: part(x), self.parts))


def test_what_runs_on_the_models_threads_is_in_its_layers() -> None:
    start = Thread.start
    trace = traced(Pooled, (4, 64))
    assert Thread.start is start
    assert trace.problems == ()
    assert products(trace) == 3 * (4 * 64 * 8)
    layers = sorted(op.layer for op in trace.ops if op.op == "aten.addmm" or op.op == "aten.linear")
    assert layers == ["parts.0", "parts.1", "parts.2"]


def test_a_threads_ops_outside_modules_are_of_its_starting_layer() -> None:
    class Aside(nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(torch.mm, x, x).result()

    trace = traced(lambda: nn.Sequential(Aside()), (3, 3))
    assert [(op.op, op.layer) for op in trace.ops] == [("aten.mm", "0")]


@pytest.mark.parametrize("followed", [False, True])
def test_a_recurrent_layer_of_a_thread_is_one_op_untrained(followed: bool) -> None:
    """A new thread follows gradients, whatever the caller's does."""

    class Aside(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(4, 3)

        def called(self, x: Any) -> Any:
            with torch.set_grad_enabled(followed):
                return self.gru(x)[0]

        def forward(self, x: Any) -> Any:
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(self.called, x).result()

    trace = traced(Aside, (5, 2, 4))
    multiplying = {(op.op, op.layer) for op in trace.ops if work_of(op).mac}
    assert multiplying == {("aten.addmm" if followed else "aten.gru", "gru")}
    assert products(trace) == 5 * 2 * 3 * (4 * 3 + 3 * 3)


def test_what_runs_on_threads_is_added_under_one_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that meet the same op each count their call: under a lock of its own each, one of the calls may be lost."""
    from reconcile.adapters.pytorch.tracing import recorder as tracing
    from reconcile.adapters.pytorch.tracing import second_call

    entered = []

    class Watched:
        def __init__(self) -> None:
            self.lock = Lock()

        def __enter__(self) -> None:
            self.lock.acquire()
            entered.append(self)

        def __exit__(self, *_: object) -> None:
            self.lock.release()

    monkeypatch.setattr(tracing, "Lock", Watched)
    monkeypatch.setattr(second_call, "is_shared", lambda: True)  # so that the call is made once
    trace = traced(Pooled, (4, 64))
    assert len(entered) == sum(op.calls for op in trace.ops)
    assert len(set(entered)) == 1


class Both(nn.Module):  # type: ignore[name-defined, misc]
    """One layer on the caller's thread and on one beside it, and a recurrent one there."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.gru = nn.Linear(4, 4, bias=False), nn.GRU(4, 3)

    def forward(self, x: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(self.layer, x).result()
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self.gru, self.layer(first)).result()[0]


def test_flop_counter_is_a_mode_of_the_callers_thread() -> None:
    """It counts the 6 * 4 * 4 multiply-adds of the one call that it sees; as many ran beside it, and a GRU's 6 * 9 * (4 + 3)."""
    run = reconcile.run(torch=lambda: (Both(), (torch.ones(6, 4),)), counters=["flop_counter"])
    (statement,) = [s for s in run.result.statements if s.from_ == "flop_counter"]
    assert (statement.from_total, statement.to_total) == (2 * 96, 2 * (2 * 96 + 6 * 3 * 3 * 7))
    assert statement.residual == 0
    assert {(a.cause, a.layer) for a in statement.adjustments} == {
        (Cause.CALL_NOT_SEEN, "layer"),
        (Cause.CALL_NOT_SEEN, "gru"),
    }
