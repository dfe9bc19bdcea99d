"""Code of the user's that does to its process what code does: it is one sentence, or it changes nothing."""

from __future__ import annotations

import json
import os
import time

import psutil
import pytest

from tests.foreign.conftest import Repository, everything

pytestmark = pytest.mark.frameworks

CLUMSY = """
    import atexit, builtins, io, json, os, random, signal, subprocess, sys, threading, time, torch
    from torch import nn

    HERE, PATH = os.getcwd(), list(sys.path)
    STATE = random.getstate()
    torch.set_default_dtype(torch.float64)
    made = []

    def make():
        if os.fork() == 0:
            return nn.Linear(5, 2)
        if os.fork() == 0:
            raise RuntimeError("in the child")
        assert sys.argv == ["-c"] and sys.stdin.read() == ""
        assert os.getcwd() == HERE and sys.path == PATH and "CLUMSY" not in os.environ and os.environ["HOME"]
        assert torch.get_default_dtype() is torch.float64 and torch.is_grad_enabled()
        made.append((random.random(), torch.rand(1, device="cpu").item()))
        assert set(made) == {made[0]}
        sys.stdout.write("out " * 500000)
        sys.stderr.write("err " * 500000)
        sleeper = [sys.executable, "-c", "import time; time.sleep(1000)", HERE]
        subprocess.Popen(["sh", "-c", '"$@" & exit', "sh", *sleeper], start_new_session=True).wait()
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(False)
        torch.set_num_threads(1)
        os.environ.clear()
        os.environ["CLUMSY"] = "1"
        sys.path.insert(0, "/nowhere")
        sys.setrecursionlimit(120)
        sys.excepthook = sys.exit
        atexit.register(time.sleep, 1000)
        for name in ("SIGTERM", "SIGINT", "SIGALRM", "SIGHUP"):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        threading.Thread(target=time.sleep, args=(1000,)).start()
        subprocess.Popen(sleeper, start_new_session=True)
        json.dumps = json.load = json.loads = json.dump = lambda *given, **named: {}
        builtins.open = lambda *given, **named: io.StringIO()
        os.replace = os.rename = os.getpid = lambda *given: 0
        os.chdir("/")
        if len(made) == 1:
            sys.stdout.close()
            sys.stderr.close()
            os.closerange(0, 3)
        return nn.Sequential(nn.Linear(5, 2), nn.ReLU())
"""


@pytest.mark.slow
def test_what_a_factory_does_to_its_process_stays_there(repository: Repository) -> None:
    repository.write(clumsy=CLUMSY)
    mine = psutil.Process(os.getpid())
    before = {p.pid for p in mine.children(recursive=True)}
    start = time.monotonic()
    data = repository.report("clumsy.make", "--torch", "clumsy:make", "--input", "3,5")
    assert time.monotonic() - start < 500
    assert {ledger["normalised_total"] for ledger in data["ledgers"]} == {2 * 3 * 5 * 2}
    assert data["traces"][0]["notes"] == ["called with float32 (3, 5)"]
    named = [p for p in psutil.process_iter(["cmdline"]) if str(repository.folder) in (p.info["cmdline"] or [])]
    assert named == []
    left = [p for p in mine.children(recursive=True) if p.pid not in before]
    assert [p for p in left if p.status() != psutil.STATUS_ZOMBIE] == []
    assert [p.name for p in repository.folder.iterdir() if p.name != "out"] == ["clumsy.py"]


