"""What runs on threads that were there before the call, or in other processes, makes a trace incomplete; what waits does not."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread, Timer, current_thread
from typing import Any

import pytest
import torch

from reconcile.adapters.pytorch import trace as inference
from reconcile.adapters.pytorch import training
from reconcile.adapters.pytorch.phases import RAN_ON_ANOTHER_THREAD
from reconcile.adapters.pytorch.tracing import unrecorded_work as elsewhere
from reconcile.core.records import Trace
from tests.adapters.pytorch.tracing.test_numpy_crossings import net
from tests.adapters.pytorch.training_models import Model

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked"),
    pytest.mark.filterwarnings("ignore:.*fork"),  # of a process that has threads
]
ROOT = Path(__file__).parents[4]
PASSES = {"a call": inference.trace, "a training step": training.trace}


def traced(compute: Any, of: str = "a call") -> Trace:
    model = Model(net(compute), 4, 6)
    model.training = "sgd"
    return PASSES[of](model)


def problems(compute: Any, of: str = "a call") -> list[tuple[str, str]]:
    return [(problem.op, problem.layer) for problem in traced(compute, of).problems]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as threads:
        threads.submit(time.sleep, 0).result()
        yield threads


@pytest.mark.parametrize("of", PASSES)
def test_ops_on_a_thread_that_ran_before_are_named(pool: ThreadPoolExecutor, of: str) -> None:
    trace = traced(lambda x: pool.submit(torch.sin, x).result(), of)
    assert [(problem.op, problem.layer) for problem in trace.problems] == [("(thread)", "")]
    assert trace.problems[0].reason.startswith("aten.sin")
    assert [op.op for op in trace.ops if op.op == "aten.sin"] == []
    assert elsewhere.LEVEL not in os.environ


@pytest.mark.parametrize("of", PASSES)
def test_a_thread_that_only_waits_is_no_gap(pool: ThreadPoolExecutor, of: str) -> None:
    assert problems(torch.sin, of) == []


@pytest.mark.parametrize("of", PASSES)
def test_a_thread_that_moves_values_is_no_gap(pool: ThreadPoolExecutor, of: str) -> None:
    """As those of Keras that make numbers of its logs."""

    def read(x: Any) -> Any:
        pool.submit(lambda: x.detach().to("cpu", torch.float64).clone().view(-1).resolve_conj()).result()
        return x

    def read_on_new_thread(x: Any) -> Any:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(lambda: x.detach().to("cpu", torch.float64).clone().view(-1)[0]).result()
        return x

    assert problems(read, of) == []
    assert problems(read_on_new_thread, of) == []


def test_a_worker_of_pytorchs_own_pool_is_no_foreign_thread(pool: ThreadPoolExecutor) -> None:
    """The gradient of causal attention on the CPU makes tensors on the threads that share its work."""

    def attend(x: Any) -> Any:
        heads = x.view(1, 4, 1, 4).expand(1, 4, 64, 4)
        return torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)[0, :, 0]

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        model = Model(net(attend), 4, 6)
        model.training, model.device = "sgd", "cpu"
        trace = training.trace(model)
    finally:
        torch.set_num_threads(threads)
    assert (trace.device, trace.problems) == ("cpu", ())


def test_ops_on_a_thread_are_recorded_beside_one_that_waits(pool: ThreadPoolExecutor) -> None:
    def on_new_thread(x: Any) -> Any:
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(torch.sin, x).result()

    trace = traced(on_new_thread)
    assert trace.problems == ()
    assert [op.layer for op in trace.ops if op.op == "aten.sin"] == ["middle"]


def test_a_training_step_names_the_layer_that_started_a_thread() -> None:
    def on_new_thread(x: Any) -> Any:
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(torch.sin, x).result()

    trace = traced(on_new_thread, "a training step")
    assert [(p.op, p.layer, p.reason) for p in trace.problems] == [("(thread)", "middle", RAN_ON_ANOTHER_THREAD)]


def test_nothing_is_watched_where_no_other_thread_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(elsewhere, "_is_own", lambda thread: True)
    monkeypatch.setattr(elsewhere, "_started_profiler", lambda: asked.append(1))
    assert problems(torch.sin) == []
    assert asked == []


def test_a_worker_has_no_other_thread() -> None:
    """Its guard is this package's own, and so is the clock of a model file."""
    from reconcile.worker import process_guard

    own = [Thread(target=process_guard._end_with_parent), Timer(1, process_guard.leave), current_thread()]
    others = [Thread(target=time.sleep), Timer(1, time.sleep)]
    assert [elsewhere._is_own(thread) for thread in own + others] == [True] * 3 + [False] * 2


