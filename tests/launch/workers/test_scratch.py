"""A run's folder goes with the run, or with the next one: nothing stays when every process of it was killed."""

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

from reconcile.launch.workers import scratch
from tests.launch.conftest import has_ended, until
from tests.programs import output_of, skip_unless_runs_as

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no locks")
HOLDS = """
import sys, time
from reconcile.launch.workers.scratch import scratch
with scratch() as folder:
    (folder / "work").mkdir()
    print(folder.name, flush=True)
    time.sleep(300)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_process_left_is_removed_and_nothing_else(temporary: Path) -> None:
    for name in ("reconcile-theirs", "other"):
        (temporary / name).mkdir()
    (temporary / "reconcile-x.log").touch()
    kept = names(temporary)
    (temporary / "reconcile-link").symlink_to(temporary / "other")
    environ = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", HOLDS], env=environ, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        made = holder.stdout.readline().strip()
        with scratch.scratch() as mine:
            assert names(temporary) == sorted([*kept, "reconcile-link", made, mine.name])
        holder.kill()
    assert made in names(temporary)
    with scratch.scratch():
        pass
    assert names(temporary) == sorted([*kept, "reconcile-link"])


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
    """The worker ends with the reaper, and the next run removes the folder."""
    (tmp_path / "net.py").write_text("import time\n\ndef make():\n    time.sleep(300)\n")
    environ = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    command = [sys.executable, "-m", "reconcile", "run", "--torch", "net:make", "--input", "1,4"]
    home = start(command, cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL)
    family: list[psutil.Process] = []

    def started() -> bool:
        family[:] = psutil.Process(home.pid).children(recursive=True)
        return len(family) >= 2  # the reaper and the worker

    assert until(started)
    home.send_signal(signal.SIGSTOP)
    family[0].kill()
    home.kill()
    home.wait()
    assert until(lambda: [process for process in family if not has_ended(process)] == [])
    left = [name for name in names(tmp_path) if name.startswith("reconcile-")]
    assert len(left) == 1
    scratch.clear(tmp_path)
    assert [name for name in names(tmp_path) if name.startswith("reconcile-")] == []


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
