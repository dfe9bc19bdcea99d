"""A run's folder goes with the run, also when every process of it is killed, at whatever moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.launch.conftest import has_ended, until
from tests.programs import output_of, skip_unless_runs_as

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no shell")
HOLDS = """
import sys, time
from reconcile.launch.workers.scratch import scratch
with scratch() as folder:
    (folder / "work").mkdir()
    print(folder.name, flush=True)
    time.sleep(300)
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_of_a_killed_process_is_removed_and_nothing_else(tmp_path: Path) -> None:
    others = ["other", "reconcile-theirs", "reconcile-x.log"]
    for name in others:
        (tmp_path / name).mkdir()
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", HOLDS], env=environ, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        made = holder.stdout.readline().strip()
        (tmp_path / made / "link").symlink_to(tmp_path / "other")
        assert names(tmp_path) == sorted([*others, made])
        holder.kill()
    assert until(lambda: names(tmp_path) == others)


def test_it_goes_also_if_the_process_is_killed_while_it_makes_the_folder(tmp_path: Path) -> None:
    code = HOLDS.replace("import sys", "import os, pathlib, signal, sys", 1).replace(
        "with scratch()",
        """make = pathlib.Path.mkdir
def mkdir(self, *mode):
    make(self, *mode)
    os.kill(os.getpid(), signal.SIGKILL)
pathlib.Path.mkdir = mkdir
with scratch()""",
    )
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, check=False)
    assert done.returncode == -signal.SIGKILL
    assert until(lambda: names(tmp_path) == [])


DEEP = """
import os, sys, tempfile
sys.path.insert(0, sys.argv[1])
from reconcile.launch.workers.scratch import scratch
tempfile.tempdir = sys.argv[2]
with scratch() as folder:
    os.mkdir(folder / "closed", 0)
    os.chdir(folder)
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
    os.chdir("/")
"""


@pytest.mark.parametrize("user", [None, *[65534] * (os.getuid() == 0)])
def test_a_folder_as_deep_as_another_program_makes_it_is_removed(user: int | None) -> None:
    """Deeper than Python's own functions remove one; and one that its user may not open."""
    with tempfile.TemporaryDirectory() as outside:
        os.chmod(outside, 0o777)
        python = sys.executable if user is None else "/usr/bin/python3"
        if user is not None:
            skip_unless_runs_as(user, python)
        subprocess.run([python, "-c", DEEP, str(ROOT), outside], user=user, check=True, cwd="/")
        assert names(Path(outside)) == []


@pytest.mark.frameworks
def test_home_and_reaper_are_killed(tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    """The worker ends with the reaper, and the folder goes."""
    (tmp_path / "net.py").write_text("import time\n\ndef make():\n    time.sleep(300)\n")
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    command = [sys.executable, "-m", "reconcile", "run", "--torch", "net:make", "--input", "1,4"]
    home = start(command, cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL)
    family: list[psutil.Process] = []

    def started() -> bool:
        family[:] = psutil.Process(home.pid).children(recursive=True)
        return len(family) >= 3  # the shell, the reaper and the worker

    assert until(started)
    home.send_signal(signal.SIGSTOP)
    next(process for process in family if process.children()).kill()
    home.kill()
    home.wait()
    assert until(lambda: [process for process in family if not has_ended(process)] == [])
    assert until(lambda: [name for name in names(tmp_path) if name.startswith("reconcile-")] == [])


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_run_in_the_callers_process_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch makes a folder, and sets a variable, where a part of it is imported that no user asked for."""
    pytest.importorskip("torch")
    code = """
import os, torch, reconcile
before = dict(os.environ)
print(reconcile.run(torch=torch.nn.Linear(4, 5), inputs="1,4", counters=["flop_counter"]).exit_code)
print({name for name in {*before, *os.environ} if before.get(name) != os.environ.get(name)})
"""
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    assert output_of("-c", code, folder=tmp_path, TMPDIR=str(tmp_path)).split("\n")[:2] == ["0", "set()"]
    assert names(tmp_path) == []