SILENT = """
import os
from tests.adapters.pytorch.tracing.test_unrecorded_work import ThreadPoolExecutor, elsewhere, problems, time, torch
with ThreadPoolExecutor(1) as pool:
    pool.submit(time.sleep, 0).result()
    found = problems(lambda x: pool.submit(torch.sin, x).result())
print(found, elsewhere.LEVEL in os.environ)
"""


@pytest.mark.slow
def test_the_profiler_does_not_speak_and_leaves_no_setting() -> None:
    """In a process of its own: PyTorch reads the setting once, when the first profiler of a process starts."""
    environ = {name: value for name, value in os.environ.items() if name != elsewhere.LEVEL}
    done = subprocess.run([sys.executable, "-c", SILENT], capture_output=True, text=True, env=environ, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("[('(thread)', '')] False\n", "")


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_without_a_profiler_of_all_threads_busy_ones_are_told(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "_started_profiler", lambda: None)
    assert problems(lambda x: x + (pool.submit(busy, 0.3).result() or 0)) == [("(thread)", "")]
    assert problems(lambda x: x + (pool.submit(time.sleep, 0.05).result() or 0)) == []


def test_a_profiler_of_the_callers_own_goes_on(pool: ThreadPoolExecutor) -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        assert problems(lambda x: x + (pool.submit(busy, 0.3).result() or 0)) == [("(thread)", "")]
    assert "aten::addmm" in {event.name for event in profile.events()}


FORK = multiprocessing.get_context("fork")


def _sent(pipe: Any, x: Any) -> None:
    pipe.send(x.shape)


def multiprocessed(x: Any) -> Any:
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=_sent, args=(theirs, x))
    process.start()
    assert ours.recv() == x.shape
    process.join()
    return x


def forked(x: Any) -> Any:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return x


def other_program(x: Any) -> Any:
    subprocess.run(["true"], check=True)
    return x


@pytest.mark.parametrize("start", [multiprocessed, forked, other_program])
def test_a_process_started_in_the_call_is_named_by_its_layer(start: Any) -> None:
    before = os.fork, subprocess.Popen, BaseProcess.start
    for of in PASSES:
        assert problems(start, of) == [("(process)", "middle")]
    assert (os.fork, subprocess.Popen, BaseProcess.start) == before


def _serve(pipe: Any) -> None:
    while (x := pipe.recv()) is not None:
        pipe.send(torch.sin(x))


def test_tensors_from_a_process_that_ran_before_are_noticed(pool: ThreadPoolExecutor) -> None:
    """Here or on a thread. By a pipe: a pool of processes needs semaphores, which not every system lets a user have."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=_serve, args=(theirs,))
    process.start()

    def elsewhere_computed(x: Any) -> Any:
        ours.send(x.to("meta"))  # values would need shared memory
        assert ours.recv().shape == x.shape
        return x

    try:
        elsewhere_computed(torch.ones(1, device="meta"))
        assert problems(torch.sin) == []
        assert problems(elsewhere_computed) == [("(process)", "middle")]
        assert ("(process)", "") in problems(lambda x: pool.submit(elsewhere_computed, x).result())
    finally:
        ours.send(None)
        process.join()


def test_a_process_that_an_import_starts_is_no_work(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "asks_the_system.py").write_text("import subprocess\nsubprocess.run(['true'], check=True)\n")
    monkeypatch.syspath_prepend(tmp_path)

    def imports(x: Any) -> Any:
        import asks_the_system

        assert asks_the_system
        return x

    assert problems(imports) == []