LIMIT = "6"
"""Seconds, and within as many a process has to start."""
DEADLY = """
    import ctypes, os, signal, sys, threading, time

    def ends():
        os._exit(3)

    def crashes():
        print("about to crash")
        ctypes.string_at(0)

    def is_killed():
        os.kill(os.getpid(), signal.SIGKILL)

    def hangs():
        threading.Thread(target=time.sleep, args=(1000,)).start()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(0.1)
"""


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("deadly:ends", "the factory deadly:ends: its process ended with status 3 before it was done."),
        ("deadly:crashes", "the factory deadly:crashes: its process died of signal 11 (SIGSEGV) (deadly.py, line 9)."),
        ("deadly:is_killed", "the factory deadly:is_killed: its process was killed (signal 9: out of memory?)."),
        pytest.param(
            "deadly:hangs",
            f"the factory deadly:hangs: its process ran into the time limit of {LIMIT} s (deadly.py, line 18); "
            "--timeout SECONDS gives it more time.",
            marks=pytest.mark.slow,
        ),
        ("ends:make", "importing ends: its process ended with status 0 before it was done."),
        (
            "prints:make",
            "the factory prints:make returned None; it must return a torch.nn.Module, or (model, example inputs).",
        ),
    ],
)
def test_a_factory_that_ends_its_process_is_run_once(
    repository: Repository, stand_in: None, where: str, said: str
) -> None:
    repository.write(
        deadly=DEADLY,
        ends="import os\nos._exit(0)\n",
        prints="""
            import sys

            def make():
                for stream in (sys.stdout, sys.stderr):
                    stream.write("all work and no play makes \\xe9 a dull boy, " * 200000)
        """,
    )
    start = time.monotonic()
    assert repository.refusal("--torch", where, "--timeout", LIMIT if where == "deadly:hangs" else "500") == said
    assert time.monotonic() - start < 500
    assert {p.name for p in everything(repository.folder)} == {"deadly.py", "ends.py", "prints.py"}  # and no core file


@pytest.mark.slow
def test_a_model_that_ends_its_process_is_tried_by_itself(repository: Repository) -> None:
    """The trace dies of it first, and the culprit is unknown; the model without any counter dies alike."""
    repository.write(
        net="""
            import os, torch

            class Net(torch.nn.Linear):
                def forward(self, x):
                    os._exit(5)

            def make():
                return Net(5, 2)
        """
    )
    start = time.monotonic()
    assert repository.refusal("--torch", "net:make", "--input", "3,5") == (
        "the model of net:make, called with (float32 (3, 5)): its process ended with status 5 before it was done."
    )
    assert time.monotonic() - start < 500


CRASHING = """
    import ctypes, torch

    class Crash(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad if grad.is_meta else ctypes.string_at(0)

    class Net(torch.nn.Linear):
        def forward(self, x):
            if not self.training:
                ctypes.string_at(x.data_ptr())
            return Crash.apply(super().forward(x))

    def make():
        return Net(5, 2).eval()
"""
"""A call crashes on meta, as one of a custom operator does that looks at its tensors' memory; a training step beside meta, as
PyTorch 2.13 does in group norm's backward of a channels-last tensor."""
DIED = "died of signal 11 (SIGSEGV)"


@pytest.mark.usefixtures("warmed")
@pytest.mark.parametrize(
    ("pass_", "code", "state", "note"),
    [
        ("forward", 3, "failed", f"cannot run on meta (its process {DIED}): traced on the CPU"),
        pytest.param(
            "training", 0, "equal", f"a run on the CPU beside the one on meta was not to be had: its process {DIED}",
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_a_model_that_crashes_on_a_device_is_traced_on_the_other(
    repository: Repository, pass_: str, code: int, state: str, note: str
) -> None:
    """The counters fail where they are asked to run."""
    repository.write(net=CRASHING)
    asked = ("--torch", "net:make", "--input", "3,5", "--device", "meta", "--counter", "flop_counter", "--pass", pass_)
    result = repository.run(*asked)
    assert result.exit_code == code, result.output
    (report,) = (repository.folder / "out").glob("*.json")
    data = json.loads(report.read_text())
    assert [ledger["state"] for ledger in data["ledgers"]] == [state]
    assert data["traces"][0]["notes"][0 if pass_ == "forward" else -2] == note
